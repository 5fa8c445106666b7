package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/room"
)

func TestRoomSettingsAsFlagsAndInTheFile(t *testing.T) {
	flags := []string{
		"--queueing-method", "random", "--policy", "counter", "--queue-all", "--suspended=true",
		"--disable-session-renewal", "--enabled-origin-commands", "revoke", "--share-freeze", "90s",
	}
	file := "queueing-method: random\npolicy: counter\nqueue-all: true\nsuspended: true\n" +
		"disable-session-renewal: true\nenabled-origin-commands: [revoke]\nshare-freeze: 90s\n"
	byFlag := defaultConfig()
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	roomFlags(fs, &byFlag.Room)
	if err := fs.Parse(flags); err != nil {
		t.Fatal(err)
	}
	byFile, err := parse(t, file)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]room.Settings{"flags": byFlag.Room, "file": byFile.Room} {
		if s.QueueingMethod != room.Random || s.Policy != room.Counter || !s.QueueAll || !s.Suspended ||
			!s.DisableSessionRenewal || s.ShareFreeze != 90*time.Second ||
			len(s.EnabledOriginCommands) != 1 || s.EnabledOriginCommands[0] != room.Revoke {
			t.Errorf("%s: room = %+v", name, s)
		}
	}
}

func TestShareFreezeOfZeroIsNotTheDefault(t *testing.T) {
	cfg, err := parse(t, "share-freeze: 0s")
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Room.WithDefaults().ShareFreeze; got >= 0 {
		t.Errorf("share-freeze 0s became %v, want less than 0: not at all", got)
	}
	if got := defaultRoom().ShareFreeze; got != 15*time.Minute {
		t.Errorf("without the line it is %v, want 15m", got)
	}
}

func TestARoomTakesBackWhatIsSaidOutside(t *testing.T) {
	cfg, err := parse(t, `
queue-all: true
enabled-origin-commands: revoke
events:
  - {name: sale, event-start-time: 2026-11-27T10:00:00Z, event-end-time: 2026-11-27T12:00:00Z}
rooms:
  - {room: a, cookie-suffix: a, path: /a, queue-all: false, enabled-origin-commands: [], events: []}
  - {room: b, cookie-suffix: b, path: /b}
`)
	if err != nil {
		t.Fatal(err)
	}
	a, b := cfg.Rooms[0], cfg.Rooms[1]
	if a.QueueAll || len(a.EnabledOriginCommands) != 0 || len(a.Events) != 0 {
		t.Errorf("first room = %+v, want what it says itself", a)
	}
	if !b.QueueAll || len(b.EnabledOriginCommands) != 1 || len(b.Events) != 1 {
		t.Errorf("second room = %+v, want what stands outside", b)
	}
}

func TestEventsInTheFile(t *testing.T) {
	cfg, err := parse(t, `
rooms:
  - room: tickets
    queueing-method: passthrough
    events:
      - name: on-sale
        prequeue-start-time: 2026-11-27T09:30:00+01:00
        event-start-time: 2026-11-27T10:00:00+01:00
        event-end-time: 2026-11-27T18:00:00+01:00
        shuffle-at-event-start: true
        queueing-method: fifo
        total-active-users: 2000
        new-users-per-minute: 300
        session-duration: 10m
        disable-session-renewal: true
      - name: second-wave
        event-start-time: "2026-11-28T10:00:00Z"
        event-end-time: 2026-11-28T11:00:00.5Z
        suspended: true
`)
	if err != nil {
		t.Fatal(err)
	}
	events := cfg.Rooms[0].Events
	if len(events) != 2 {
		t.Fatalf("%d events, want 2", len(events))
	}
	e := events[0]
	start := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	if e.Name != "on-sale" || !e.Start.Equal(start) || !e.End.Equal(start.Add(8*time.Hour)) ||
		!e.PrequeueStart.Equal(start.Add(-30*time.Minute)) || !e.Shuffle || e.Suspended {
		t.Errorf("first event = %+v", e)
	}
	if e.QueueingMethod == nil || *e.QueueingMethod != room.FIFO || e.TotalActiveUsers == nil || *e.TotalActiveUsers != 2000 ||
		e.NewUsersPerMinute == nil || *e.NewUsersPerMinute != 300 || e.SessionDuration == nil || *e.SessionDuration != 10*time.Minute ||
		e.DisableSessionRenewal == nil || !*e.DisableSessionRenewal {
		t.Errorf("overrides of the first event = %+v", e)
	}
	e = events[1]
	if !e.Suspended || !e.PrequeueStart.IsZero() || e.QueueingMethod != nil || e.TotalActiveUsers != nil ||
		e.NewUsersPerMinute != nil || e.SessionDuration != nil || e.DisableSessionRenewal != nil {
		t.Errorf("second event = %+v, want it to inherit everything", e)
	}
}

func TestEventMistakesNameTheLine(t *testing.T) {
	const times = "    event-start-time: 2026-11-27T10:00:00Z\n    event-end-time: 2026-11-27T12:00:00Z\n"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"not a list":        {"events: a", []string{":1:9: events: a list of events"}},
		"not a mapping":     {"events:\n  - a", []string{":2:5: events[0]: a mapping"}},
		"no name":           {"events:\n  -\n" + times, []string{": events[0]: every event needs a line \"name:\""}},
		"no times":          {"events:\n  - name: a", []string{"event-start-time:", "event-end-time:"}},
		"not a time":        {"events:\n  - name: a\n    event-start-time: tomorrow", []string{":3:23: event-start-time:", `"tomorrow"`, "RFC 3339"}},
		"no zone":           {"events:\n  - name: a\n    event-end-time: 2026-11-27T10:00:00", []string{":3:21: event-end-time:", "with its zone"}},
		"unknown key":       {"events:\n  - name: a\n    event-start: 2026-11-27T10:00:00Z", []string{":3:5: event-start: unknown key", `did you mean "event-start-time"`}},
		"text for a number": {"events:\n  - name: a\n    total-active-users: \"5\"", []string{":3:25: total-active-users: a number is wanted"}},
		"text for a truth":  {"events:\n  - name: a\n    disable-session-renewal: \"true\"", []string{":3:30: disable-session-renewal: true or false"}},
		"a limit of zero":   {"events:\n  - name: a\n    total-active-users: 0", []string{":3:25: total-active-users:", "1 to 2147483647"}},
		"no method":         {"events:\n  - name: a\n    queueing-method: lifo", []string{":3:22: queueing-method:", "fifo, random"}},
		"for a room":        {"events:\n  - name: a\n    queue-all: true", []string{":3:5: queue-all: unknown key"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, tt.text)
			if err == nil {
				t.Fatal("the file was accepted")
			}
			for _, part := range append(tt.want, "ropeline.yaml:") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error is\n\t%v\nwant it to contain %q", err, part)
				}
			}
		})
	}
}

// TestWhatDoesNotFitTogetherNamesTheLine is about rules of several settings.
func TestWhatDoesNotFitTogetherNamesTheLine(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want string
	}{
		"ends before it starts": {`events:
  - name: a
    event-start-time: 2026-11-27T10:00:00Z
    event-end-time: 2026-11-27T09:00:00Z
`, "ropeline.yaml:4:5: events[0].event-end-time: "},
		"in a room of the list": {`rooms:
  - room: a
  - room: b
    cookie-suffix: b
    path: /b
    events:
      - name: sale
        event-start-time: 2026-11-27T10:00:00Z
        event-end-time: 2026-11-27T12:00:00Z
        shuffle-at-event-start: true
`, "ropeline.yaml:10:9: room \"b\": events[0].shuffle-at-event-start:"},
		"one limit alone": {`events:
  - name: a
    event-start-time: 2026-11-27T10:00:00Z
    event-end-time: 2026-11-27T12:00:00Z
    total-active-users: 5
`, "ropeline.yaml:2:5: events[0].new-users-per-minute: "},
		"overlap": {`events:
  - {name: a, event-start-time: 2026-11-27T10:00:00Z, event-end-time: 2026-11-27T12:00:00Z}
  - {name: b, event-start-time: 2026-11-27T11:00:00Z, event-end-time: 2026-11-27T13:00:00Z}
`, "ropeline.yaml:3:15: events[1].event-start-time: "},
		"of the room itself":    {"bucket-span: 1500ms\n", "ropeline.yaml:1:14: bucket-span: "},
		"from outside the list": {"bucket-span: 1500ms\nrooms:\n  - room: a\n", "ropeline.yaml:1:14: bucket-span: "},
		"too short a pre-queue": {`events:
  - name: a
    prequeue-start-time: 2026-11-27T09:56:00Z
    event-start-time: 2026-11-27T10:00:00Z
    event-end-time: 2026-11-27T12:00:00Z
`, "ropeline.yaml:3:5: events[0].prequeue-start-time: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want it to contain %q", err, tt.want)
			}
		})
	}
}

func TestARoomNameByFlagBesideTheListIsRefused(t *testing.T) {
	_, err := parse(t, "rooms:\n  - room: a", "--room", "shop")
	if err == nil || !strings.Contains(err.Error(), "--room shop: the rooms of") || !strings.Contains(err.Error(), "leave the flag out") {
		t.Errorf("error = %v, want one that says to leave --room out", err)
	}
}

func TestAdditionalRoutesInTheFile(t *testing.T) {
	cfg, err := parse(t, `
rooms:
  - room: tickets
    host: tickets.example
    cookie-suffix: tickets
    additional-routes:
      - host: Shop.example
        path: /tickets
      - path: /anywhere
  - {"room": "shop", "host": "shop.example", "cookie_suffix": "shop", "additional_routes": [{"host": "www.shop.example", "path": "/"}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Rooms[0].AdditionalRoutes; len(got) != 2 || got[0] != (room.Route{Host: "shop.example", Path: "/tickets"}) || got[1] != (room.Route{Path: "/anywhere"}) {
		t.Errorf("routes = %+v", got)
	}
	if got := cfg.Rooms[1].AdditionalRoutes; len(got) != 1 || got[0] != (room.Route{Host: "www.shop.example", Path: "/"}) {
		t.Errorf("routes in JSON and with underscores = %+v", got)
	}
}
