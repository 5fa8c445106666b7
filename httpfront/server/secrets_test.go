package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/gate/proof"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/transport"
)

// rotating is a mesh whose nodes have secrets, and fronts that go by them.
type rotating struct {
	t     *testing.T
	now   time.Time
	nodes []*rotatingNode
	dead  map[int]bool // nodes that do not answer
}

type rotatingNode struct {
	*secrets
	dir  string
	keys *pass.Keyring
	jwks proof.Keys
}

func newRotating(t *testing.T, n int, file string) *rotating {
	t.Helper()
	m := &rotating{t: t, now: time.Unix(1_800_000_000, 0), dead: map[int]bool{}}
	for i := range n {
		m.nodes = append(m.nodes, &rotatingNode{dir: t.TempDir()})
		m.give(i, file)
		m.start(i)
	}
	return m
}

// give replaces the file of a node.
func (m *rotating) give(i int, file string) {
	m.t.Helper()
	path := filepath.Join(m.nodes[i].dir, "given.key")
	must.OK(os.WriteFile(path, []byte(file), 0o600))
	if s := m.nodes[i].secrets; s != nil {
		s.looked = "" // two writes may have the same time
	}
}

// start starts a node, or starts it again.
func (m *rotating) start(i int) {
	m.t.Helper()
	n := m.nodes[i]
	s := must.Do(openSecrets(filepath.Join(n.dir, "given.key"), n.dir, func() time.Time { return m.now }, slog.New(slog.DiscardHandler)))
	n.secrets = s
	must.OK(s.follow(func(order []transport.Secret) (err error) {
		n.jwks = proofKeys(order)
		n.keys, err = passKeys(order, s.older())
		return err
	}))
}

// seenFrom is the mesh as one node sees it.
type seenFrom struct {
	*rotating
	i int
}

func (v seenFrom) Members() (all []transport.Peer) {
	for j := range v.nodes {
		if j != v.i {
			all = append(all, transport.Peer{ID: transport.PeerID{byte(j + 1)}, Name: string(rune('a' + j)), State: transport.Alive})
		}
	}
	return all
}

func (v seenFrom) Call(ctx context.Context, to transport.PeerID, method uint8, req []byte) ([]byte, error) {
	j := int(to[0]) - 1
	if v.dead[j] {
		return nil, errors.New("no answer")
	}
	return calls{methodSecrets: v.nodes[j].announce}.onCall(ctx, transport.Peer{}, method, req)
}

// look has every node that lives look once, each followed by a check.
func (m *rotating) look() {
	m.t.Helper()
	for i, n := range m.nodes {
		if !m.dead[i] {
			n.look(m.t.Context(), seenFrom{m, i})
			m.check()
		}
	}
}

// check has each node give a visitor a pass and a proof, with which they go to each other
// one.
func (m *rotating) check() {
	m.t.Helper()
	p := node.Pass{Visitor: node.VisitorID{1}, Room: crdt.RoomID{2}, Arrival: m.now.UTC()}
	for i, a := range m.nodes {
		text := a.keys.AppendSeal(nil, p, "shop.example")
		for j, b := range m.nodes {
			if got, err := b.keys.Open(text, p.Room, "shop.example"); err != nil || got != p {
				m.t.Fatalf("who has a pass of node %d, which uses %s, is logged out at node %d: %v", i, a.rotation.Uses(), j, err)
			}
			published := append(b.jwks.Also, b.jwks.Signing.Public())
			if !slices.ContainsFunc(published, func(k proof.PublicKey) bool { return k.Key.Equal(a.jwks.Signing.Public().Key) }) {
				m.t.Fatalf("proofs of node %d cannot be checked with the keys of node %d", i, j)
			}
		}
	}
}

// lookLater is look once so much time has passed.
func (m *rotating) lookLater(d time.Duration) {
	m.t.Helper()
	m.now = m.now.Add(d)
	m.look()
}

func (m *rotating) wantUses(when string, id transport.SecretID) {
	m.t.Helper()
	for i, n := range m.nodes {
		if got := n.rotation.Uses(); got != id {
			m.t.Fatalf("%s: node %d uses %s, want %s", when, i, got, id)
		}
	}
}

func (m *rotating) wantAccepts(when string, secrets int) {
	m.t.Helper()
	if n := len(m.nodes[0].order()); n != secrets {
		m.t.Errorf("%s: %d secrets are accepted, want %d", when, n, secrets)
	}
}

// TestRotationLogsNobodyOut has the nodes of a mesh be given a new secret in each order,
// with the old one left in the file and without it, and visitors go from any node to any
// other between all steps.
func TestRotationLogsNobodyOut(t *testing.T) {
	old := transport.NewSecret()
	next := old.Next()
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for name, file := range map[string]string{"beside the old one": next.Text() + "\n" + old.Text() + "\n", "instead of it": next.Text() + "\n"} {
			name = fmt.Sprintf("%s, order %v, ", name, order)
			m := newRotating(t, 3, old.Text())
			m.look()
			for _, i := range order {
				m.wantUses(name+"before all have it", old.ID())
				m.give(i, file)
				m.look()
				m.lookLater(2 * secretSettles)
			}
			m.lookLater(2 * secretSettles)
			m.wantUses(name+"once all have it", next.ID())
			for _, i := range order {
				m.give(i, next.Text())
				m.look()
			}
			m.wantAccepts(name+"on the day of the change", 2)
			for range 3 {
				m.lookLater(secretLingers)
			}
			m.wantAccepts(name+"in the end", 1)
		}
	}
}

// TestRotationWaitsForWhoIsDown: and goes on with what was used through restarts.
func TestRotationWaitsForWhoIsDown(t *testing.T) {
	old := transport.NewSecret()
	next := old.Next()
	both := next.Text() + "\n" + old.Text()
	m := newRotating(t, 2, old.Text())
	m.dead[1] = true
	m.give(0, both)
	for range 3 {
		m.lookLater(time.Hour)
	}
	is := m.nodes[0].status()
	if len(is) != 2 || is[0].State != "next" || is[1].State != "used" || len(is[0].WaitsFor) != 1 || is[0].WaitsFor[0] != "b" {
		t.Errorf("the status is %+v", is)
	}
	m.start(0)
	m.check()
	m.dead[1] = false
	m.give(1, both)
	m.look()
	m.lookLater(2 * secretSettles)
	m.look()
	m.wantUses("once all have it", next.ID())
	for i := range m.nodes {
		m.start(i)
		m.check()
	}
	m.wantUses("after restarts", next.ID())
}

func TestAFileThatCannotBeReadChangesNothing(t *testing.T) {
	old := transport.NewSecret()
	m := newRotating(t, 1, old.Text())
	for _, file := range []string{"", "nothing", old.Text()[:20], transport.NewSecret().Text() + "\n" + old.Text()} {
		m.give(0, file)
		m.look()
		m.wantUses("after a file that is "+file, old.ID())
		m.wantAccepts("after a file that is "+file, 1)
	}
	path := m.nodes[0].path
	must.OK(errors.Join(os.Remove(path), os.Symlink("/dev/zero", path))) // it has no end
	m.look()
	m.wantUses("after a file without an end", old.ID())
}

// TestNoSecretIsLostFromTheFile: other nodes may send theirs while this one makes its own.
func TestNoSecretIsLostFromTheFile(t *testing.T) {
	old := transport.NewSecret()
	m := newRotating(t, 1, old.Text())
	var all sync.WaitGroup
	want := []transport.Secret{old}
	for range transport.MaxSecrets - 1 {
		next := old.Next()
		want = append(want, next)
		all.Go(func() {
			if err := m.nodes[0].add(next); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, _, err := m.nodes[0].read()
	must.OK(err)
	for _, s := range want {
		if !slices.Contains(got, s) {
			t.Errorf("secret %s is not in the file any more", s.ID())
		}
	}
}

// TestPassesMoveToTheKeyThatIsUsed: so that the old one can go.
func TestPassesMoveToTheKeyThatIsUsed(t *testing.T) {
	old := transport.NewSecret()
	next := old.Next()
	p := node.Pass{Visitor: node.VisitorID{1}, Room: crdt.RoomID{2}}
	before, after := must.Do(passKeys([]transport.Secret{old, next}, 0)), must.Do(passKeys([]transport.Secret{next, old}, 1)) // announced, and used
	for _, c := range []struct {
		by, at *pass.Keyring
		stays  bool
	}{{before, before, true}, {before, after, false}, {after, after, true}, {after, before, true}} {
		if _, as, err := c.at.OpenFrom(c.by.AppendSeal(nil, p, ""), p.Room, "", nil); err != nil || as != c.stays {
			t.Errorf("%+v: stays %v, %v", c, as, err)
		}
	}
}

// TestAnOwnSecretStays: one that was removed is written again, and what a crash has left of making one is none.
func TestAnOwnSecretStays(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "secret.key")
	open := func() *secrets { return must.Do(openSecrets("", dir, time.Now, slog.New(slog.DiscardHandler))) }
	must.OK(os.WriteFile(path, nil, 0o600))
	s := open()
	uses := s.rotation.Uses()
	for _, remove := range []bool{true, false} {
		if remove {
			must.OK(os.Remove(path))
		}
		s.look(t.Context(), nil)
		if got := open().rotation.Uses(); got != uses {
			t.Errorf("removed %v: after the next start the secret is %v, want %v", remove, got, uses)
		}
	}
}

func TestWriteSecretOverwritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	must.OK(WriteSecret(path, "secret"))
	if err := WriteSecret(path, "another"); err == nil {
		t.Error("what is there is overwritten")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "secret" {
		t.Errorf("the file has %q, %v", text, err)
	}
}
