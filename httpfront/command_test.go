package httpfront

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// enter admits everybody, with a session that a command may end.
func enter(p node.Pass, known bool, now time.Time) node.Verdict {
	if !known {
		p = node.Pass{Visitor: node.VisitorID{7}, Arrival: now}
	}
	p.AcceptedAt, p.LeaseEnd = now, now.Add(5*time.Minute)
	return node.Verdict{Admit: true, Pass: p, SetPass: true}
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
	for name, c := range map[string]struct {
		field, value string
		decide       func(node.Pass, bool, time.Time) node.Verdict
		enabled      []room.OriginCommand
		ends         bool
		cookie       bool // whether a live pass is set
	}{
		"known name":          {"Cf-Waiting-Room-Command", "revoke", enter, listening, true, false},
		"own name":            {"Ropeline-Command", "revoke", enter, listening, true, false},
		"in other letters":    {"CF-WAITING-ROOM-COMMAND", " Revoke ", enter, listening, true, false},
		"in a list":           {"Ropeline-Command", "other, revoke", enter, listening, true, false},
		"pass did not change": {"Ropeline-Command", "revoke", enterAgain, listening, true, false},
		"not enabled":         {"Cf-Waiting-Room-Command", "revoke", enter, nil, false, true},
		"unknown command":     {"Ropeline-Command", "revoked", enter, listening, false, true},
		"no session":          {"Ropeline-Command", "revoke", always, listening, false, false},
		"nothing said":        {"X-Other", "revoke", enter, listening, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, noon := newRoom(c.decide), time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
			r.settings.EnabledOriginCommands = c.enabled
			f := serve(t, fakeRooms{room: r}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()[c.field] = []string{c.value}
				w.Header().Set("Cache-Control", "public, max-age=600")
				io.WriteString(w, "thank you")
			}), func(c *Config) { c.Clock = func() time.Time { return noon } })
			got := f.get("/paid")
			if got.StatusCode != 200 || got.body != "thank you" {
				t.Errorf("got %d %q, want the origin's answer", got.StatusCode, got.body)
			}
			for _, field := range commandFields {
				if v := got.Header.Values(field); len(v) != 0 {
					t.Errorf("the visitor got %s: %q", field, v)
				}
			}
			ended := r.takeEnded()
			if len(ended) != map[bool]int{true: 1}[c.ends] || c.ends && ended[0].Visitor != (node.VisitorID{7}) {
				t.Errorf("ended %+v, want one session ended: %v", ended, c.ends)
			}
			if c.ends && !r.endAt.Equal(noon) {
				t.Errorf("ended at %v, want the time of the clock, %v", r.endAt, noon)
			}
			set := got.Header.Values("Set-Cookie")
			switch {
			case c.ends:
				if len(set) != 1 || set[0] != "ropeline=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax" {
					t.Errorf("got cookies %q, want one that takes the pass away", set)
				}
				if cc := got.Header.Values("Cache-Control"); len(cc) != 1 || cc[0] != "private, no-cache" {
					t.Errorf("got Cache-Control %q", cc)
				}
			case c.cookie:
				if len(set) != 1 || strings.Contains(set[0], "Max-Age=0") {
					t.Errorf("got cookies %q, want a pass", set)
				}
			case len(set) != 0:
				t.Errorf("got cookies %q", set)
			}
		})
	}
}

func TestCommandsWithoutARoomReachNobody(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Ropeline-Command", "revoke")
	}))
	if got := f.get("/"); got.Header.Get("Ropeline-Command") != "" || len(got.Cookies()) != 0 {
		t.Errorf("got %v", got.Header)
	}
}

// TestCommandsInAnswersThatGoOn: the head goes out with the cookie before the
// rest is there.
func TestCommandsInAnswersThatGoOn(t *testing.T) {
	r := revocable(enter)
	more := make(chan struct{})
	f := serve(t, fakeRooms{room: r}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Ropeline-Command", "revoke")
		io.WriteString(w, "one ")
		w.(http.Flusher).Flush()
		<-more
		io.WriteString(w, "two")
	}))
	c := f.dial()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	resp := c.response("GET")
	if set := resp.Header.Values("Set-Cookie"); len(set) != 1 || !strings.Contains(set[0], "Max-Age=0") {
		t.Errorf("got cookies %q before the end of the answer", set)
	}
	if n := len(r.takeEnded()); n != 1 {
		t.Errorf("%d sessions ended before the end of the answer, want 1", n)
	}
	close(more)
	if b, err := io.ReadAll(resp.Body); string(b) != "one two" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestCommandsInUpgrades(t *testing.T) {
	r := revocable(enter)
	f := serveTo(t, fakeRooms{room: r}, tcpOrigin(t, func(c net.Conn, br *bufio.Reader) {
		if _, err := http.ReadRequest(br); err == nil {
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nRopeline-Command: revoke\r\n\r\n")
			io.Copy(c, br)
		}
	}))
	c, resp := f.upgrade("/")
	if set := resp.Header.Values("Set-Cookie"); resp.StatusCode != 101 || len(set) != 1 || !strings.Contains(set[0], "Max-Age=0") ||
		resp.Header.Get("Ropeline-Command") != "" {
		t.Errorf("got %d %v", resp.StatusCode, resp.Header)
	}
	if n := len(r.takeEnded()); n != 1 {
		t.Errorf("%d sessions ended, want 1", n)
	}
	io.WriteString(c, "still here")
	expect(t, c.br, "still here")
}

func TestCommandsInTrailersReachNobody(t *testing.T) {
	r := revocable(enter)
	f := serve(t, fakeRooms{room: r}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-One, Ropeline-Command, X-Two")
		io.WriteString(w, "body")
		w.(http.Flusher).Flush()
		w.Header().Set("X-One", "1")
		w.Header().Set("X-Two", "2")
		w.Header().Set("Ropeline-Command", "revoke")
	}))
	got := f.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if strings.Contains(got, "Ropeline-Command") || !strings.Contains(got, "X-One: 1") || !strings.Contains(got, "X-Two: 2") {
		t.Errorf("got %q", got)
	}
	if n := len(r.takeEnded()); n != 0 {
		t.Errorf("%d sessions ended by a command that came too late", n)
	}
}

func TestPassesAreTakenAway(t *testing.T) {
	r := newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		v := never(p, known, now)
		v.SetPass, v.ClearPass = false, true
		return v
	})
	f := serve(t, fakeRooms{room: r}, http.HandlerFunc(echo))
	if set := f.get("/").Header.Values("Set-Cookie"); len(set) != 1 || !strings.HasPrefix(set[0], "ropeline=; Path=/; Max-Age=0") {
		t.Errorf("got cookies %q, want one that takes the pass away", set)
	}
}
