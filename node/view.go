package node

import "github.com/ropeline/ropeline/node/room"

// View returns the picture that requests are decided from now. It is shared;
// nobody changes it. Any goroutine may call it.
func (r *Room) View() *room.View { return r.view.Load().View }
