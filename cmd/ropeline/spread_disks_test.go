package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
)

var (
	changes     = flag.Int("changes", 6, "how many changes TestAnAnswerIsOnASecondDisk makes")
	changesSeed = flag.Uint64("changes-seed", 1, "what its nodes, rooms and moments are drawn from")
)

// changed is what a client knows of the rooms that it has numbered at some nodes, by turns. A change gives a room
// the next number, so that a room with a lower one than was answered has lost a change.
type changed struct {
	*rand.Rand
	nodes   []*running
	rooms   []string
	n       int
	on      [][]int // node, room: the last number that an answer says is on that node's disk
	late    int     // answers that named a node
	without int     // those that named none
}

// change changes one room at one node. An answer says who may not have it on disk; no answer says nothing.
func (c *changed) change() {
	c.n++
	at, r := c.IntN(len(c.nodes)), c.IntN(len(c.rooms))
	p := c.nodes[at]
	body := strings.NewReader(fmt.Sprintf(`{"description":"%d"}`, c.n))
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPatch, "http://"+p.admin+"/api/v1/rooms/"+c.rooms[r], body)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // it was killed
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		p.t.Fatalf("change %d at %s: status %d", c.n, p.name, resp.StatusCode)
	}
	names := strings.Split(resp.Header.Get("Ropeline-Not-Yet-At"), ", ")
	if names[0] == "" {
		c.without++
	} else {
		c.late++
	}
	for i, o := range c.nodes {
		if !slices.Contains(names, o.name) {
			c.on[i][r] = c.n
		}
	}
}

// number returns that of a room at a node; -1: the node does not say.
func (c *changed) number(p *running, room string) int {
	resp, err := http.Get("http://" + p.admin + "/api/v1/rooms/" + room)
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	var is struct{ Description string }
	if json.NewDecoder(resp.Body).Decode(&is) != nil {
		return -1
	}
	n, err := strconv.Atoi(is.Description)
	if err != nil {
		return -1
	}
	return n
}

// lose has a node be killed within a change and its disk deleted, and kills the others, who then know what is on
// their disks: nothing is lost of what was on one of these.
func (c *changed) lose(t *testing.T, dir string) {
	gone := c.IntN(len(c.nodes))
	lost, err := c.nodes[gone].status()
	if err != nil {
		t.Fatal(err)
	}
	killed := make(chan struct{})
	time.AfterFunc(time.Duration(c.IntN(400_000))*time.Microsecond, func() {
		c.nodes[gone].kill()
		close(killed)
	})
	for open := true; open; c.change() {
		select {
		case <-killed:
			open = false
		default:
		}
	}
	var left []*running
	must := make([]int, len(c.rooms))
	for i, p := range c.nodes {
		if i == gone {
			continue
		}
		left = append(left, p)
		p.kill()
		for r := range must {
			must[r] = max(must[r], c.on[i][r])
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, c.nodes[gone].name)); err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		p.start()
	}
	for _, p := range left {
		p.await("is ready again", 30*time.Second, func(s node.Status) bool { return s.Ready && sees(1, "alive")(s) })
	}
	for r, want := range must {
		for i, p := range c.nodes {
			if i == gone {
				continue
			}
			has := c.number(p, c.rooms[r])
			got := has // the other one may know more, and tells it
			rig.Until(t.Context(), 20*time.Second, 50*time.Millisecond, func() bool { got = c.number(p, c.rooms[r]); return got >= want })
			if has < c.on[i][r] || got < want || got > c.n {
				t.Fatalf("%s was killed with its disk after %d changes, and %s has number %d of room %d, and in the end %d; want %d, and in the end %d, or later ones",
					c.nodes[gone].name, c.n, p.name, has, r, got, c.on[i][r], want)
			}
		}
	}
	// One that was there for a moment only may have said nothing of itself that is on a disk: it is known to nobody.
	rig.Until(t.Context(), 10*time.Second, 100*time.Millisecond, func() bool {
		_, code := says(t, t.Context(), "http://"+left[0].admin, "node", "declare-dead", lost.Node, "--gone-for-good")
		return code == 0
	})
	clear(c.on[gone])
	c.nodes[gone].start()
	for _, p := range c.nodes {
		p.await("is ready and sees both others", 30*time.Second, func(s node.Status) bool { return s.Ready && sees(2, "alive")(s) })
	}
}

// TestAnAnswerIsOnASecondDisk has a client change rooms at three nodes by turns. Each time that a node is killed, at
// any moment, and its disk is gone, the two others know of all changes that were answered as being on their disks:
// of each that was answered without naming a node. The operator declares the lost one dead. make changes makes 1,000.
func TestAnAnswerIsOnASecondDisk(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	nodes := meshOf(t, startOrigin(t), []string{"a", "a", "b"}, nobody, "--host", "elsewhere.example")
	for _, p := range nodes { // one that has just come may have been told of nobody else, when it is killed, and that one be lost
		for _, o := range nodes {
			if o != p && !slices.Contains(p.args, o.mesh) {
				p.args = append(p.args, "--join", o.mesh)
			}
		}
	}
	c := &changed{Rand: rand.New(rand.NewPCG(*changesSeed, 1)), nodes: nodes}
	for i := range 5 {
		status, made := nodes[0].api("POST", "/api/v1/rooms", fmt.Sprintf(`{"name":"r%d","host":"shop%[1]d.example","description":"0","total_active_users":9,"new_users_per_minute":9}`, i))
		if status != http.StatusOK {
			t.Fatalf("room %d: %d %v", i, status, made)
		}
		c.rooms = append(c.rooms, fmt.Sprint(made["id"]))
	}
	for range nodes {
		c.on = append(c.on, make([]int, len(c.rooms)))
	}
	dir := filepath.Dir(nodes[0].args[slices.Index(nodes[0].args, "--data-dir")+1])
	losses := 0
	for ; c.n < *changes; losses++ {
		c.lose(t, dir)
	}
	if c.without == 0 {
		t.Error("no change was answered as being on all disks, so nothing was tried")
	}
	t.Logf("%d changes, %d answered without naming a node, %d naming one; %d disks were lost", c.n, c.without, c.late, losses)
}
