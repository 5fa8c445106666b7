package node

import (
	"testing"

	"github.com/ropeline/ropeline/node/room"
)

func TestRoutesFindTheLongestPath(t *testing.T) {
	add := func(name, host, path string) *Room {
		r := &Room{}
		r.settings.Store(&room.Settings{Name: name, Host: host, Path: path, Suspended: name == "suspended"})
		return r
	}
	table := newRoutes([]*Room{
		add("everything", "", "/"), add("any tickets", "", "/tickets"),
		add("shop", "shop.example", "/"), add("sale", "shop.example", "/sale"), add("sale vip", "shop.example", "/sale/vip/"),
		add("suspended", "shop.example", "/sale/old"),
	})
	tests := []struct{ host, path, want string }{
		{"other.example", "/", "everything"},
		{"", "/tickets", "any tickets"},
		{"", "/tickets/1", "any tickets"},
		{"", "/ticketsandmore", "everything"},
		{"", "/Tickets", "everything"},
		{"shop.example", "/", "shop"},
		{"shop.example", "/sale", "sale"},
		{"shop.example", "/sale/", "sale"},
		{"shop.example", "/sale/vip", "sale vip"},
		{"shop.example", "/sale/vip/1", "sale vip"},
		{"shop.example", "/tickets", "shop"},
	}
	for _, tt := range tests {
		if got := table.find(tt.host, tt.path); got == nil || got.settings.Load().Name != tt.want {
			t.Errorf("room of %q %q = %v, want %q", tt.host, tt.path, got, tt.want)
		}
	}
	// A suspended room lets its requests pass; none goes to the room around it.
	if got := table.find("shop.example", "/sale/old/1"); got != nil {
		t.Errorf("room of a suspended path = %q, want none", got.settings.Load().Name)
	}
	if got := newRoutes([]*Room{add("shop", "shop.example", "/a")}).find("shop.example", "/b"); got != nil {
		t.Errorf("room of a path that none has = %q", got.settings.Load().Name)
	}
}
