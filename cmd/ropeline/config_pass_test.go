package main

import (
	"strings"
	"testing"

	"github.com/ropeline/ropeline/node/room"
)

func TestCookieAttributesInTheFile(t *testing.T) {
	cfg, err := parse(t, `
cookie_attributes: {samesite: lax, secure: always}
rooms:
  - {room: a, path: /a, cookie-suffix: a}
  - room: b
    path: /b
    cookie-suffix: b
    cookie-attributes: {samesite: none, partitioned: true}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []room.CookieAttributes{
		{SameSite: room.SameSiteLax, Secure: room.SecureAlways},
		{SameSite: room.SameSiteNone, Secure: room.SecureAlways, Partitioned: true},
	}
	for i, r := range cfg.Rooms {
		if r.Front.Cookie != want[i] {
			t.Errorf("room %s: got %+v, want %+v", r.Name, r.Front.Cookie, want[i])
		}
	}
}

func TestMistakesInCookieAttributesNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"room: a\ncookie-attributes:\n  secure: never\n  samesite: none":                               "ropeline.yaml:4:3: cookie-attributes.samesite: browsers drop",
		"rooms:\n  - room: a\n    cookie-attributes:\n      samesite: strict\n      partitioned: true": `ropeline.yaml:5:7: room "a": cookie-attributes.partitioned: a cookie with SameSite=strict`,
		"cookie-attributes: {samesite: Lax}":                                                           `ropeline.yaml:1:31: samesite: "Lax" is not allowed: one of auto, lax, none, strict`,
		"cookie-attributes: {same-site: lax}":                                                          "did you mean",
		"cookie-attributes: lax":                                                                       "a mapping is wanted",
	} {
		if _, err := parse(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngave %v, want %s", text, err, want)
		}
	}
}

func TestWhatPassesAreBoundTo(t *testing.T) {
	cfg, err := parse(t, `
rooms:
  - {room: a, path: /a, cookie-suffix: a}
  - {room: b, path: /b, cookie-suffix: b, bind-pass: [address, user-agent], bind_ipv4_prefix: 20}
  - {room: c, path: /c, cookie-suffix: c, bind-pass: []}
`, "--bind-pass", "user-agent")
	if err != nil {
		t.Fatal(err)
	}
	want := []room.Binding{
		{UserAgent: true, IPv4Prefix: 24, IPv6Prefix: 48},
		{Address: true, UserAgent: true, IPv4Prefix: 20, IPv6Prefix: 48},
		{IPv4Prefix: 24, IPv6Prefix: 48},
	}
	for i, r := range cfg.Rooms {
		if r.Front.Binding != want[i] {
			t.Errorf("room %s: got %+v, want %+v", r.Name, r.Front.Binding, want[i])
		}
	}
	for text, want := range map[string]string{
		"bind-pass: [ip]":       `bind-pass: "ip" is not allowed: one of address, user-agent`,
		"bind-ipv4-prefix: 33":  "bind-ipv4-prefix: ",
		"bind-ipv6-prefix: 128": "bind-ipv6-prefix: ",
	} {
		if _, err := parse(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, want %s", text, err, want)
		}
	}
}

func TestHowManyNewVisitorsMayQueue(t *testing.T) {
	cfg, err := parse(t, `
max_new_visitors: 5000
rooms:
  - {room: a, path: /a, cookie-suffix: a}
  - {room: b, path: /b, cookie-suffix: b, max-new-visitors-per-address: 0, max-new-visitors: 7}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []room.NewVisitors{{PerAddress: 1000, All: 5000}, {All: 7}}
	for i, r := range cfg.Rooms {
		if r.Front.NewVisitors != want[i] {
			t.Errorf("room %s: got %+v, want %+v", r.Name, r.Front.NewVisitors, want[i])
		}
	}
	for text, want := range map[string]string{
		"max-new-visitors: -1":                  `max-new-visitors: "-1" is not allowed: a whole number from 0 to 1048576`,
		"max-new-visitors-per-address: 2000000": `max-new-visitors-per-address: "2000000" is not allowed: a whole number from 0 to 1048576`,
	} {
		if _, err := parse(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, want %s", text, err, want)
		}
	}
	bad := cfg.Rooms[0]
	bad.Front.NewVisitors = room.NewVisitors{PerAddress: -1, All: room.MaxNewVisitors + 1}
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "max-new-visitors-per-address") || !strings.Contains(err.Error(), "max-new-visitors:") {
		t.Errorf("got %v", err)
	}
}

func TestWhatBecomesOfSharedPasses(t *testing.T) {
	cfg, err := parse(t, `
shared_passes: ignore
rooms:
  - {room: a, path: /a, cookie-suffix: a}
  - {room: b, path: /b, cookie-suffix: b, shared-passes: queue, addresses-per-pass: 2}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []room.Sharing{{Action: room.SharedIgnore, Addresses: 4}, {Action: room.SharedQueue, Addresses: 2}}
	for i, r := range cfg.Rooms {
		if r.Front.Sharing != want[i] {
			t.Errorf("room %s: got %+v, want %+v", r.Name, r.Front.Sharing, want[i])
		}
	}
	for text, want := range map[string]string{
		"shared-passes: block":  `shared-passes: "block" is not allowed: one of ignore, log, queue`,
		"addresses-per-pass: 0": `addresses-per-pass: "0" is not allowed: a whole number from 1 to 6`,
		"addresses-per-pass: 7": `addresses-per-pass: "7" is not allowed: a whole number from 1 to 6`,
	} {
		if _, err := parse(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, want %s", text, err, want)
		}
	}
	bad := cfg.Rooms[0]
	bad.Front.Sharing = room.Sharing{Action: "block"}
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "shared-passes") || !strings.Contains(err.Error(), "addresses-per-pass") {
		t.Errorf("got %v", err)
	}
}
