package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// bootMesh is three nodes that are started by one command line, but for names and addresses,
// in front of an origin that counts who gets there.
type bootMesh struct {
	t     *testing.T
	rnd   *rand.Rand
	dir   string
	nodes []*running
	came  *atomic.Int64
}

// bootLimit is how many visitors may be inside. Sessions outlast the test, so that is how
// many may ever reach the origin.
const bootLimit = 30

func newBootMesh(t *testing.T, seed uint64) *bootMesh {
	t.Helper()
	m := &bootMesh{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), came: new(atomic.Int64)}
	origin := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // the nodes ask for HEAD by themselves
			m.came.Add(1)
		}
	}))
	t.Cleanup(origin.Close)
	secret := filepath.Join(m.dir, "secret.key")
	keygen(t, secret)
	var all []string
	for _, name := range []string{"a1", "a2", "b1"} {
		p := &running{t: t, name: name, site: name[:1], http: freeAddress(t), admin: freeAddress(t), mesh: freeAddress(t)}
		m.nodes, all = append(m.nodes, p), append(all, p.mesh)
		p.endWithTest()
	}
	for _, p := range m.nodes {
		p.args = []string{
			"--origin", origin.URL, "--secret-file", secret, "--mesh", p.mesh, "--data-dir", m.data(p),
			"--join", strings.Join(all, ","), "--bootstrap-nodes", "a1,a2,b1", "--total-active-users", fmt.Sprint(bootLimit),
			"--new-users-per-minute", "100000", "--session-duration", "10m", "--max-connections-per-address", "1000",
		}
	}
	return m
}

func (m *bootMesh) data(p *running) string { return filepath.Join(m.dir, p.name) }

// empty kills nodes, takes their disks away, and starts them by the same command line.
func (m *bootMesh) empty(nodes ...*running) {
	m.t.Helper()
	for _, p := range nodes {
		p.kill()
		if err := os.RemoveAll(m.data(p)); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, p := range nodes {
		p.start()
	}
}

// visit sends that many new visitors to each node.
func (m *bootMesh) visit(each int) {
	m.t.Helper()
	for _, p := range m.nodes {
		for range each {
			req, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, "http://"+p.http+"/", nil)
			if err != nil {
				m.t.Fatal(err)
			}
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	}
}

// settle waits until all nodes are of one mesh, in which nothing was made twice, and returns
// which one that is. With capacity, the nodes have to be ready.
func (m *bootMesh) settle(capacity bool) string {
	m.t.Helper()
	mesh := ""
	for _, p := range m.nodes {
		p.await("is of a mesh, and sees the others", 40*time.Second, func(s node.Status) bool {
			return s.Mesh != "" && sees(len(m.nodes)-1, "alive")(s) && (s.Ready || !capacity)
		})
		s, err := p.status()
		if err != nil {
			m.t.Fatal(err)
		}
		if mesh == "" {
			mesh = s.Mesh
		}
		if s.Mesh != mesh {
			m.t.Fatalf("%s is of mesh %s, others of %s", p.name, s.Mesh, mesh)
		}
		for _, r := range s.Rooms {
			if r.Rights != nil && r.Rights.Minted.Places > bootLimit {
				m.t.Errorf("%s knows of %d rights, the limit is %d", p.name, r.Rights.Minted.Places, bootLimit)
			}
		}
	}
	return mesh
}

// TestBootstrapOnce starts three nodes by one command line, in any order and at any
// distance, empties the disk of any of them at any time, and of two at once when there is a
// mesh. There is one mesh, and no more visitors ever get to the origin than may be inside.
func TestBootstrapOnce(t *testing.T) {
	t.Parallel()
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			bootstrapOnce(newBootMesh(t, seed))
		})
	}
}

func bootstrapOnce(m *bootMesh) {
	t := m.t
	order := m.rnd.Perm(len(m.nodes))
	for _, i := range order {
		m.nodes[i].start()
		time.Sleep(time.Duration(m.rnd.Int64N(int64(1500 * time.Millisecond))))
	}
	// A mesh is promised 4 s after the last start, and minted a moment later.
	time.Sleep(time.Duration(m.rnd.Int64N(int64(6 * time.Second))))
	first := m.nodes[m.rnd.IntN(len(m.nodes))]
	m.empty(first)
	mesh := m.settle(false)
	m.visit(bootLimit)
	i := m.rnd.IntN(len(m.nodes))
	m.empty(m.nodes[i], m.nodes[(i+1)%len(m.nodes)])
	if again := m.settle(false); again != mesh {
		t.Fatalf("mesh %s after two disks were lost, %s before", again, mesh)
	}
	m.visit(bootLimit)
	if n := m.came.Load(); n > bootLimit {
		t.Errorf("%d visitors got in, the limit is %d", n, bootLimit)
	}
	for _, p := range m.nodes {
		if strings.Contains(p.Log(), noneLeft) {
			t.Errorf("%s says that no bootstrap node is left:\n%s", p.name, p.Log())
		}
	}
	t.Logf("started in order %v, emptied %s, then all but %s: %d of %d visitors got in", order, first.name, m.nodes[(i+2)%3].name, m.came.Load(), bootLimit)
}

// TestBootstrapWaits starts two of three nodes: nobody is let in, and each says for whom it
// waits. When the third comes with another list, both lists are named; with the right one,
// everything the limit allows is there. A second node under a name that is taken ends.
func TestBootstrapWaits(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	m := newBootMesh(t, 1)
	a1, a2, b1 := m.nodes[0], m.nodes[1], m.nodes[2]
	a1.start()
	a2.start()
	a1.await("waits for b1", 30*time.Second, func(s node.Status) bool {
		return !s.Ready && strings.Contains(s.Reason, "bootstrap waits for b1 (not reached)")
	})
	a2.await("waits for a1", 30*time.Second, func(s node.Status) bool { return !s.Ready && strings.Contains(s.Reason, "bootstrap waits for a1") })
	m.visit(1)
	right := b1.args
	b1.args = append([]string{}, right...)
	for i, a := range b1.args {
		if a == "a1,a2,b1" {
			b1.args[i] = "b1,a1"
		}
	}
	b1.start()
	a1.await("names both lists", 30*time.Second, func(s node.Status) bool {
		return strings.Contains(s.Reason, "a1,a2,b1") && strings.Contains(s.Reason, "node b1 was given b1,a1")
	})
	b1.kill()
	b1.args = right
	b1.start()
	for _, p := range m.nodes {
		p.await("is ready", 40*time.Second, ready)
	}
	m.visit(bootLimit)
	if n := m.came.Load(); n > bootLimit || n < bootLimit/2 {
		t.Errorf("%d visitors got in, the limit is %d", n, bootLimit)
	}
	twin := &running{t: t, name: "a2", site: "a", http: freeAddress(t), admin: freeAddress(t), mesh: freeAddress(t)}
	for _, a := range a2.args {
		a = strings.ReplaceAll(a, m.data(a2), m.data(a2)+"-twin")
		twin.args = append(twin.args, strings.ReplaceAll(a, a2.mesh, twin.mesh))
	}
	for i, a := range twin.args {
		if a == "--join" {
			twin.args[i+1] = a1.mesh + "," + a2.mesh + "," + b1.mesh
		}
	}
	twin.start()
	select {
	case <-twin.Ended():
	case <-time.After(30 * time.Second):
		twin.kill()
		t.Error("a second node named a2 goes on")
	}
	s, err := a2.status()
	if log := twin.Log(); err != nil || !strings.Contains(log, "another node has this name") || !strings.Contains(log, s.Node) || !strings.Contains(log, a2.mesh) {
		t.Errorf("a2 is %v (%v), and the second says\n%s", s.Node, err, log)
	}
}

// noneLeft is what the log of a node says once.
const noneLeft = "no bootstrap node is in this mesh any more"

// TestTheLastBootstrapNodeLeaves: as long as another bootstrap node stays, one that leaves says
// nothing of that. The last one says in its answer and its log that empty machines of those names
// would make a second mesh, and what to do; the others say so from then on, in the log and in
// their status, until they are given another list.
func TestTheLastBootstrapNodeLeaves(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	m := newBootMesh(t, 1)
	for _, name := range []string{"c1", "c2"} {
		p := &running{t: t, name: name, site: "c", http: freeAddress(t), admin: freeAddress(t), mesh: freeAddress(t)}
		p.args = slices.Clone(m.nodes[0].args)
		for i, a := range p.args {
			p.args[i] = map[string]string{"--mesh": p.mesh, "--data-dir": m.data(p)}[p.args[max(0, i-1)]]
			p.args[i] = cmp.Or(p.args[i], a)
		}
		m.nodes = append(m.nodes, p)
		t.Cleanup(p.kill)
	}
	for _, p := range m.nodes {
		p.start()
	}
	m.settle(true)
	c1, c2 := m.nodes[3], m.nodes[4]
	leave := func(p, by *running) string {
		t.Helper()
		code, answer := by.api(http.MethodPost, "/api/v1/nodes/"+p.name+"/drain", `{"leave":true}`)
		if code != http.StatusOK {
			t.Fatalf("%s is told to leave: %d %v", p.name, code, answer)
		}
		select {
		case <-p.Ended():
		case <-time.After(30 * time.Second):
			t.Fatalf("%s has not left", p.name)
		}
		return fmt.Sprint(answer)
	}
	for i, p := range m.nodes[:3] {
		answer := leave(p, c1)
		last := i == 2
		for _, want := range []string{"the last of the bootstrap nodes a1,a2,b1", "--bootstrap-nodes c1,c2"} {
			if strings.Contains(answer, want) != last || strings.Contains(p.Log(), want) != last {
				t.Errorf("%s: %q said: want %v; the answer is %s, the log\n%s", p.name, want, last, answer, p.Log())
			}
		}
		if s, err := c1.status(); err != nil || s.Bootstrap != "" && !last {
			t.Errorf("c1 says %q (%v) though a bootstrap node is there", s.Bootstrap, err)
		}
	}
	none := func(s node.Status) bool {
		return strings.Contains(s.Bootstrap, "none of the bootstrap nodes a1,a2,b1 is in the mesh") && strings.Contains(s.Bootstrap, "--bootstrap-nodes c2")
	}
	c1.await("says that none is left", 30*time.Second, none)
	if said := strings.Count(c1.Log(), noneLeft); said != 1 {
		t.Errorf("the log of c1 says %d times that none is left, want once:\n%s", said, c1.Log())
	}
	c2.kill()
	for i, a := range c2.args {
		if a == "a1,a2,b1" {
			c2.args[i] = "c1,c2"
		}
	}
	c2.start()
	c2.await("is ready, with the new list", 40*time.Second, ready)
	for _, p := range m.nodes[:3] { // the machines are used again, as the warning says
		for i, a := range p.args {
			if a == "a1,a2,b1" {
				p.args[i] = "c1,c2"
			}
			if p.args[max(0, i-1)] == "--join" {
				p.args[i] = c1.mesh
			}
		}
		if err := os.RemoveAll(m.data(p)); err != nil {
			t.Fatal(err)
		}
		p.start()
	}
	m.settle(true)
}
