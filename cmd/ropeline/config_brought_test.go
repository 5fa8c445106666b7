package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/golden"
	"github.com/ropeline/ropeline/httpfront/server"
	"github.com/ropeline/ropeline/node/room"
)

// loadAs loads a file with all that is checked before anything starts.
func loadAs(t *testing.T, path string) (config, error) {
	t.Helper()
	cfg := defaultConfig()
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	nodeFlags(fs, &cfg)
	roomFlags(fs, &cfg.Room)
	err := cfg.load(path, fs)
	return cfg, err
}

// TestAHostedRoomIsTakenAsItIs brings along a room with all fields that its API has.
func TestAHostedRoomIsTakenAsItIs(t *testing.T) {
	cfg, err := loadAs(t, "testdata/hosted-rooms.json")
	if err != nil {
		t.Fatal(err)
	}
	rooms, err := cfg.servedRooms()
	if err != nil {
		t.Fatal(err)
	}
	want := defaultRoom()
	fifo, session := room.FIFO, 20*time.Minute
	want.ID, want.Name, want.Host, want.Path = server.RoomID("production_webinar"), "production_webinar", "shop.example.com", "/shop/checkout"
	want.AdditionalRoutes = []room.Route{{Host: "shop2.example.com", Path: "/shop2/checkout"}}
	want.CookieSuffix = "abcd"
	want.Front.Cookie = room.CookieAttributes{SameSite: room.SameSiteAuto, Secure: room.SecureAlways}
	want.TotalActiveUsers, want.NewUsersPerMinute = 800, 300
	want.SessionDuration, want.DisableSessionRenewal = 7*time.Minute, true
	want.QueueingMethod, want.QueueAll, want.QueueingStatusCode = room.Random, true, 202
	want.Front.CustomPage = "{{#waitTimeKnown}} {{waitTime}} mins {{/waitTimeKnown}} {{^waitTimeKnown}} Queue all enabled {{/waitTimeKnown}}"
	want.Front.Language = "es-ES"
	want.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	want.Front.Rules = []room.Rule{{Expression: "ip.src in {10.20.30.40}", Description: "the office", Action: room.Bypass}}
	want.Events = []room.Event{{
		Name: "webinar", Start: time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC), End: time.Date(2026, 11, 27, 18, 0, 0, 0, time.UTC),
		QueueingMethod: &fifo, SessionDuration: &session,
	}}
	if len(rooms) != 1 || !reflect.DeepEqual(rooms[0], want) {
		t.Errorf("rooms are\n\t%+v\nwant\n\t%+v", rooms, want)
	}

	var log bytes.Buffer
	cfg.logPassedOver(slog.New(slog.NewTextHandler(&log, nil)))
	const names = `names="id, created_on, modified_on, next_event_start_time, next_event_prequeue_start_time, turnstile_mode, turnstile_action, description, version, last_updated"`
	if got := log.String(); strings.Count(got, "\n") != 1 || !sameNames(got, names) {
		t.Errorf("the log says\n\t%s\nwant one line with\n\t%s", got, names)
	}
	if cfg.Name != defaultConfig().Name {
		t.Errorf("the node is called %q, after a room", cfg.Name)
	}
}

// sameNames reports whether a line has the names of another, in any order.
func sameNames(line, want string) bool {
	for name := range strings.SplitSeq(strings.Trim(strings.TrimPrefix(want, "names="), `"`), ", ") {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(line) {
			return false
		}
	}
	return true
}

// TestAllMistakesAtOnce has mistakes of all kinds in one file: they come in the order of
// lines, each once, and what is allowed is listed once.
func TestAllMistakesAtOnce(t *testing.T) {
	_, err := loadAs(t, "testdata/hosted-rooms-mistakes.yaml")
	if err == nil {
		t.Fatal("the file was accepted")
	}
	// What the names are is said elsewhere.
	got := regexp.MustCompile(`Allowed are .*`).ReplaceAllString(err.Error(), "Allowed are …") + "\n"
	golden.File(t, "testdata/hosted-rooms-mistakes.txt", got)
}

func TestWhatIsBroughtAlong(t *testing.T) {
	for text, want := range map[string]string{
		"rooms: [{name: a}]":                                                       "",
		"rooms: [{name: a, session_duration: 5}]":                                  "",
		"rooms: [{name: a, session_duration: 90s}]":                                "",
		"rooms: [{name: a, description: null, turnstile_mode: null}]":              "",
		"rooms: [{name: a, turnstile_action: infinite_queue}]":                     "",
		"rooms: [{name: a, session-duration: 5}]":                                  `session-duration: "5" is not allowed: a duration from 1s to 24h, such as 5m`,
		"rooms: [{name: a, session_duration: 0}]":                                  `session-duration: "0m" is not allowed`,
		"rooms: [{name: a, session_duration: \"5\"}]":                              `session-duration: "5" is not allowed`,
		"rooms: [{name: a, refresh_interval: 20}]":                                 `refresh-interval: "20" is not allowed`,
		"rooms: [{name: a, room: a}]":                                              `name: the name stands under "room" in line 1 as well`,
		"rooms: [{name: a b}]":                                                     `room: "a b" is not allowed`,
		"rooms: [{name: a, turnstile_mode: visible_managed}]":                      `turnstile-mode: "visible_managed" is not allowed: visitors are not checked`,
		"rooms: [{name: a, description: [a]}]":                                     "description: one value is wanted",
		"rooms: [{name: a}, {name: a, host: b}]":                                   "used twice",
		"id: 7\nname: a\nhost: a.example":                                          ":1:1: id: that is of a room; put the room into the list",
		"name: a\ndescription: the shop\nhost: a.example":                          ":2:1: description: that is of a room",
		"rooms: [{name: a, events: [{name: b, event_start_time: null, id: 7}]}]":   `every event needs a line "event-start-time:"`,
		"rooms: [{name: a, total_active_users: null}]":                             "total-active-users: one value is wanted; this is a missing value",
		"rooms: [{name: a, rules: [{expression: ssl, id: 7, turnstile_mode: a}]}]": "turnstile-mode: unknown key",
	} {
		_, err := parse(t, text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error is %v, want %q", text, err, want)
		}
	}
	cfg, err := parse(t, "session_duration: 5\nrooms: [{name: a}, {name: b, session_duration: 90s, host: b, cookie-suffix: b}]")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := cfg.Rooms[0].SessionDuration, cfg.Rooms[1].SessionDuration; a != 5*time.Minute || b != 90*time.Second {
		t.Errorf("sessions of %v and %v, want 5m and 90s", a, b)
	}
}

// TestNothingIsSaidOfValuesThatNobodyGave has a setting refused that others depend on.
func TestNothingIsSaidOfValuesThatNobodyGave(t *testing.T) {
	for text, want := range map[string]int{
		"origin: nowhere\nlisten: nowhere": 2,
		"origins: nowhere":                 1,
		"mesh: nowhere\njoin: [\"a:1\"]":   2, // no origin; join needs a mesh, but who gave a wrong one knows
		"events: [{name: a, event_start_time: soon, event_end_time: 2026-11-27T09:00:00Z, prequeue_start_time: 2026-11-27T08:00:00Z}]\norigin: http://a": 1,
		"rooms: [{name: a, path: x}, {name: b}]\norigin: http://a":                                                                                       1,
	} {
		path := filepath.Join(t.TempDir(), "ropeline.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := loadAs(t, path)
		if err == nil || strings.Count(err.Error(), "\n")+1 != want {
			t.Errorf("%s: error is\n%v\nwant %d of them", text, err, want)
		}
	}
}
