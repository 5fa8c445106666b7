package bootstrap

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
)

// kind says what a message is for.
type kind uint8

const (
	ask    kind = 1 // what do you hold?
	answer kind = 2 // this
)

// Message is what nodes tell each other. Whoever sends one says what it holds, on disk.
type Message struct {
	Kind  kind
	Name  string
	Names []string // of the sender's operator
	Nonce uint64   // of the sender: an answer to this counts if it echoes it
	Echo  uint64   // of an answer: the nonce that was asked with
	Holds Record   // of mesh zero: nothing

	// Complete says that all named nodes have held what the sender holds. Otherwise it may be a
	// mesh that never has capacity, as the first node's disk was lost too early.
	Complete bool
}

// Slot says which messages to the same node a newer one may replace.
func (m Message) Slot() uint64 { return uint64(m.Kind) }

const (
	messageVersion = 1
	maxName        = 255
	// MaxMessage is more bytes than a message has.
	MaxMessage = 64 << 10
)

var errMalformed = errors.New("malformed bootstrap message")

// Append appends m: [version, kind, name, names, nonce, echo, record, complete].
func (m Message) Append(dst []byte) []byte {
	buf := bytes.NewBuffer(dst)
	e := msgpack.NewEncoder(buf)
	e.UseCompactInts(true)
	// A buffer takes all that is written to it.
	_ = e.EncodeArrayLen(8)
	_ = e.EncodeUint(messageVersion)
	_ = e.EncodeUint(uint64(m.Kind))
	_ = e.EncodeString(m.Name)
	encodeNames(e, m.Names)
	_ = e.EncodeUint64(m.Nonce)
	_ = e.EncodeUint64(m.Echo)
	encodeRecord(e, m.Holds)
	_ = e.EncodeBool(m.Complete)
	return buf.Bytes()
}

func encodeNames(e *msgpack.Encoder, names []string) {
	_ = e.EncodeArrayLen(len(names))
	for _, name := range names {
		_ = e.EncodeString(name)
	}
}

func encodeRecord(e *msgpack.Encoder, r Record) {
	_ = e.EncodeArrayLen(5)
	_ = e.EncodeBytes(r.Mesh[:])
	encodeNames(e, r.Names)
	_ = e.EncodeBytes(r.Minter[:])
	_ = e.EncodeString(r.MinterName)
	_ = e.EncodeString(r.MinterSite)
}

// AppendRecord appends a record, as a message holds it.
func AppendRecord(dst []byte, r Record) []byte {
	buf := bytes.NewBuffer(dst)
	e := msgpack.NewEncoder(buf)
	e.UseCompactInts(true)
	encodeRecord(e, r)
	return buf.Bytes()
}

// DecodeRecord reads what AppendRecord wrote.
func DecodeRecord(b []byte) (Record, error) {
	r := bytes.NewReader(b)
	d := &decoder{d: msgpack.NewDecoder(r)}
	rec := d.record()
	if d.err == nil && r.Len() > 0 {
		d.err = errors.New("bytes follow it")
	}
	if d.err != nil {
		return Record{}, fmt.Errorf("%w: record: %w", errMalformed, d.err)
	}
	return rec, nil
}

// Decode reads what Append wrote.
func Decode(b []byte) (m Message, err error) {
	if len(b) > MaxMessage {
		return Message{}, fmt.Errorf("%w: %d bytes, at most %d", errMalformed, len(b), MaxMessage)
	}
	r := bytes.NewReader(b)
	d := &decoder{d: msgpack.NewDecoder(r)}
	d.array(8)
	if v := d.uint(); d.err == nil && v != messageVersion {
		d.err = fmt.Errorf("version %d, want %d", v, messageVersion)
	}
	m.Kind = kind(d.uint())
	m.Name = d.string()
	m.Names = d.names()
	m.Nonce, m.Echo = d.uint(), d.uint()
	m.Holds = d.record()
	m.Complete = d.bool()
	switch {
	case d.err != nil:
	case r.Len() > 0:
		d.err = errors.New("bytes follow it")
	case m.Kind != ask && m.Kind != answer:
		d.err = fmt.Errorf("kind %d", m.Kind)
	}
	if d.err != nil {
		return Message{}, fmt.Errorf("%w: %w", errMalformed, d.err)
	}
	return m, nil
}

// decoder reads fields until one is wrong.
type decoder struct {
	d   *msgpack.Decoder
	err error
}

func (d *decoder) array(want int) {
	if d.err != nil {
		return
	}
	n, err := d.d.DecodeArrayLen()
	if d.err = err; err == nil && n != want {
		d.err = fmt.Errorf("%d fields, want %d", n, want)
	}
}

func (d *decoder) uint() (v uint64) {
	if d.err == nil {
		v, d.err = d.d.DecodeUint64()
	}
	return v
}

func (d *decoder) bool() (v bool) {
	if d.err == nil {
		v, d.err = d.d.DecodeBool()
	}
	return v
}

// full fills b. The library would make as much room as a length says, however few bytes follow.
func (d *decoder) full(b []byte) {
	if d.err == nil {
		d.err = d.d.ReadFull(b)
	}
}

func (d *decoder) string() string {
	if d.err != nil {
		return ""
	}
	n, err := d.d.DecodeBytesLen()
	if d.err = err; err == nil && (n < 0 || n > maxName) {
		d.err = fmt.Errorf("a name of %d bytes, at most %d", n, maxName)
	}
	if d.err != nil {
		return ""
	}
	b := make([]byte, n)
	d.full(b)
	return string(b)
}

func (d *decoder) names() (all []string) {
	if d.err != nil {
		return nil
	}
	n, err := d.d.DecodeArrayLen()
	if err != nil || n < 0 || n > MaxNames {
		d.err = fmt.Errorf("%d names, at most %d (%w)", n, MaxNames, err)
		return nil
	}
	for range n {
		all = append(all, d.string())
	}
	return all
}

func (d *decoder) id() (id [16]byte) {
	if d.err != nil {
		return id
	}
	n, err := d.d.DecodeBytesLen()
	if d.err = err; err == nil && n != len(id) {
		d.err = fmt.Errorf("an id of %d bytes, want %d", n, len(id))
	}
	d.full(id[:])
	return id
}

func (d *decoder) record() (r Record) {
	d.array(5)
	r.Mesh = d.id()
	r.Names = d.names()
	r.Minter = d.id()
	r.MinterName = d.string()
	r.MinterSite = d.string()
	if d.err == nil && r.Mesh.IsZero() != (r.Minter == crdt.NodeID{}) {
		d.err = errors.New("a mesh without a minter, or a minter without a mesh")
	}
	return r
}
