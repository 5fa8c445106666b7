package durable

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	lockTimeout = time.Second

	// mapSize is address space, not memory and not disk. While the whole file fits
	// into it, the snapshot that serves reads and a commit do not wait for each
	// other; maxFile is below it by more than bbolt grows a file at once.
	mapSize = 1 << 30
	maxFile = mapSize - 64<<20
)

// File is a store in one bbolt file.
//
// Reads come from a snapshot of the last confirmed commit that is kept open, also
// while a commit is under way and after one has failed. All entries carry a
// checksum, and the whole a sum of them: bbolt checks neither data pages nor that a
// disk has kept them all, and rights cannot be built anew from damaged ones.
type File struct {
	path string
	is   os.FileInfo // which file was opened
	db   *bbolt.DB

	mu      sync.RWMutex // guards the following; readers hold it while they use the snapshot
	tx      *bbolt.Tx    // the snapshot; nil once closed
	entries *bbolt.Bucket

	commit sync.Mutex // guards the following; taken before mu
	broken error      // why no commit is possible any more
	stuck  bool       // bbolt panicked while it held its locks
	sum    tally
}

var _ Store = (*File)(nil)

// Files is the disk of real files.
type Files struct{}

var _ Disk = Files{}

// Open is [Open].
func (Files) Open(path string) (Store, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err // not a nil *File in a Store
	}
	return f, nil
}

// Create is [Create].
func (Files) Create(path string, all []Write) (Store, error) {
	f, err := Create(path, all)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Open opens the store in the file at path, or makes an empty one where there is
// none. It reads the whole file once, and refuses one that does not hold what was
// confirmed (ErrCorrupt) and one that another process has open (ErrInUse).
func Open(path string) (*File, error) {
	fresh, err := isFresh(path)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	if fresh {
		return Create(path, nil) // a crash leaves no half of a file
	}
	return open(path, (*File).verify)
}

// open opens a file and has its content checked, or written.
func open(path string, begin func(*File) error) (*File, error) {
	db, is, err := openBolt(path)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		err = fmt.Errorf("%w; stop it, or give this node a data directory of its own", ErrInUse)
	case err != nil && isDamage(err):
		err = corrupt(err)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	f := &File{path: path, is: is, db: db}
	if err := guard(func() error { return begin(f) }); err != nil {
		return nil, fmt.Errorf("store %s: %w", path, errors.Join(err, f.Close()))
	}
	return f, nil
}

// isFresh reports whether there is no store at path yet. An empty file is none.
func isFresh(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, errors.New("not a file")
	}
	if size := info.Size(); size > 0 && size < int64(2*os.Getpagesize()) {
		return false, corrupt(fmt.Errorf("it has %d bytes only", size))
	}
	return info.Size() == 0, nil
}

// openBolt opens the file. The list of free pages is kept on disk although a commit
// without it would write a page less: to find free pages at an opening, and after a
// failed commit, bbolt otherwise walks the file in a goroutine of its own, where a
// panic over a damaged page cannot be caught.
func openBolt(path string) (db *bbolt.DB, is os.FileInfo, err error) {
	var file *os.File
	err = guard(func() error {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:         lockTimeout,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: mapSize,
			MaxSize:         maxFile,
			NoStatistics:    true,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				f, err := os.OpenFile(name, flag, mode)
				if file = f; err == nil {
					is, err = f.Stat()
				}
				return f, err
			},
		})
		return err
	})
	if isPanic(err) && file != nil {
		// bbolt gives the file back only where it returns. The map that it has left
		// behind would hold the lock beyond the file's end.
		syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
		file.Close()
	}
	return db, is, err
}

// guard runs f and turns a panic of bbolt, also over a page that cannot be read,
// into an error.
func guard(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			err = panicked{p}
		}
	}()
	return f()
}

// panicked is a panic of bbolt.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func isPanic(err error) bool {
	_, is := errors.AsType[panicked](err)
	return is
}

func isDamage(err error) bool {
	return isPanic(err) || errors.Is(err, berrors.ErrInvalid) ||
		errors.Is(err, berrors.ErrChecksum) || errors.Is(err, berrors.ErrVersionMismatch)
}

// corrupt says what to do, which is not to go on with half of the truth: what this
// node has given away must not be forgotten.
func corrupt(err error) error {
	if errors.Is(err, ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w (%w); it cannot be repaired: move the data directory away to start as a new node, and declare this one dead so that its rights are recovered", ErrCorrupt, err)
}

// Get is [Store.Get].
func (f *File) Get(object, key string) (value []byte, err error) {
	err = f.read(func(b *bbolt.Bucket) error {
		k := appendKey(nil, object, key)
		value, err = openEntry(k, b.Get(k))
		return err
	})
	return value, err
}

// List is [Store.List].
func (f *File) List(object string, r Range, yield func(string, []byte) bool) error {
	return f.read(func(b *bbolt.Bucket) error {
		n := 0
		return walk(b, object, r, func(k, sealed []byte) (bool, error) {
			value, err := openEntry(k, sealed)
			if err != nil {
				return false, err
			}
			n++
			return yield(string(k[len(object)+1:]), value) && n != r.Limit, nil
		})
	})
}

// walk visits the entries of an object that lie in r, whatever its limit.
func walk(b *bbolt.Bucket, object string, r Range, visit func(k, sealed []byte) (bool, error)) error {
	lo, hi := r.bounds()
	first := appendKey(nil, object, lo)
	last := appendKey(nil, object, hi)
	if hi == "" {
		last[len(object)] = 1 // behind all keys of this object
	}
	if bytes.Compare(first, last) >= 0 {
		return nil
	}
	c := b.Cursor()
	next := c.Next
	k, v := c.Seek(first)
	if r.Reverse {
		next = c.Prev
		if behind, _ := c.Seek(last); behind == nil {
			k, v = c.Last()
		} else {
			k, v = c.Prev()
		}
	}
	for ; k != nil && bytes.Compare(k, first) >= 0 && bytes.Compare(k, last) < 0; k, v = next() {
		if more, err := visit(k, v); err != nil || !more {
			return err
		}
	}
	return nil
}

// Load is [Store.Load].
func (f *File) Load(yield func(Write) bool) error {
	return f.read(func(b *bbolt.Bucket) error {
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			w, err := openWrite(k, v)
			if err != nil {
				return err
			}
			if !yield(w) {
				return nil
			}
		}
		return nil
	})
}

// read runs f on the snapshot.
func (f *File) read(use func(*bbolt.Bucket) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.tx == nil {
		return fmt.Errorf("store %s: %w", f.path, ErrClosed)
	}
	if err := guard(func() error { return use(f.entries) }); err != nil {
		return fmt.Errorf("store %s: %w", f.path, corrupt(err))
	}
	return nil
}

// Check is [Store.Check].
func (f *File) Check() error {
	now, err := os.Stat(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: there is nothing at %s", ErrGone, f.path)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrGone, err)
	case !os.SameFile(now, f.is):
		return fmt.Errorf("%w: another file is at %s", ErrGone, f.path)
	}
	return nil
}

// Close is [Store.Close].
func (f *File) Close() error {
	f.commit.Lock()
	defer f.commit.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken == nil {
		f.broken = ErrClosed
	}
	if f.db == nil {
		return nil
	}
	db, tx := f.db, f.tx
	f.db, f.tx, f.entries = nil, nil, nil
	if f.stuck {
		return nil // the file stays open until the process ends: to close it would wait for ever
	}
	var errs []error
	if tx != nil {
		errs = append(errs, f.orStuck(tx.Rollback))
	}
	if !f.stuck {
		errs = append(errs, guard(db.Close))
	}
	return errors.Join(errs...)
}
