package node

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/node/durable"
)

// disk is what a machine's writes go to. The zero value is empty, and confirms
// at once.
type disk struct {
	keys  map[[2]string][]byte
	delay time.Duration
	fails bool

	batch []durable.Write // under way
	since time.Time
	lost  error // the store is broken

	written int // bytes, of names and values
}

var errDisk = errors.New("no space left on device")

// content returns what is on disk.
func (d *disk) content() (all []durable.Write) {
	for _, k := range slices.SortedFunc(maps.Keys(d.keys), func(a, b [2]string) int {
		return strings.Compare(a[0]+"\x00"+a[1], b[0]+"\x00"+b[1])
	}) {
		all = append(all, durable.Write{Object: k[0], Key: k[1], Value: d.keys[k]})
	}
	return all
}

func (d *disk) put(batch []durable.Write) {
	if d.keys == nil {
		d.keys = map[[2]string][]byte{}
	}
	for _, w := range batch {
		d.written += len(w.Object) + len(w.Key) + len(w.Value)
		if k := [2]string{w.Object, w.Key}; w.Value == nil {
			delete(d.keys, k)
		} else {
			d.keys[k] = w.Value
		}
	}
}

// crash forgets what was under way.
func (d *disk) crash() { d.batch, d.lost = nil, nil }

// write has a machine's disk do what is due, and returns what waited for it.
func (w *world) write(m *machine) (out []Message) {
	d := &m.disk
	for m.core != nil {
		if d.batch == nil {
			if d.batch, d.since = m.core.Writes(), w.now; d.batch == nil {
				return out
			}
		}
		if d.fails {
			d.batch, d.lost = nil, errDisk
			return append(out, m.core.Written(errDisk, w.now)...)
		}
		if w.now.Sub(d.since) < d.delay {
			return out
		}
		d.put(d.batch)
		d.batch = nil
		out = append(out, m.core.Written(nil, w.now)...)
	}
	return out
}

// mend makes room on a disk that was full, and a new store on it.
func (w *world) mend(m *machine) {
	m.disk.fails, m.disk.lost = false, nil
	m.disk.keys = nil
	m.disk.put(m.core.Stored())
	m.core.StoreBack(w.now)
}
