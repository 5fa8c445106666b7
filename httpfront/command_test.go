package httpfront

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// enter admits everybody, with a session from now on, or a longer one.
func enter(p node.Pass, known bool, now time.Time) node.Verdict {
	v := letIn(p, known, now)
	if !p.Accepted() {
		v.Pass.AcceptedAt = now
	}
	v.Pass.LeaseEnd = now.Add(5 * time.Minute)
	return v
}

// enterAgain is enter where nothing about the pass changes.
func enterAgain(p node.Pass, known bool, now time.Time) node.Verdict {
	v := enter(p, known, now)
	v.SetPass = false
	return v
}

// revocable is a room whose site may end sessions.
func revocable(decide func(node.Pass, bool, time.Time) node.Verdict) *fakeRoom {
	r := newRoom(decide)
	r.settings.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	return r
}

func TestTheOriginEndsSessions(t *testing.T) {
	listening := []room.OriginCommand{room.Revoke}
	const gone = "ropeline=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
	for name, c := range map[string]struct {
		field, value string
		decide       func(node.Pass, bool, time.Time) node.Verdict
		enabled      []room.OriginCommand
		cookie       string // gone if the session ends; how that of a live pass begins
	}{
		"known name":          {"Cf-Waiting-Room-Command", "revoke", enter, listening, gone},
		"own name":            {"Ropeline-Command", "revoke", enter, listening, gone},
		"in other letters":    {"CF-WAITING-ROOM-COMMAND", " Revoke ", enter, listening, gone},
		"in a list":           {"Ropeline-Command", "other, revoke", enter, listening, gone},
		"pass did not change": {"Ropeline-Command", "revoke", enterAgain, listening, gone},
		"not enabled":         {"Cf-Waiting-Room-Command", "revoke", enter, nil, "ropeline="},
		"unknown command":     {"Ropeline-Command", "revoked", enter, listening, "ropeline="},
		"no session":          {"Ropeline-Command", "revoke", always, listening, ""},
		"nothing said":        {"X-Other", "revoke", enter, listening, "ropeline="},
	} {
		t.Run(name, func(t *testing.T) {
			r, noon := newRoom(c.decide), time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
			r.settings.EnabledOriginCommands = c.enabled
			f := serve(t, fakeRooms{room: r}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()[c.field] = []string{c.value}
				w.Header().Set("Cache-Control", "public, max-age=600")
				io.WriteString(w, "thank you")
			}), at(noon))
			got := f.get("/paid").is(t, 200, "\r\n\r\nthank you")
			lacks(t, "the answer to the visitor", got.text(), commandFields[:]...)
			set := strings.Join(got.Header.Values("Set-Cookie"), "\n")
			if c.cookie != gone {
				equal(t, "whose session is ended", r.whoEnded(), "[]")
				equal(t, "a cookie", set != "", c.cookie != "")
				has(t, "the cookie", set, c.cookie)
				lacks(t, "the cookie", set, gone)
				return
			}
			equal(t, "whose session is ended", r.whoEnded(), "[7]")
			equal(t, "when, by the clock", r.endAt, noon)
			equal(t, "the cookie", set, gone)
			equal(t, "who may keep the answer", strings.Join(got.Header.Values("Cache-Control"), "\n"), "private, max-age=600")
		})
	}
}

func TestCommandsWithoutARoomReachNobody(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(shop))
	lacks(t, "the answer", f.get("/paid").is(t, 200).text(), "Command", "Set-Cookie")
}

// TestCommandsInAnswersThatGoOn: the head goes out with the cookie before the
// rest is there.
func TestCommandsInAnswersThatGoOn(t *testing.T) {
	r := revocable(enter)
	more := make(chan struct{})
	resp := serve(t, fakeRooms{room: r}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Ropeline-Command", "revoke")
		io.WriteString(w, "one ")
		w.(http.Flusher).Flush()
		<-more
		io.WriteString(w, "two")
	})).open("/")
	has(t, "the cookie before the end of the answer", resp.Header.Get("Set-Cookie"), "Max-Age=0")
	equal(t, "whose session is ended before the end of the answer", r.whoEnded(), "[7]")
	close(more)
	equal(t, "the answer", rest(t, resp.Body), "one two")
}

func TestCommandsInUpgrades(t *testing.T) {
	r := revocable(enter)
	c, resp := serve(t, fakeRooms{room: r}, http.HandlerFunc(shop)).upgrade("/paid")
	equal(t, "an upgrade", resp.StatusCode, 101)
	equal(t, "the command", resp.Header.Get("Cf-Waiting-Room-Command"), "")
	has(t, "the cookie", resp.Header.Get("Set-Cookie"), "Max-Age=0")
	equal(t, "whose session is ended", r.whoEnded(), "[7]")
	c.talk(t, "still here")
}

func TestCommandsInTrailersReachNobody(t *testing.T) {
	r := revocable(enter)
	f := serve(t, fakeRooms{room: r}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-One, Ropeline-Command, Cf-Waiting-Room-Command, X-Two")
		io.WriteString(w, "body")
		w.(http.Flusher).Flush()
		w.Header().Set("X-One", "1")
		w.Header().Set("X-Two", "2")
		for _, field := range commandFields {
			w.Header().Set(field, "revoke")
		}
	}))
	got := f.raw(lastGet)
	has(t, "the answer", got, "X-One: 1", "X-Two: 2")
	lacks(t, "the answer", got, commandFields[:]...)
	equal(t, "whose session is ended by a command that came too late", r.whoEnded(), "[]")
}
