package ticket

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/ropeline/ropeline/crdt"
)

// TestReceiptsAreTakenApart holds the codec.
func TestReceiptsAreTakenApart(t *testing.T) {
	a := Receipts{Behind: Inquiry{crdt.RoomID{1}, crdt.NodeID{2}}, Known: true, More: true, Items: []Received{
		{Room: crdt.RoomID{3}, To: crdt.NodeID{4}, Gave: Amount{Places: 5, Rate: 6}, Code: 1 << 63}, {Room: crdt.RoomID{7}, To: crdt.NodeID{8}, Gave: Amount{Places: 1 << 30}},
	}}
	whole := AppendReceipts(nil, a)
	if got, err := DecodeReceipts(whole); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("got %+v, %v", got, err)
	}
	inquiry := AppendInquiry(nil, a.Behind)
	if got, err := DecodeInquiry(inquiry); err != nil || got != a.Behind {
		t.Errorf("got %+v, %v", got, err)
	}
	for n := range len(whole) {
		if _, err := DecodeReceipts(whole[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d of %d bytes of receipts: %v", n, len(whole), err)
		}
	}
	for n := range len(inquiry) {
		if _, err := DecodeInquiry(inquiry[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d of %d bytes of an inquiry: %v", n, len(inquiry), err)
		}
	}
	for what, message := range map[string][]byte{
		"less than nothing":   slices.Concat(whole[:len(whole)-1], []byte{0xff}),
		"something behind it": append(slices.Clone(whole), 0),
	} {
		if _, err := DecodeReceipts(message); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
