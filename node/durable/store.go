package durable

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of what a store keeps.
const (
	MaxObjectName = 512       // bytes
	MaxKey        = 2 << 10   // bytes
	MaxValue      = 128 << 10 // bytes
)

var (
	// ErrBroken says that an earlier commit failed. Nobody knows whether it is on
	// disk, so that nothing is built on it: the way on is a new store, made from
	// what is confirmed.
	ErrBroken = errors.New("store is broken")
	// ErrCorrupt says that a store does not hold what was confirmed.
	ErrCorrupt = errors.New("store is damaged")
	// ErrGone says that a store is not any more where it was opened.
	ErrGone = errors.New("store is gone from its path")
	// ErrInUse says that another process has the file open.
	ErrInUse = errors.New("store is in use by another process")
	// ErrClosed says that the store, or the runtime of objects, has been closed.
	ErrClosed = errors.New("closed")
	// ErrLimit says that a name, key, value or number is beyond its limit. Nothing
	// was changed.
	ErrLimit = errors.New("limit exceeded")
)

// Write sets one key of one object. A nil Value deletes the key; an empty one is
// a value like others.
type Write struct {
	Object, Key string
	Value       []byte
}

// check returns ErrLimit for what no store keeps.
func (w Write) check() error {
	switch {
	case w.Object == "" || len(w.Object) > MaxObjectName:
		return fmt.Errorf("%w: the name of an object has 1 to %d bytes, not %d", ErrLimit, MaxObjectName, len(w.Object))
	case strings.IndexByte(w.Object, 0) >= 0:
		return fmt.Errorf("%w: the name of object %q contains a zero byte", ErrLimit, w.Object)
	case w.Key == "" || len(w.Key) > MaxKey:
		return fmt.Errorf("%w: a key has 1 to %d bytes, not %d (object %q)", ErrLimit, MaxKey, len(w.Key), w.Object)
	case len(w.Value) > MaxValue:
		return fmt.Errorf("%w: a value has at most %d bytes, not %d (object %q, key %q)", ErrLimit, MaxValue, len(w.Value), w.Object, w.Key)
	}
	return nil
}

// Store keeps the keys of objects. Reads show what the last successful Commit
// left, whole batches only, and go on after a failed one. Any goroutine may read
// at any time; one at a time commits. Values that are returned belong to the
// caller; those that are given are not kept.
type Store interface {
	// Get returns the value of a key, nil where there is none.
	Get(object, key string) ([]byte, error)
	// List yields the keys of an object that lie in r, in order, until yield
	// returns false. yield may not call the store.
	List(object string, r Range, yield func(key string, value []byte) bool) error
	// Load yields everything, in order of object and key, until yield returns
	// false. yield may not call the store.
	Load(yield func(Write) bool) error
	// Commit makes a batch durable, all of it or nothing; of several writes to a
	// key the last one counts. After nil it survives any crash. After an error it
	// may be on disk or not, reads do not show it, and every further Commit fails
	// with ErrBroken. Only a batch beyond the limits (ErrLimit) is refused without
	// harm.
	Commit(batch []Write) error
	// Check returns ErrGone if what is committed would not be found by the next Open: the file was
	// removed or replaced, or its folder renamed. It looks there, and costs no write.
	Check() error
	// Close gives the store back. Its content stays, except in memory.
	Close() error
}

// Disk is a place for stores: real files, or what a test takes for them.
type Disk interface {
	// Open opens the store at path; where there is none, it makes an empty one.
	Open(path string) (Store, error)
	// Create makes a store with exactly this content and opens it. It replaces
	// the one at path as a whole: a crash, or an error, leaves either the old or
	// the new. A store that is still open there keeps its old file and can no
	// longer reach path; close it afterwards.
	Create(path string, all []Write) (Store, error)
	// Free returns how many bytes may still be written where path lies, and how many
	// there are in all; the largest number where nobody can tell.
	Free(path string) (free, size int64, err error)
}

// Range selects keys of one object. The zero value selects all of them, in rising
// order.
type Range struct {
	Prefix  string // only keys that begin with it
	Start   string // only keys from here on; empty: from the first
	End     string // only keys before this one; empty: to the last
	Limit   int    // at most so many; 0: all
	Reverse bool   // from the last to the first; Limit then keeps the last ones
}

// bounds returns the keys lo <= key < hi that the range selects; hi is empty where
// nothing bounds it.
func (r Range) bounds() (lo, hi string) {
	lo, hi = max(r.Start, r.Prefix), r.End
	if after := afterPrefix(r.Prefix); after != "" && (hi == "" || after < hi) {
		hi = after
	}
	return lo, hi
}

// afterPrefix returns the first key after all that begin with prefix, or "" where
// there is none.
func afterPrefix(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// contains reports whether the range selects key, whatever the limit.
func (r Range) contains(key string) bool {
	lo, hi := r.bounds()
	return key >= lo && (hi == "" || key < hi)
}
