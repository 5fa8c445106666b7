package server

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/gate/proof"
	"github.com/ropeline/ropeline/httpfront/operator/manage"
	"github.com/ropeline/ropeline/transport"
)

const (
	// secretSettles is how long all nodes have had a secret before it is used. Sites
	// have then fetched the public keys of proofs (httpfront.JWKSAge).
	secretSettles = 5 * time.Minute

	// secretLingers is how long what came from a secret may be shown after it was used
	// last: as long as browsers keep a pass.
	secretLingers = 24 * time.Hour

	secretLook    = 5 * time.Second // from one look at the file to the next
	secretAskLate = time.Minute     // from one question to the next, while one retires
	secretAskWait = 2 * time.Second // for the answer of a peer
)

// asker is what a mesh is for here.
type asker interface {
	Members() []transport.Peer
	Call(ctx context.Context, to transport.PeerID, method uint8, req []byte) ([]byte, error)
}

// secrets keeps the secrets of the mesh: it follows their file, tells other nodes, and
// has all that comes from a secret follow the one that is used.
type secrets struct {
	path  string // of the file
	own   bool   // this node has made it, and nobody else keeps it
	state string // the file that holds what is used
	log   *slog.Logger
	clock func() time.Time

	writing sync.Mutex // held from reading the file to replacing it

	mu       sync.Mutex // guards the following
	rotation *transport.Rotation
	known    map[transport.SecretID]transport.Secret
	missing  []string // nodes that the newest secret waits for
	told     string   // what was logged last of them
	users    []func(order []transport.Secret) error

	// Of the one goroutine in run.
	looked string    // what the file was when it was read last
	asked  time.Time // when peers were
}

// openSecrets reads the secrets of the mesh from their file. A single node has none, makes its
// own, and keeps it.
func openSecrets(file, dataDir string, clock func() time.Time, log *slog.Logger) (*secrets, error) {
	s := &secrets{path: file, log: log, clock: clock, known: map[transport.SecretID]transport.Secret{}}
	if s.path == "" {
		s.own, s.path = true, filepath.Join(dataDir, "secret.key")
		if err := makeSecret(s.path); err != nil {
			return nil, err
		}
	}
	s.state = filepath.Join(dataDir, "secret.used")
	given, looked, err := s.read()
	if err != nil {
		return nil, err
	}
	s.looked = looked
	var used transport.SecretID
	if b, err := os.ReadFile(s.state); err == nil {
		for _, g := range given {
			if id := g.ID(); id.String() == strings.TrimSpace(string(b)) {
				used = id
			}
		}
	}
	s.rotation = transport.NewRotation(s.learn(given), used, secretSettles, secretLingers, s.clock())
	return s, nil
}

// makeSecret makes a secret where there is none. A file with nothing in it is what a crash has left of such a one.
func makeSecret(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Size() > 0:
		return nil
	case err == nil:
		err = os.Remove(path)
	case errors.Is(err, os.ErrNotExist):
		err = nil
	}
	if err != nil {
		return fmt.Errorf("make a secret: %w", err)
	}
	return WriteSecret(path, transport.NewSecret().Text()+"\n")
}

// keep writes the file of a node's own secrets again if somebody has removed it: after the next start every visitor
// would be a new one.
func (s *secrets) keep() {
	if _, err := os.Lstat(s.path); !s.own || !errors.Is(err, os.ErrNotExist) {
		return
	}
	var text strings.Builder
	s.mu.Lock()
	for _, id := range s.rotation.Accepts() { // the newest first
		fmt.Fprintln(&text, s.known[id].Text())
	}
	s.mu.Unlock()
	s.writing.Lock()
	defer s.writing.Unlock()
	if WriteSecret(s.path, text.String()) == nil { // where it cannot be, reread says that there is none
		s.log.Warn("the secret of this node was removed from its data directory, and is written again", "file", s.path)
	}
}

// read returns what the file holds, and what tells whether it has changed since.
func (s *secrets) read() (given []transport.Secret, looked string, err error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return nil, "", fmt.Errorf("read the secret: %w", err)
	}
	text, err := certs.ReadFile(s.path)
	if err != nil {
		return nil, "", fmt.Errorf("read the secret: %w", err)
	}
	if given, err = transport.ParseSecrets(string(text)); err != nil {
		return nil, "", fmt.Errorf("secret in %s: %w", s.path, err)
	}
	return given, lookOf(info), nil
}

func lookOf(info os.FileInfo) string { return fmt.Sprint(info.ModTime().UnixNano(), info.Size()) }

// learn remembers secrets by their ids, which it returns.
func (s *secrets) learn(given []transport.Secret) []transport.SecretID {
	ids := make([]transport.SecretID, len(given))
	for i, g := range given {
		ids[i] = g.ID()
		s.known[ids[i]] = g
	}
	return ids
}

// order returns all secrets that are accepted: first the one that is used, then the
// others from the newest to the oldest.
func (s *secrets) order() []transport.Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orderLocked()
}

func (s *secrets) orderLocked() []transport.Secret {
	used := s.rotation.Uses()
	order := []transport.Secret{s.known[used]}
	for _, id := range s.rotation.Accepts() {
		if id != used {
			order = append(order, s.known[id])
		}
	}
	return order
}

// older returns how many of order, from the end, are older than the one that is used.
func (s *secrets) older() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	accepts := s.rotation.Accepts()
	return len(accepts) - 1 - slices.Index(accepts, s.rotation.Uses())
}

// follow has a part of the node go by the secrets, now and whenever they change.
func (s *secrets) follow(use func(order []transport.Secret) error) error {
	s.mu.Lock()
	s.users = append(s.users, use)
	s.mu.Unlock()
	return use(s.order())
}

// announce answers a node that asks for this one's secrets.
func (s *secrets) announce(context.Context, transport.Peer, []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return transport.AppendAnnouncement(nil, s.rotation.Announce(s.clock())), nil
}

// run follows the file and the mesh, which may be nil, until ctx ends.
func (s *secrets) run(ctx context.Context, mesh asker) error {
	repeat(ctx, secretLook, func() bool {
		s.look(ctx, mesh)
		return false
	})
	return nil
}

// look does what is due.
func (s *secrets) look(ctx context.Context, mesh asker) {
	s.keep()
	changed := s.reread()
	s.mu.Lock()
	waits, retires := s.rotation.Waits(), s.rotation.Retires()
	s.mu.Unlock()
	if now := s.clock(); waits || retires && now.Sub(s.asked) >= secretAskLate {
		s.asked = now
		changed = s.decide(ctx, mesh) || changed
	}
	if changed {
		s.apply()
	}
}

// reread reads the file if it has changed, and reports whether its secrets have. One that
// is not in order changes nothing.
func (s *secrets) reread() bool {
	info, err := os.Stat(s.path)
	if err == nil && lookOf(info) == s.looked {
		return false
	}
	given, looked, err := s.read()
	if err != nil {
		if text := err.Error(); text != s.looked { // once, and not every few seconds
			s.looked = text
			s.log.Error("the secrets stay as they are: their file cannot be used", "error", err)
		}
		return false
	}
	s.looked = looked
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotation.Give(s.learn(given), s.clock())
	s.log.Info("secrets read again", "file", s.path, "newest", given[0].ID().String(), "uses", s.rotation.Uses().String())
	return true
}

// decide asks all members, and reports whether something has changed.
func (s *secrets) decide(ctx context.Context, mesh asker) bool {
	var members []transport.PeerID
	var asked []transport.Peer
	names := map[transport.PeerID]string{}
	if mesh != nil {
		for _, p := range mesh.Members() {
			if p.State != transport.Left {
				members, asked = append(members, p.ID), append(asked, p)
				names[p.ID] = p.Name
			}
		}
		s.ask(ctx, mesh, asked)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.rotation.Decide(members, s.clock())
	s.missing = nil
	if s.rotation.Waits() {
		for _, id := range s.rotation.Missing(members) {
			s.missing = append(s.missing, names[id])
		}
		slices.Sort(s.missing)
	}
	text := strings.Join(s.missing, ", ")
	if text != "" && text != s.told {
		s.log.Info("the newest secret is used once these nodes have had it for a while", "for", secretSettles, "nodes", text)
	}
	s.told = text
	return changed
}

// ask has members tell of their secrets. Who does not answer has said nothing new.
func (s *secrets) ask(ctx context.Context, mesh asker, members []transport.Peer) {
	ctx, cancel := context.WithTimeout(ctx, secretAskWait)
	defer cancel()
	transport.AskAll(ctx, mesh, members, methodSecrets, nil, func(from transport.Peer, b []byte, err error) {
		if err != nil {
			return
		}
		a, err := transport.ParseAnnouncement(b)
		if err != nil {
			s.log.Warn("a node tells of its secrets in a way that is not understood", "peer", from.ID.String(), "error", err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rotation.Heard(from.ID, a)
	})
}

// apply has all that comes from secrets follow them.
func (s *secrets) apply() {
	s.mu.Lock()
	order, users := s.orderLocked(), slices.Clone(s.users)
	accepts := s.rotation.Accepts()
	maps.DeleteFunc(s.known, func(id transport.SecretID, _ transport.Secret) bool { return !slices.Contains(accepts, id) })
	s.mu.Unlock()
	used := order[0].ID().String()
	for _, use := range users {
		if err := use(order); err != nil {
			s.log.Error("the secrets have changed, and a part of the node does not follow", "error", err)
		}
	}
	// What is lost with it is only which of several goes on after a restart.
	if err := os.WriteFile(s.state, []byte(used+"\n"), 0o600); err != nil {
		s.log.Warn("which secret is used cannot be kept", "error", err)
	}
	s.log.Info("secrets", "uses", used, "accepts", len(order))
}

// status returns the secrets, the newest first.
func (s *secrets) status() []manage.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	accepts := s.rotation.Accepts()
	all := make([]manage.Key, len(accepts))
	state := "next"
	for i, id := range accepts {
		all[i] = manage.Key{ID: id.String(), State: state, Listed: s.rotation.Given(id)}
		if id == s.rotation.Uses() {
			all[i].State, state = "used", "accepted"
		}
	}
	all[0].WaitsFor = s.missing
	return all
}

// passKeys returns the keys of passes: the first secret seals, and the last ones, as many
// as older says, retire.
func passKeys(order []transport.Secret, older int) (*pass.Keyring, error) {
	var keys []pass.Key
	for i, s := range order {
		k := pass.Key{ID: s.Derive("pass key id", 1)[0], Retiring: i >= len(order)-older}
		copy(k.Secret[:], s.Derive("pass key 1", pass.KeySize))
		keys = append(keys, k)
	}
	return pass.NewKeyring(keys[0], keys[1:]...)
}

// proofKeys returns the keys of proofs: the first secret signs, and all are published.
func proofKeys(order []transport.Secret) proof.Keys {
	var keys proof.Keys
	for i, s := range order {
		k := proof.PrivateKey{Key: ed25519.NewKeyFromSeed(s.Derive("proof key 1", ed25519.SeedSize))}
		if i == 0 {
			keys.Signing = k
		} else {
			keys.Also = append(keys.Also, k.Public())
		}
	}
	return keys
}

// askerOf returns what a mesh is for secrets; nil if there is none.
func askerOf(mesh *transport.Mesh) asker {
	if mesh == nil {
		return nil
	}
	return mesh
}
