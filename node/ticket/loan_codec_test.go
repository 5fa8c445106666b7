package ticket

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

var (
	aRoom   = crdt.RoomID{3}
	aLender = crdt.Incarnation{Node: crdt.NodeID{4}, Boot: 7}
	leads   = crdt.Incarnation{Node: theCounter, Boot: 2}
)

func someLoanCall() LoanCall {
	report := Report{
		Room: aRoom, Lender: aLender, Block: 9, Number: 3, Final: true,
		Used: []Used{{First: 100, N: 5, Age: 20 * time.Millisecond}, {First: 105, N: 1 << 39}},
	}
	return LoanCall{Room: aRoom, Lender: aLender, Borrow: 12, Reports: []Report{report, {Room: aRoom, Lender: aLender, Block: 10, Number: 1}}}
}

func someLoanAnswer() LoanAnswer {
	return LoanAnswer{
		Room: aRoom, Lender: aLender, To: leads, Recalled: 3,
		Loans: []Loan{{Room: aRoom, To: leads, Lender: aLender, Block: 4, First: 1 << 60, N: 8, ValidUntil: at(3), Session: time.Hour, Left: 5}},
		Acks:  []ReportAck{{Room: aRoom, Lender: aLender, Block: 3, Number: 2}},
	}
}

func someFinal() Final {
	return Final{
		Node: crdt.NodeID{1}, Heir: crdt.NodeID{2}, InUse: 9, Span: 48 * time.Hour,
		Minting: Minting{true, Amount{-7, 70}}, MintAfter: time.UnixMilli(1_767_268_800_123),
		Accounts: []Account{{Node: crdt.NodeID{5}, Gave: Amount{3, 4}, Rcv: Amount{5, 6}, Code: 1 << 63}},
		Inherited: []Inherited{
			{Leaver: crdt.NodeID{6}, Minting: Minting{true, Amount{8, -9}}, Accounts: []Receipt{{From: crdt.NodeID{7}, Base: Amount{1, 2}, Rcv: Amount{3, 4}, Code: 7}}},
			{Leaver: crdt.NodeID{8}},
		},
		Recovered: []Recovery{{crdt.NodeID{9}, Amount{-3, 1 << 30}, 2}},
		Closings:  someClosings(),
	}
}

// codec is one kind of message, with its encoder and decoder.
type codec struct {
	name   string
	value  any
	encode func(any) []byte
	decode func([]byte) (any, error)
}

func codecOf[T any](name string, value T, encode func([]byte, T) []byte, decode func([]byte) (T, error)) codec {
	return codec{
		name, value,
		func(v any) []byte { return encode(nil, v.(T)) },
		func(m []byte) (any, error) { return decode(m) },
	}
}

func someClosings() Closings {
	return Closings{Amount{5, maxCounted}, Amount{6, 7}, Amount{-3, 8}, 9, []ClosedAccount{
		{aCaller.Node, Amount{1, 2}, Amount{3, maxCounted}, true, false, Amount{-maxCounted, 9}},
		{theCounter, Amount{}, Amount{4, 5}, false, true, Amount{}},
	}}
}

func rightsCodecs() []codec {
	gift := Amount{Places: 7, Rate: maxCounted}
	anchor := crdt.NodeID{8}
	minted := []Told{
		{aCaller.Node, Amount{59, maxCounted}, crdt.Stamp{Wall: maxMillis, Logical: math.MaxUint16, Node: aCaller.Node}},
		{theCounter, Amount{-3, -maxCounted}, crdt.Stamp{Node: anchor}},
	}
	return []codec{
		codecOf("loan call", someLoanCall(), AppendLoanCall, DecodeLoanCall),
		codecOf("loan answer", someLoanAnswer(), AppendLoanAnswer, DecodeLoanAnswer),
		codecOf("cancel", Cancel{aRoom, anchor, []Range{{anchor, 3, 1, 5, 6, 0}, {anchor, 3, 2, 7, 1, 0}}}, AppendCancel, DecodeCancel),
		codecOf("transfer", Transfer{aRoom, aCaller.Node, theCounter, gift, math.MaxUint64, minted}, AppendTransfer, DecodeTransfer),
		codecOf("transfer that nothing was minted for", Transfer{aRoom, aCaller.Node, theCounter, gift, 0, nil}, AppendTransfer, DecodeTransfer),
		codecOf("what was minted", minted, AppendTold, DecodeTold),
		codecOf("received", Received{aRoom, aCaller.Node, theCounter, gift, 0, true}, AppendReceived, DecodeReceived),
		codecOf("want", Want{aRoom, aCaller.Node, gift}, AppendWant, DecodeWant),
		codecOf("handover", Handover{aRoom, someFinal(), 8, minted}, AppendHandover, DecodeHandover),
		codecOf("final ledger", someFinal(), AppendFinal, DecodeFinal),
		codecOf("word", Word{crdt.NodeID{1}, crdt.NodeID{2}, crdt.NodeID{3}, 4, gift, Amount{}, []ReceivedFor{{anchor, gift}}}, AppendWord, DecodeWord),
		codecOf("closings", someClosings(), AppendClosings, DecodeClosings),
	}
}

func TestMessagesOfRightsComeBack(t *testing.T) {
	for _, c := range rightsCodecs() {
		whole := c.encode(c.value)
		if got, err := c.decode(whole); err != nil || !reflect.DeepEqual(got, c.value) {
			t.Errorf("%s came back as %+v, %v, want %+v", c.name, got, err, c.value)
		}
		for n := range whole {
			if _, err := c.decode(whole[:n]); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s cut to %d of %d bytes: %v", c.name, n, len(whole), err)
			}
		}
		if _, err := c.decode(append(bytes.Clone(whole), 0)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s with a byte more: %v", c.name, err)
		}
	}
}

func TestFullMessagesOfRightsFit(t *testing.T) {
	far := Range{crdt.NodeID{1}, math.MaxUint64, math.MaxUint32, math.MaxUint64 - maxSpan, maxSpan, 0}
	ranges := make([]Range, MaxBatch)
	for i := range ranges {
		ranges[i] = far
	}
	cancel := AppendCancel(nil, Cancel{Ranges: ranges})
	if _, err := DecodeCancel(cancel); err != nil {
		t.Errorf("%d bytes of ranges: %v", len(cancel), err)
	}
	call := LoanCall{Reports: make([]Report, MaxLoans)}
	for i := range call.Reports {
		rep := Report{Block: math.MaxUint32, Number: maxCounted, Used: make([]Used, MaxUsed)}
		for k := range rep.Used {
			rep.Used[k] = Used{far.First, far.N, 48 * time.Hour}
		}
		call.Reports[i] = rep
	}
	whole := AppendLoanCall(nil, call)
	if _, err := DecodeLoanCall(whole); err != nil {
		t.Errorf("%d bytes of reports: %v", len(whole), err)
	}
	gift := Transfer{Minted: make([]Told, MaxTold)}
	for i := range gift.Minted {
		gift.Minted[i] = Told{Minted: Amount{-maxCounted, -maxCounted}, At: crdt.Stamp{Wall: maxMillis, Logical: math.MaxUint16}}
	}
	if whole = AppendTransfer(nil, gift); second(DecodeTransfer(whole)) != nil || len(whole) > MaxMessage/2 {
		t.Errorf("%d bytes of a gift: %v", len(whole), second(DecodeTransfer(whole)))
	}
}

func TestBadMessagesOfRightsAreRefused(t *testing.T) {
	call := func(change func(*LoanCall)) error {
		c := someLoanCall()
		change(&c)
		return second(DecodeLoanCall(AppendLoanCall(nil, c)))
	}
	loan := func(change func(*Loan)) error {
		a := someLoanAnswer()
		change(&a.Loans[0])
		return second(DecodeLoanAnswer(AppendLoanAnswer(nil, a)))
	}
	ranges := []Range{{Anchor: crdt.NodeID{1}, N: 1}, {Anchor: crdt.NodeID{2}, N: 1}}
	for name, err := range map[string]error{
		"a use of no tickets":       call(func(c *LoanCall) { c.Reports[0].Used[0].N = 0 }),
		"a use that wraps":          call(func(c *LoanCall) { c.Reports[0].Used[0].First = math.MaxUint64 }),
		"a use of too many":         call(func(c *LoanCall) { c.Reports[0].Used[0].N = maxSpan + 1 }),
		"a number that might wrap":  call(func(c *LoanCall) { c.Reports[0].Number = maxCounted + 1 }),
		"a loan of no block":        loan(func(l *Loan) { l.Block = 0 }),
		"a block of no tickets":     loan(func(l *Loan) { l.N = 0 }),
		"a loan that wraps":         loan(func(l *Loan) { l.First = math.MaxUint64 }),
		"tickets of two anchors":    second(DecodeCancel(AppendCancel(nil, Cancel{Ranges: ranges}))),
		"more rights than there be": second(DecodeTransfer(AppendTransfer(nil, Transfer{Gave: Amount{Places: maxCounted + 1}}))),
		"a version to come":         second(DecodeTransfer([]byte{transferVersion + 1})),
		"a version of long ago":     second(DecodeTransfer([]byte{transferVersion - 1})),
		"lots of minters":           second(DecodeTransfer(lotsOfMinters())),
		"lots of reports":           second(DecodeLoanCall(lotsOfReports())),
	} {
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want %v", name, err, ErrMalformed)
		}
	}
}

// lotsOfMinters claims more minters than a message may name.
func lotsOfMinters() []byte {
	w := newRoomWriter(nil, transferVersion, aRoom)
	w.keep(w.enc.EncodeBytes(aLender.Node[:]))
	w.keep(w.enc.EncodeBytes(theCounter[:]))
	w.amount(Amount{})
	w.code(0)
	w.keep(w.enc.EncodeArrayLen(MaxTold + 1))
	return append(w.buf.Bytes(), make([]byte, 100*MaxTold)...)
}

// lotsOfReports claims more reports than a lender can have loans.
func lotsOfReports() []byte {
	w := newRoomWriter(nil, loanVersion, aRoom)
	w.incarnation(aLender)
	w.number(0)
	w.keep(w.enc.EncodeArrayLen(MaxLoans + 1))
	return append(w.buf.Bytes(), make([]byte, 4096)...)
}

func FuzzDecodeRights(f *testing.F) {
	for _, c := range rightsCodecs() {
		f.Add(c.encode(c.value))
	}
	codecs := rightsCodecs()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range codecs {
			v, err := c.decode(data)
			if err != nil {
				if !errors.Is(err, ErrMalformed) {
					t.Errorf("%s: error %v", c.name, err)
				}
				continue
			}
			if again, err := c.decode(c.encode(v)); err != nil || !reflect.DeepEqual(again, v) {
				t.Errorf("%s: %+v does not survive a round: %v", c.name, v, err)
			}
		}
	})
}
