package durable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/crc64"
)

// What the file holds: a bucket of entries, object 0x00 key → crc32c(key value)
// value, and a bucket with the format and the tally of all entries.
var (
	entriesBucket = []byte("entries")
	aboutBucket   = []byte("about")
	formatKey     = []byte("format")
	tallyKey      = []byte("tally")
)

const format = 1

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	ecma       = crc64.MakeTable(crc64.ECMA)
)

func appendKey(dst []byte, object, key string) []byte {
	dst = append(dst, object...)
	dst = append(dst, 0)
	return append(dst, key...)
}

// seal puts a checksum before a value; it covers the key too, so that an entry is
// not taken for another one.
func seal(key, value []byte) []byte {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
	sealed := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(value)), sum)
	return append(sealed, value...)
}

// openEntry returns a copy of the value in an entry, nil for no entry.
func openEntry(key, sealed []byte) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	if len(sealed) < 4 {
		return nil, fmt.Errorf("entry %q is cut short", key)
	}
	value := sealed[4:]
	if binary.BigEndian.Uint32(sealed) != crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value) {
		return nil, fmt.Errorf("entry %q has a wrong checksum", key)
	}
	return append(make([]byte, 0, len(value)), value...), nil
}

func openWrite(key, sealed []byte) (Write, error) {
	object, name, ok := bytes.Cut(key, []byte{0})
	if !ok {
		return Write{}, fmt.Errorf("entry %q belongs to no object", key)
	}
	value, err := openEntry(key, sealed)
	return Write{string(object), string(name), value}, err
}

// tally says what entries there are, in a form that a commit can keep up without
// reading them all: their number and the sum of their checksums. It catches pages
// that a disk has lost or put back, which carry correct checksums of their own.
type tally struct{ entries, sum uint64 }

func (t *tally) add(key, sealed []byte) {
	t.entries++
	t.sum += crc64.Update(crc64.Checksum(key, ecma), ecma, sealed)
}

// remove takes an entry out; sealed is nil where there was none.
func (t *tally) remove(key, sealed []byte) {
	if sealed == nil {
		return
	}
	t.entries--
	t.sum -= crc64.Update(crc64.Checksum(key, ecma), ecma, sealed)
}

func (t tally) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, t.entries), t.sum)
}

func decodeTally(b []byte) (tally, error) {
	if len(b) != 16 {
		return tally{}, errors.New("the tally of entries is missing")
	}
	return tally{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}
