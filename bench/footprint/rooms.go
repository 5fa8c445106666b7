package footprint

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// idleRooms returns n rooms as an operator makes them, each for a host of its own.
func idleRooms(n int) []room.Settings {
	all := make([]room.Settings, n)
	for i := range all {
		var id crdt.RoomID
		binary.BigEndian.PutUint32(id[:], uint32(i+1))
		all[i] = room.Settings{ID: id, Name: fmt.Sprintf("room-%05d", i), Host: fmt.Sprintf("shop-%05d.example", i), Path: "/",
			TotalActiveUsers: 200, NewUsersPerMinute: 200}.WithDefaults()
	}
	return all
}

// perIdleRoom returns how many bytes of a node one more room takes in which nobody is: the
// difference between a node with few and one with many rooms, after a minute.
func perIdleRoom(few, many int) (float64, error) {
	var bytes [2]int64
	for i, n := range []int{few, many} {
		m, err := newMesh(idleRooms(n), "a")
		if err != nil {
			return 0, err
		}
		if err := m.run(40 * time.Second); err != nil {
			return 0, err
		}
		bytes[i] = m.weigh()[0]
	}
	return float64(bytes[1]-bytes[0]) / float64(many-few), nil
}
