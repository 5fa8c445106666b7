package dashboard

import "time"

// Down is a node that does not run, and whose capacity nobody can use for now.
type Down struct {
	Node    string     `json:"node"` // id
	Name    string     `json:"name"`
	Site    string     `json:"site"`
	State   string     `json:"state"` // down; waiting: it is declared dead, and not all have confirmed; recovering
	Since   time.Time  `json:"since"`
	Rooms   []DownRoom `json:"rooms"`
	Message string     `json:"message"` // all this in words, with what to do

	WaitsFor []string   `json:"waits_for,omitempty"` // names of the nodes that have not confirmed
	UsableAt *time.Time `json:"usable_at,omitempty"` // when its capacity can be used, if that is known
	Order    string     `json:"declare_dead"`        // what names it to the command declare-dead
}

// DownRoom is what such a node has of one room.
type DownRoom struct {
	Room        string `json:"room"` // id
	Name        string `json:"name"`
	Capacity    Amount `json:"capacity"`
	Minted      Amount `json:"minted"` // by all nodes
	Approximate bool   `json:"approximate"`
	Sessions    int64  `json:"sessions"` // that are still counted as active
}
