package node

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/transport"
)

const (
	identityFile = "identity.json"
	countsFile   = "counts"
	lockFile     = "lock"
)

// ErrInUse says that another process works in the data directory.
var ErrInUse = errors.New("another ropeline works in this data directory")

// DataDir is the directory that makes a node the same node after a restart. It
// holds the node's id and boot number, its store, and what the node last counted.
// One process at a time has it open. Its methods are not safe for concurrent use, but for
// Mesh, SetMesh, Refuse and KeepIdentity.
type DataDir struct {
	root   *os.Root
	lock   *os.File
	self   crdt.Incarnation
	stored uint64 // the start that opened the store last; 0: none did
	named  bool   // somebody chose the id
	key    []byte // see Key

	writing sync.Mutex     // guards mesh, and the identity file
	mesh    bootstrap.Disk // of which mesh the directory is

	refused string // why no start may use the directory; empty: it may be used
}

type identity struct {
	Node   string `json:"node"`
	Boot   uint64 `json:"boot"`
	Key    []byte `json:"key"`
	Stored uint64 `json:"stored,omitempty"`

	Refused string `json:"refused,omitempty"`

	Mesh *meshFile `json:"mesh,omitempty"`
}

// OpenDataDir opens or makes the directory and starts a new incarnation: the
// raised boot number is on disk, in file and directory, before it returns. A
// directory without an identity makes a new node, with a key, and the id want or, where that
// is zero, that of the key. A node whose certificate names its id gives it as want;
// a directory of another node is then refused, as is one that Refuse has marked: with
// an error that wraps ErrCopied. But where the node was declared dead and nobody gave its id, a new
// node starts in its place.
func OpenDataDir(path string, want crdt.NodeID) (_ *DataDir, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	d := &DataDir{root: root, named: want != crdt.NodeID{}}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if err := d.takeLock(); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	id, err := d.readIdentity(want)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	if want != (crdt.NodeID{}) && id.Node != want {
		return nil, fmt.Errorf("data directory %s belongs to node %s, the certificate to node %s; use the certificate of that node, or another --data-dir", path, id.Node, want)
	}
	if d.refused != "" {
		switch {
		case d.refused != ErrDeclaredDead.Error():
			return nil, fmt.Errorf("data directory %s: start %d of node %s was the last: %s (%w)", path, id.Boot, id.Node, d.refused, ErrCopied)
		case want != crdt.NodeID{}:
			return nil, fmt.Errorf("data directory %s: start %d of node %s was the last: %w", path, id.Boot, id.Node, ErrDeclaredDead)
		}
		if id, err = d.renew(); err != nil {
			return nil, fmt.Errorf("data directory %s: %w", path, err)
		}
	}
	if want == (crdt.NodeID{}) && id.Node != crdt.NodeID(transport.IDOf(d.key)) {
		return nil, fmt.Errorf("data directory %s belongs to node %s, whose id is that of a certificate, or of an earlier version; use that certificate, or move the directory away to start as a new node", path, id.Node)
	}
	id.Boot++
	if err := d.writeIdentity(id); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	d.self = id
	return d, nil
}

// Sub makes a directory in this one, for another part of the node, and returns
// its path.
func (d *DataDir) Sub(name string) (string, error) {
	if err := d.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return filepath.Join(d.root.Name(), name), nil
}

// Key returns what nobody has who has not this directory, or a copy of it. It is the same at all starts, and the id of
// the node follows from it unless that was chosen.
func (d *DataDir) Key() []byte { return d.key }

// Self returns this start of this node.
func (d *DataDir) Self() crdt.Incarnation { return d.self }

// Close gives the directory back.
func (d *DataDir) Close() error {
	var errs []error
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(append(errs, d.root.Close())...)
}

// takeLock holds an advisory lock that the kernel drops when the process dies.
func (d *DataDir) takeLock() error {
	f, err := d.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%w; stop it, or give this node a --data-dir of its own", ErrInUse)
		}
		return fmt.Errorf("lock: %w", err)
	}
	d.lock = f
	return nil
}

func (d *DataDir) readIdentity(want crdt.NodeID) (crdt.Incarnation, error) {
	text, err := d.root.ReadFile(identityFile)
	if errors.Is(err, fs.ErrNotExist) {
		if len(d.key) == 0 {
			d.key = newKey()
		}
		return crdt.Incarnation{Node: cmp.Or(want, crdt.NodeID(transport.IDOf(d.key)))}, nil
	}
	if err != nil {
		return crdt.Incarnation{}, err
	}
	var stored identity
	if err := json.Unmarshal(text, &stored); err != nil {
		return crdt.Incarnation{}, fmt.Errorf("%s is damaged (%w); move the directory away to start as a new node", identityFile, err)
	}
	node, err := crdt.ParseNodeID(stored.Node)
	if err == nil && len(stored.Key) == 0 {
		err = errors.New("it has no key")
	}
	if err != nil {
		return crdt.Incarnation{}, fmt.Errorf("%s is damaged (%w); move the directory away to start as a new node", identityFile, err)
	}
	if d.mesh, err = stored.Mesh.disk(); err != nil {
		return crdt.Incarnation{}, fmt.Errorf("%s is damaged (%w); move the directory away to start as a new node", identityFile, err)
	}
	d.stored, d.refused, d.key = stored.Stored, stored.Refused, stored.Key
	return crdt.Incarnation{Node: node, Boot: stored.Boot}, nil
}

func (d *DataDir) writeIdentity(id crdt.Incarnation) error {
	text, err := json.Marshal(identity{Node: id.Node.String(), Boot: id.Boot, Key: d.key, Stored: d.stored, Refused: d.refused, Mesh: meshFileOf(d.mesh)})
	if err != nil {
		return err
	}
	return d.replace(identityFile, append(text, '\n'))
}

// KeepIdentity writes the identity again if somebody has removed it while the node runs: the next start would be that of
// a new node, on the store of this one, which is refused. One that another process has put there is not ours to replace.
func (d *DataDir) KeepIdentity() (written bool, err error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	if _, err := d.root.Lstat(identityFile); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, d.writeIdentity(d.self)
}

func newKey() []byte {
	key := make([]byte, 32)
	rand.Read(key) // never fails: crypto/rand ends the process instead
	return key
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// replace writes a file, of parts, so that a crash leaves the old content or the new.
func (d *DataDir) replace(name string, parts ...[]byte) error {
	temp := name + ".new"
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := d.root.Rename(temp, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
