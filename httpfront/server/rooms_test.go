package server

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/node/room"
)

// TestManyHostsAreNotAllTold: how many there are is in the log, and of which some are.
func TestManyHostsAreNotAllTold(t *testing.T) {
	rooms := make([]room.Settings, 1000)
	for i := range rooms {
		rooms[i].Host = fmt.Sprintf("shop-%03d.example", i/2)
	}
	var out strings.Builder
	new(Front).warnOfHosts(rooms, slog.New(slog.NewTextHandler(&out, nil)))
	if got := out.String(); !strings.Contains(got, "hosts=500 ") || strings.Count(got, ".example") != hostsTold || !strings.Contains(got, "shop-000.example") {
		t.Errorf("got %s", got)
	}
}

func TestRoomIDIsTheSameOnEveryNode(t *testing.T) {
	// What a node computed yesterday, on another machine.
	if got, want := RoomID("default").String(), "b3210f84475868c4c9b0ccda9a01b1a5"; got != want {
		t.Errorf("id of the room default = %s, want %s", got, want)
	}
	if RoomID("a") == RoomID("b") {
		t.Error("two rooms have one id")
	}
}
