package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// setClock has a node stop, and start with a clock that is ahead by so much.
func (p *running) setClock(ahead time.Duration) {
	p.t.Helper()
	p.stop()
	p.ahead = ahead
	p.start()
}

// readyz returns what balancers are told.
func (p *running) readyz() (status int, why string) {
	p.t.Helper()
	resp, err := http.Get("http://" + p.admin + "/readyz")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// isClosed returns a condition: not ready, because of a clock that is ahead.
func isClosed(s node.Status) bool {
	return !s.Ready && s.Clock == "off" && strings.Contains(s.Reason, "ahead")
}

// peer returns what is said of another node.
func peer(s node.Status, name string) (of node.PeerStatus) {
	for _, p := range s.Peers {
		if p.Name == name {
			return p
		}
	}
	return of
}

// awaitLong is for what takes a moment, and on a busy machine many.
func (p *running) awaitLong(what string, wanted func(node.Status) bool) {
	p.t.Helper()
	p.await(what, time.Minute, wanted)
}

// TestAWrongClock starts one of three nodes with a clock that is ahead, and then does what the documentation says: sets it,
// and starts that node again. Until then both ends say what is wrong.
func TestAWrongClock(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	nodes := serveMesh(t, startOrigin(t), []string{"a", "a", "b"}, "--host", "shop.example")
	right, wrong := nodes[0], nodes[2]
	for _, ahead := range []time.Duration{10 * time.Second, 10 * time.Minute, 12 * time.Hour} {
		refused := ahead > 12*time.Second // what it counts is believed else
		wrong.setClock(ahead)
		wrong.awaitLong("says that its clock is off, and what others say of it", func(s node.Status) bool {
			return isClosed(s) && (!refused || peer(s, right.name).Refuses != nil || peer(s, nodes[1].name).Refuses != nil)
		})
		if status, why := wrong.readyz(); status != http.StatusServiceUnavailable || !strings.Contains(why, "ahead of those of its 2 peers") {
			t.Errorf("%v ahead: balancers are told %d %s", ahead, status, why)
		}
		told := false
		for _, p := range nodes[:2] {
			p.awaitLong("says how far that clock is off", func(s node.Status) bool {
				of := peer(s, wrong.name)
				told = told || of.Refused != nil && of.Refused.Reason == "clock"
				return (of.ClockOffset-ahead).Abs() < time.Second && s.Ready && s.Clock == "ok" && strings.Contains(p.Log(), "a peer's clock differs from this node's")
			})
		}
		if refused && !told {
			t.Errorf("%v ahead: no other node says that it refuses what it is told", ahead)
		}
		right.awaitLong("shows it to operators", func(node.Status) bool {
			says, _ := says(t, t.Context(), right.admin, "status", "--json")
			return strings.Contains(says, `"clock": "off"`)
		})
		for _, p := range nodes[1:] { // to say where the machine of the test stands
			found, _ := findings(t, append(right.args[:len(right.args):len(right.args)], "--name", "another", "--site", "a", "--join", p.mesh)...)
			want := finding{State: findOK, Found: "its clock differs by"}
			if p == wrong {
				want = finding{State: findFail, Found: "that node's is ahead"}
			}
			if f := found["peer "+p.mesh]; f.State != want.State || !strings.Contains(f.Found, want.Found) {
				t.Errorf("%v ahead: of %s the doctor finds %+v, want %s, %q", ahead, p.name, f, want.State, want.Found)
			}
		}

		wrong.setClock(0)
		wrong.awaitLong("is ready", func(s node.Status) bool { return s.Ready && s.Clock == "ok" })
		right.has(wrong.makeRoom("late-" + ahead.String()))
	}
}

// makeRoom has an operator make a room at a node, and returns its path.
func (p *running) makeRoom(name string) string {
	p.t.Helper()
	status, made := p.api("POST", "/api/v1/rooms", fmt.Sprintf(`{"name":%q,"host":"%[1]s.example","total_active_users":9,"new_users_per_minute":9}`, name))
	if status != http.StatusOK {
		p.t.Fatalf("room %s is not made: %d %v", name, status, made)
	}
	return fmt.Sprint("/api/v1/rooms/", made["id"])
}

// has looks for a room at a node.
func (p *running) has(room string) {
	p.t.Helper()
	if status, is := p.api("GET", room, ""); status != http.StatusOK {
		p.t.Errorf("%s has no %s: %d %v", p.name, room, status, is)
	}
}

// TestAClockThatWasWrongBeforeOthersCame has a node with a clock that is ahead start while it reaches nobody, so that it opens.
// When the others are back it is outvoted, and new visitors are sent elsewhere; what was changed there stays.
func TestAClockThatWasWrongBeforeOthersCame(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	nodes := serveMesh(t, startOrigin(t), []string{"a", "a", "b"}, "--host", "shop.example")
	wrong := nodes[2]
	nodes[0].stop()
	nodes[1].stop()
	wrong.setClock(10 * time.Minute)
	wrong.awaitLong("is ready, alone", ready)
	early := wrong.makeRoom("early")
	nodes[0].start()
	nodes[1].start()
	for _, p := range nodes[:2] {
		p.awaitLong("is ready", func(s node.Status) bool { return s.Ready && s.Clock == "ok" })
	}
	wrong.awaitLong("is outvoted", isClosed)
	if status, why := wrong.readyz(); status != http.StatusServiceUnavailable || !strings.Contains(why, "most of which agree: set it") {
		t.Errorf("balancers are told %d %s", status, why)
	}
	if status, _ := wrong.asked("shop.example"); status != 200 {
		t.Errorf("a visitor who comes all the same is answered %d", status)
	}
	wrong.setClock(0)
	wrong.awaitLong("is ready", func(s node.Status) bool { return s.Ready && s.Clock == "ok" })
	nodes[0].has(wrong.makeRoom("late"))
	nodes[1].has(early)
}
