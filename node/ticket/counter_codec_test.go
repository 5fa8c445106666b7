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

func someCounterMessages() (Call, Grant, []RoomClaim) {
	call := Call{Room: crdt.RoomID{3}, Scope: AnywhereCounter, Number: 7, Want: Places{4, MaxWant}, Void: 6, Got: 1 << 40, Booked: 99, Seq: 1 << 63}
	grant := Grant{
		Room: crdt.RoomID{3}, Number: 7, Given: Places{4, 1}, Retry: 250 * time.Millisecond,
		Tickets: []Range{{crdt.NodeID{8}, 3, 1, 1 << 40, 3, time.Minute}, {crdt.NodeID{9}, 1 << 50, 0, 1, 2, time.Millisecond}},
	}
	claims := []RoomClaim{{Room: crdt.RoomID{1}, Since: at(1)}, {crdt.RoomID{2}, at(2), crdt.NodeID{5}}}
	return call, grant, claims
}

func TestCounterMessagesComeBack(t *testing.T) {
	call, grant, claims := someCounterMessages()
	if got, err := DecodeCall(AppendCall(nil, call)); err != nil || got != call {
		t.Errorf("call came back as %+v, %v, want %+v", got, err, call)
	}
	for _, g := range []Grant{grant, {Leader: crdt.NodeID{9}}} {
		if got, err := DecodeGrant(AppendGrant(nil, g)); err != nil || !reflect.DeepEqual(got, g) {
			t.Errorf("grant came back as %+v, %v, want %+v", got, err, g)
		}
	}
	if got, err := DecodeClaims(AppendClaims(nil, claims)); err != nil || !reflect.DeepEqual(got, claims) {
		t.Errorf("claims came back as %+v, %v, want %+v", got, err, claims)
	}
	full := AppendClaims(nil, make([]RoomClaim, MaxBatch))
	if _, err := DecodeClaims(full); err != nil || len(full) > MaxMessage {
		t.Errorf("%d bytes of claims: %v", len(full), err)
	}
}

func TestBadCounterMessagesAreRefused(t *testing.T) {
	call, grant, claims := someCounterMessages()
	encode := func(change func(*Call)) []byte {
		c := call
		change(&c)
		return AppendCall(nil, c)
	}
	liar := grant
	liar.Leader = crdt.NodeID{9}
	few, many, wraps := grant, grant, grant
	few.Tickets = grant.Tickets[:1]
	many.Tickets = append([]Range{{N: maxSpan + 1}}, grant.Tickets...)
	wraps.Tickets = []Range{{First: math.MaxUint64, N: 5}}
	whole := AppendCall(nil, call)
	for name, err := range map[string]error{
		"nothing":                    second(DecodeCall(nil)),
		"cut short":                  second(DecodeCall(whole[:len(whole)-1])),
		"too long":                   second(DecodeCall(append(bytes.Clone(whole), 0))),
		"another version":            second(DecodeCall(append([]byte{counterVersion + 1}, whole[1:]...))),
		"a scope that is none":       second(DecodeCall(encode(func(c *Call) { c.Scope = Scopes }))),
		"more than anybody wants":    second(DecodeCall(encode(func(c *Call) { c.Want.Reserved = MaxWant + 1 }))),
		"more booked than got":       second(DecodeCall(encode(func(c *Call) { c.Booked = c.Got + 1 }))),
		"a later call given up":      second(DecodeCall(encode(func(c *Call) { c.Void = c.Number + 1 }))),
		"a call before the first":    second(DecodeCall(encode(func(c *Call) { c.Void = 0 }))),
		"a number that might wrap":   second(DecodeCall(encode(func(c *Call) { c.Got = maxCounted + 1 }))),
		"a grant of who has none":    second(DecodeGrant(AppendGrant(nil, liar))),
		"too few tickets":            second(DecodeGrant(AppendGrant(nil, few))),
		"too many tickets":           second(DecodeGrant(AppendGrant(nil, many))),
		"ticket numbers that wrap":   second(DecodeGrant(AppendGrant(nil, wraps))),
		"half a grant":               second(DecodeGrant(AppendGrant(nil, grant)[:20])),
		"claims cut short":           second(DecodeClaims(AppendClaims(nil, claims)[:25])),
		"claims of which few follow": second(DecodeClaims([]byte{counterVersion, 0xdd, 0xff, 0xff, 0xff, 0xff})),
	} {
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want %v", name, err, ErrMalformed)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func FuzzDecodeCounter(f *testing.F) {
	call, grant, claims := someCounterMessages()
	f.Add(AppendCall(nil, call))
	f.Add(AppendGrant(nil, grant))
	f.Add(AppendClaims(nil, claims))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := DecodeCall(data); err == nil {
			if again, err := DecodeCall(AppendCall(nil, c)); err != nil || again != c {
				t.Errorf("%+v does not survive a round: %v", c, err)
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("error %v", err)
		}
		if g, err := DecodeGrant(data); err == nil {
			if again, err := DecodeGrant(AppendGrant(nil, g)); err != nil || !reflect.DeepEqual(again, g) {
				t.Errorf("%+v does not survive a round: %v", g, err)
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("error %v", err)
		}
		if c, err := DecodeClaims(data); err == nil {
			again, err := DecodeClaims(AppendClaims(nil, c))
			if err != nil || !reflect.DeepEqual(again, c) {
				t.Errorf("%+v does not survive a round: %v", c, err)
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("error %v", err)
		}
	})
}
