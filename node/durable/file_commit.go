package durable

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// begin writes the frame of a new store.
func (f *File) begin() error {
	return f.write(func(tx *bbolt.Tx) error {
		about, err := tx.CreateBucketIfNotExists(aboutBucket)
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucketIfNotExists(entriesBucket); err != nil {
			return err
		}
		return errors.Join(about.Put(formatKey, []byte{format}), about.Put(tallyKey, f.sum.encode()))
	})
}

// verify reads everything that was confirmed.
func (f *File) verify() error {
	if err := guard(f.readBack); err != nil {
		return corrupt(err)
	}
	return nil
}

func (f *File) readBack() error {
	if err := f.show(); err != nil {
		return err
	}
	about := f.tx.Bucket(aboutBucket)
	if about == nil || f.entries == nil {
		return errors.New("it was not written by this program")
	}
	if v := about.Get(formatKey); len(v) != 1 || v[0] != format {
		return fmt.Errorf("its format is %v, not %d", v, format)
	}
	want, err := decodeTally(about.Get(tallyKey))
	if err != nil {
		return err
	}
	c := f.entries.Cursor()
	var last []byte
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if bytes.Compare(k, last) <= 0 {
			return fmt.Errorf("entry %q follows %q", k, last) // pages of different times may lead in a circle
		}
		if last = k; f.sum.entries == want.entries {
			return fmt.Errorf("more than the %d entries are there that were confirmed", want.entries)
		}
		if _, err := openWrite(k, v); err != nil {
			return err
		}
		f.sum.add(k, v)
	}
	if f.sum != want {
		return fmt.Errorf("%d entries are there, %d were confirmed, or some are older than that", f.sum.entries, want.entries)
	}
	return nil
}

// Commit is [Store.Commit]: one transaction of bbolt, which waits for the disk
// twice, once for the pages and once for the page that makes them count.
func (f *File) Commit(batch []Write) error {
	if err := checkAll(batch); err != nil {
		return err
	}
	f.commit.Lock()
	defer f.commit.Unlock()
	if f.broken != nil {
		return fmt.Errorf("store %s: %w", f.path, f.broken)
	}
	if len(batch) == 0 {
		return nil
	}
	sum := f.sum
	err := f.write(func(tx *bbolt.Tx) error {
		b := tx.Bucket(entriesBucket)
		for _, w := range batch {
			if err := put(b, &sum, w); err != nil {
				return err
			}
		}
		return tx.Bucket(aboutBucket).Put(tallyKey, sum.encode())
	})
	if err != nil {
		f.broken = fmt.Errorf("%w since a commit failed (%w)", ErrBroken, err)
		return fmt.Errorf("store %s: commit: %w", f.path, err)
	}
	f.sum = sum
	return nil
}

func put(b *bbolt.Bucket, sum *tally, w Write) error {
	key := appendKey(nil, w.Object, w.Key)
	sum.remove(key, b.Get(key))
	if w.Value == nil {
		return b.Delete(key)
	}
	sealed := seal(key, w.Value)
	sum.add(key, sealed)
	return b.Put(key, sealed)
}

// write runs one transaction and shows its outcome to readers.
func (f *File) write(fill func(*bbolt.Tx) error) error {
	var tx *bbolt.Tx
	err := guard(func() (err error) {
		if tx, err = f.db.Begin(true); err != nil {
			return err
		}
		if err = fill(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err != nil && tx != nil {
		// After some errors, and after a panic, the transaction still holds bbolt's
		// locks, and the file could not be closed.
		_ = f.orStuck(tx.Rollback) // what it says is that it has ended
	} else if isPanic(err) {
		f.stuck = true // with the locks that it takes as a transaction begins
	}
	if err != nil {
		return err
	}
	return f.show()
}

// orStuck runs what cannot go on after a panic, since that leaves bbolt's locks held for ever.
func (f *File) orStuck(run func() error) error {
	err := guard(run)
	if isPanic(err) {
		f.stuck = true
	}
	return err
}

// show lets readers see the newest commit.
func (f *File) show() error {
	var tx *bbolt.Tx
	err := f.orStuck(func() (err error) {
		tx, err = f.db.Begin(false)
		return err
	})
	if err != nil {
		return err
	}
	var entries *bbolt.Bucket
	err = guard(func() error {
		entries = tx.Bucket(entriesBucket)
		return nil
	})
	if err != nil {
		// While it lasts the file cannot be closed.
		return errors.Join(err, f.orStuck(tx.Rollback))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.tx
	f.tx, f.entries = tx, entries
	if old != nil {
		return f.orStuck(old.Rollback)
	}
	return nil
}
