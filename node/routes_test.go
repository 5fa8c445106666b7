package node

import (
	"testing"

	"github.com/ropeline/ropeline/node/room"
)

func TestRoutesFindTheLongestPath(t *testing.T) {
	add := func(name, host, path string) *Room {
		return &Room{settings: &room.Settings{Name: name, Host: host, Path: path}}
	}
	table := newRoutes([]*Room{
		add("everything", "", "/"), add("any tickets", "", "/tickets"),
		add("shop", "shop.example", "/"), add("sale", "shop.example", "/sale"), add("sale vip", "shop.example", "/sale/vip/"),
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
		if got := table.find(tt.host, tt.path); got == nil || got.settings.Name != tt.want {
			t.Errorf("room of %q %q = %v, want %q", tt.host, tt.path, got, tt.want)
		}
	}
	if got := newRoutes([]*Room{add("shop", "shop.example", "/a")}).find("shop.example", "/b"); got != nil {
		t.Errorf("room of a path that none has = %q", got.settings.Name)
	}
}
