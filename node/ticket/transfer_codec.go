package ticket

import (
	"fmt"
	"math"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// transferVersion is that of all messages of rights.
const transferVersion = 5

// finalVersion is that of what AppendFinal writes.
const finalVersion = 7

// minAccount is the least that one account or receipt takes: an id, the
// numbers of two amounts, and a code.
const minAccount = 2 + 16 + 4 + 1

// takeApart has read fill in what a message says after its version. What is not
// well formed, or goes on behind, is an error that names what it was to be.
func takeApart[T any](what string, message []byte, read func(*reader, *T)) (T, error) {
	r := newReader(message)
	var got, none T
	r.version(transferVersion)
	read(r, &got)
	if err := r.finish(); err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return got, nil
}

// AppendCancel appends the encoding of c, of at most MaxBatch ranges, to dst.
func AppendCancel(dst []byte, c Cancel) []byte {
	w := newRoomWriter(dst, transferVersion, c.Room)
	w.ranges(c.Ranges)
	return w.buf.Bytes()
}

// DecodeCancel takes apart what AppendCancel wrote. A message that is not well
// formed, or names several anchors, is an error that wraps ErrMalformed.
func DecodeCancel(message []byte) (Cancel, error) {
	return takeApart("cancel", message, func(r *reader, c *Cancel) {
		r.id(c.Room[:])
		c.Ranges = r.ranges()
		for i, g := range c.Ranges {
			if i == 0 {
				c.Anchor = g.Anchor
			}
			if g.Anchor != c.Anchor {
				r.fail("tickets of several anchors")
			}
		}
	})
}

// AppendTransfer appends the encoding of t to dst.
func AppendTransfer(dst []byte, t Transfer) []byte {
	w := newRoomWriter(dst, transferVersion, t.Room)
	w.keep(w.enc.EncodeBytes(t.From[:]))
	w.keep(w.enc.EncodeBytes(t.To[:]))
	w.amount(t.Gave)
	w.code(t.Code)
	w.told(t.Minted)
	return w.buf.Bytes()
}

// DecodeTransfer takes apart what AppendTransfer wrote. A message that is not
// well formed is an error that wraps ErrMalformed.
func DecodeTransfer(message []byte) (Transfer, error) {
	return takeApart("transfer", message, func(r *reader, t *Transfer) {
		r.id(t.Room[:])
		r.id(t.From[:])
		r.id(t.To[:])
		t.Gave, t.Code, t.Minted = r.amount(), r.code(), r.told()
	})
}

// minTold is the least that one of Told takes: two ids and four numbers.
const minTold = 2*(2+16) + 4

func (w writer) told(all []Told) {
	w.count(len(all), MaxTold)
	for _, x := range all {
		w.keep(w.enc.EncodeBytes(x.Node[:]))
		w.signed(x.Minted)
		w.keep(w.enc.EncodeBytes(x.At.Node[:]))
		w.number(uint64(max(0, x.At.Wall)))
		w.number(uint64(x.At.Logical))
	}
}

func (r *reader) told() (all []Told) {
	for range r.atMost(MaxTold, minTold) {
		x := Told{}
		r.id(x.Node[:])
		x.Minted = r.signed()
		var by crdt.NodeID
		r.id(by[:])
		x.At = crdt.Stamp{Wall: int64(r.number(maxMillis)), Logical: uint16(r.number(math.MaxUint16)), Node: by}
		all = append(all, x)
	}
	return all
}

// toldVersion is that of what AppendTold writes.
const toldVersion = 1

// AppendTold appends the encoding of what at most MaxTold nodes have minted to dst.
func AppendTold(dst []byte, told []Told) []byte {
	w := newBareWriter(dst, toldVersion)
	w.told(told)
	return w.buf.Bytes()
}

// DecodeTold takes apart what AppendTold wrote. What is not well formed is an error that
// wraps ErrMalformed.
func DecodeTold(data []byte) ([]Told, error) {
	r := newReader(data)
	r.version(toldVersion)
	told := r.told()
	if err := r.finish(); err != nil {
		return nil, fmt.Errorf("what was minted: %w", err)
	}
	return told, nil
}

// AppendReceived appends the encoding of a to dst.
func AppendReceived(dst []byte, a Received) []byte {
	w := newRoomWriter(dst, transferVersion, a.Room)
	w.keep(w.enc.EncodeBytes(a.From[:]))
	w.keep(w.enc.EncodeBytes(a.To[:]))
	w.amount(a.Gave)
	w.flag(a.Handover)
	return w.buf.Bytes()
}

// DecodeReceived takes apart what AppendReceived wrote. A message that is not
// well formed is an error that wraps ErrMalformed.
func DecodeReceived(message []byte) (Received, error) {
	return takeApart("receipt", message, func(r *reader, a *Received) {
		r.id(a.Room[:])
		r.id(a.From[:])
		r.id(a.To[:])
		a.Gave = r.amount()
		a.Handover = r.flag()
	})
}

// AppendWant appends the encoding of want to dst.
func AppendWant(dst []byte, want Want) []byte {
	w := newRoomWriter(dst, transferVersion, want.Room)
	w.keep(w.enc.EncodeBytes(want.To[:]))
	w.amount(want.Amount)
	return w.buf.Bytes()
}

// DecodeWant takes apart what AppendWant wrote. A message that is not well formed
// is an error that wraps ErrMalformed.
func DecodeWant(message []byte) (Want, error) {
	return takeApart("want", message, func(r *reader, want *Want) {
		r.id(want.Room[:])
		r.id(want.To[:])
		want.Amount = r.amount()
	})
}

// AppendHandover appends the encoding of h to dst. One of some thousand accounts
// fits into a message; what is longer is refused by the decoder.
func AppendHandover(dst []byte, h Handover) []byte {
	w := newRoomWriter(dst, transferVersion, h.Room)
	w.told(h.Minted)
	w.code(h.Code)
	return AppendFinal(w.buf.Bytes(), h.Final)
}

// DecodeHandover takes apart what AppendHandover wrote. A message that is not
// well formed is an error that wraps ErrMalformed.
func DecodeHandover(message []byte) (Handover, error) {
	return takeApart("handover", message, func(r *reader, h *Handover) {
		r.id(h.Room[:])
		h.Minted, h.Code = r.told(), r.code()
		h.Final = r.final()
	})
}

// AppendFinal appends the encoding of a final ledger to dst.
func AppendFinal(dst []byte, f Final) []byte {
	w := newBareWriter(dst, finalVersion)
	w.keep(w.enc.EncodeBytes(f.Node[:]))
	w.keep(w.enc.EncodeBytes(f.Heir[:]))
	w.number(uint64(max(0, f.InUse)))
	w.session(f.Span)
	w.minting(f.Minting)
	w.millis(f.MintAfter)
	w.keep(w.enc.EncodeArrayLen(len(f.Accounts)))
	for _, a := range f.Accounts {
		w.keep(w.enc.EncodeBytes(a.Node[:]))
		w.amount(a.Gave)
		w.amount(a.Rcv)
		w.code(a.Code)
	}
	w.keep(w.enc.EncodeArrayLen(len(f.Inherited)))
	for _, in := range f.Inherited {
		w.keep(w.enc.EncodeBytes(in.Leaver[:]))
		w.minting(in.Minting)
		w.keep(w.enc.EncodeArrayLen(len(in.Accounts)))
		for _, a := range in.Accounts {
			w.keep(w.enc.EncodeBytes(a.From[:]))
			w.amount(a.Base)
			w.amount(a.Rcv)
			w.code(a.Code)
		}
	}
	w.keep(w.enc.EncodeArrayLen(len(f.Recovered)))
	for _, x := range f.Recovered {
		w.keep(w.enc.EncodeBytes(x.Dead[:]))
		w.signed(x.Minted)
		w.number(uint64(max(0, x.Turn)))
	}
	w.closings(f.Closings)
	return w.buf.Bytes()
}

// DecodeFinal takes apart what AppendFinal wrote. A ledger that is not well
// formed is an error that wraps ErrMalformed.
func DecodeFinal(data []byte) (Final, error) {
	r := newReader(data)
	f := r.final()
	if err := r.finish(); err != nil {
		return Final{}, fmt.Errorf("final ledger: %w", err)
	}
	return f, nil
}

func (r *reader) final() (f Final) {
	r.version(finalVersion)
	r.id(f.Node[:])
	r.id(f.Heir[:])
	f.InUse = int64(r.number(maxCounted))
	f.Span = r.session()
	f.Minting = r.minting()
	if ms := r.number(maxMillis); ms > 0 {
		f.MintAfter = time.UnixMilli(int64(ms))
	}
	for range r.items(minAccount) {
		var a Account
		r.id(a.Node[:])
		a.Gave, a.Rcv, a.Code = r.amount(), r.amount(), r.code()
		f.Accounts = append(f.Accounts, a)
	}
	for range r.items(2 + 16 + 1) {
		var in Inherited
		r.id(in.Leaver[:])
		in.Minting = r.minting()
		for range r.items(minAccount) {
			var a Receipt
			r.id(a.From[:])
			a.Base, a.Rcv, a.Code = r.amount(), r.amount(), r.code()
			in.Accounts = append(in.Accounts, a)
		}
		f.Inherited = append(f.Inherited, in)
	}
	for range r.items(2 + 16 + 3) {
		var x Recovery
		r.id(x.Dead[:])
		x.Minted, x.Turn = r.signed(), int64(r.number(maxCounted))
		f.Recovered = append(f.Recovered, x)
	}
	f.Closings = r.closings()
	return f
}

// wordVersion is that of what AppendWord writes.
const wordVersion = 3

// AppendWord appends the encoding of a node's word on a dead one to dst.
func AppendWord(dst []byte, word Word) []byte {
	w := newBareWriter(dst, wordVersion)
	w.keep(w.enc.EncodeBytes(word.Node[:]))
	w.keep(w.enc.EncodeBytes(word.Dead[:]))
	w.keep(w.enc.EncodeBytes(word.Heir[:]))
	w.number(uint64(max(0, word.Round)))
	w.amount(word.Gave)
	w.amount(word.Rcv)
	w.keep(w.enc.EncodeArrayLen(len(word.For)))
	for _, x := range word.For {
		w.keep(w.enc.EncodeBytes(x.Leaver[:]))
		w.amount(x.Rcv)
	}
	return w.buf.Bytes()
}

// DecodeWord takes apart what AppendWord wrote. One that is not well formed is an
// error that wraps ErrMalformed.
func DecodeWord(data []byte) (word Word, err error) {
	r := newReader(data)
	r.version(wordVersion)
	r.id(word.Node[:])
	r.id(word.Dead[:])
	r.id(word.Heir[:])
	word.Round = int64(r.number(maxCounted))
	word.Gave, word.Rcv = r.amount(), r.amount()
	for range r.items(2 + 16 + 2) {
		var x ReceivedFor
		r.id(x.Leaver[:])
		x.Rcv = r.amount()
		word.For = append(word.For, x)
	}
	if err := r.finish(); err != nil {
		return Word{}, fmt.Errorf("word on a dead node: %w", err)
	}
	return word, nil
}

// amount writes what was given or received all in all, or is wanted: never less
// than nothing.
func (w writer) amount(a Amount) {
	w.number(uint64(max(0, a.Places)))
	w.number(uint64(max(0, a.Rate)))
}

// amount reads an amount that can be added to others of its kind.
func (r *reader) amount() Amount {
	return Amount{Places: int64(r.number(maxCounted)), Rate: int64(r.number(maxCounted))}
}

func (w writer) code(c Code) { w.number(uint64(c)) }

func (r *reader) code() Code { return Code(r.number(math.MaxUint64)) }

// signed writes what was minted: less than nothing if more was burnt.
func (w writer) signed(a Amount) {
	w.number(zigzag(a.Places))
	w.number(zigzag(a.Rate))
}

func (r *reader) signed() Amount {
	return Amount{Places: unzigzag(r.number(2 * maxCounted)), Rate: unzigzag(r.number(2 * maxCounted))}
}

func (w writer) minting(m Minting) {
	w.flag(m.Known)
	w.signed(m.Minted)
}

func (r *reader) minting() (m Minting) {
	m.Known, m.Minted = r.flag(), r.signed()
	if m.Minted != (Amount{}) && !m.Known {
		r.fail("minted %v, which is not known", m.Minted)
	}
	return m
}

// zigzag turns a whole number into one that is not negative; small ones stay
// small.
func zigzag(n int64) uint64 { return uint64(n<<1) ^ uint64(n>>63) }

func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }
