package transport

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// encoded writes v the way memberlist and serf do.
func encoded(t testing.TB, kind byte, v any) []byte {
	t.Helper()
	b := bytes.NewBuffer([]byte{kind})
	if err := codec.NewEncoder(b, &codec.MsgpackHandle{}).Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func compoundOf(parts ...[]byte) []byte {
	b := []byte{mlCompound, byte(len(parts))}
	for _, p := range parts {
		b = append(b, byte(len(p)>>8), byte(len(p)))
	}
	return append(b, bytes.Join(parts, nil)...)
}

// exchangeOf writes a full exchange of n members with serf's state.
func exchangeOf(t testing.TB, n int, state []byte) []byte {
	b := encoded(t, mlPushPull, map[string]any{"Nodes": n, "UserStateLen": len(state), "Join": true})
	for i := range n {
		node := encoded(t, 0, map[string]any{
			"Name": memberName(testID(i+1), 1), "Addr": []byte{10, 0, 0, 1}, "Port": 7000, "State": 0, "Incarnation": 1,
			"Meta": []byte{serfTagsMagic, 0x81, 0xa1, 's', 0xa1, 'x'}, "Vsn": []byte{1, 5, 2, 2, 5, 5},
		})
		b = append(b, node[1:]...)
	}
	return append(b, state...)
}

func TestGossipCheck(t *testing.T) {
	alive := aliveMessage(memberName(testID(1), 1), net.IPv4(10, 0, 0, 1).To4(), 7000, map[string]string{"s": "east", "n": "x"})
	ping := encoded(t, mlPing, map[string]any{"SeqNo": 1, "Node": "x"})
	join := append([]byte{mlUser}, encoded(t, serfJoin, map[string]any{"LTime": 5, "Node": "x"})...)
	state := encoded(t, serfPushPull, map[string]any{"LTime": 7, "StatusLTimes": map[string]int{"x": 3}, "LeftMembers": []string{"y"}, "Events": []any{nil}, "EventLTime": 1, "QueryLTime": 1})
	user := func(kind byte, v any) []byte { return append([]byte{mlUser}, encoded(t, kind, v)...) }

	for name, b := range map[string][]byte{
		"alive": alive, "ping": ping, "join": join,
		"bundle":   compoundOf(alive, ping, join),
		"checksum": append([]byte{mlChecksum, 1, 2, 3, 4}, ping...),
	} {
		if err := new(gossipCheck).packet(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string][]byte{"exchange": exchangeOf(t, 3, state), "no state": exchangeOf(t, 1, nil), "error": encoded(t, mlError, map[string]any{"Error": "x"})} {
		if err := new(gossipCheck).exchange(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string][]byte{
		"empty":              {},
		"only checksum":      {mlChecksum, 1, 2, 3, 4},
		"compressed":         {9, 0x80},
		"encrypted":          {10, 0x80},
		"label":              {244, 1, 'x'},
		"exchange as packet": exchangeOf(t, 0, nil),
		"bundle in a bundle": compoundOf(compoundOf(ping)),
		"bundle too long":    append(compoundOf(ping), 1),
		"bundle too short":   compoundOf(ping)[:5],
		"bundle of nothing":  {mlCompound, 1, 0, 0},
		"not a map":          {mlPing, 0x93, 1, 2, 3},
		"trailing byte":      append(bytes.Clone(ping), 0),
		"claimed map":        {mlPing, 0xdf, 0xff, 0xff, 0xff, 0xff},
		"claimed array":      {mlPing, 0x81, 0xa1, 'x', 0xdd, 0x7f, 0xff, 0xff, 0xff},
		"claimed string":     {mlPing, 0x81, 0xa1, 'x', 0xdb, 0x7f, 0xff, 0xff, 0xff},
		"deep":               append(append([]byte{mlPing, 0x81, 0xa1, 'x'}, bytes.Repeat([]byte{0x91}, 50)...), 1),
		"extension":          {mlPing, 0x81, 0xa1, 'x', 0xd4, 1, 1},
		"short versions":     encoded(t, mlAlive, map[string]any{"Node": "x", "Vsn": []byte{1}}),
		"bomb in tags":       encoded(t, mlAlive, map[string]any{"Node": "x", "Vsn": make([]byte, 6), "Meta": []byte{serfTagsMagic, 0xdf, 0xff, 0xff, 0xff, 0xff}}),
		"tags of numbers":    encoded(t, mlAlive, map[string]any{"Node": "x", "Vsn": make([]byte, 6), "Meta": []byte{serfTagsMagic, 0x81, 0xa1, 'x', 1}}),
		"old tags":           encoded(t, mlAlive, map[string]any{"Node": "x", "Vsn": make([]byte, 6), "Meta": []byte("role")}),
		"user event":         user(3, map[string]any{"LTime": 1}),
		"query":              user(4, map[string]any{"LTime": 1}),
		"relay":              user(9, map[string]any{}),
		"end of time":        user(serfJoin, map[string]any{"LTime": uint64(1<<64 - 2), "Node": "x"}),
		"negative time":      user(serfLeave, map[string]any{"LTime": -1, "Node": "x"}),
	} {
		if err := new(gossipCheck).packet(b); !errors.Is(err, errMalformed) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	late := encoded(t, serfPushPull, map[string]any{"LTime": 7, "StatusLTimes": map[string]uint64{"x": 1 << 63}})
	events := encoded(t, serfPushPull, map[string]any{"LTime": 7, "Events": []any{map[string]int{"LTime": 1}}})
	for name, b := range map[string][]byte{
		"empty":           {},
		"ping":            ping,
		"many members":    encoded(t, mlPushPull, map[string]any{"Nodes": 1 << 20, "UserStateLen": 0}),
		"fewer members":   exchangeOf(t, 2, nil)[:100],
		"more state":      append(exchangeOf(t, 1, state), 0),
		"state of a kind": exchangeOf(t, 1, join),
		"late status":     exchangeOf(t, 1, late),
		"events":          exchangeOf(t, 1, events),
	} {
		if err := new(gossipCheck).exchange(b); !errors.Is(err, errMalformed) {
			t.Errorf("exchange, %s: got %v, want a refusal", name, err)
		}
	}
}

// TestLamportJump walks the logical clock up in steps that are too large.
func TestLamportJump(t *testing.T) {
	var c gossipCheck
	for i, tc := range []struct {
		time uint64
		ok   bool
	}{{1, true}, {1 << 32, true}, {1 << 34, false}, {1<<33 + 1, false}, {1 << 33, true}, {5, true}} {
		if err := c.witness(tc.time); (err == nil) != tc.ok {
			t.Errorf("step %d to %d: got %v, want ok %v", i, tc.time, err, tc.ok)
		}
	}
}

// FuzzGossip feeds what the check lets through to the decoder behind it: it
// must never panic there, nor take more memory than the bytes justify.
func FuzzGossip(f *testing.F) {
	f.Add(aliveMessage("x", net.IPv4(10, 0, 0, 1).To4(), 7000, map[string]string{"s": "x"}))
	f.Add(compoundOf(encoded(f, mlPing, map[string]any{"SeqNo": 1})))
	f.Add(exchangeOf(f, 2, encoded(f, serfPushPull, map[string]any{"LTime": 7, "StatusLTimes": map[string]int{"x": 3}})))
	f.Add([]byte{mlUser, serfJoin, 0x81, 0xa5, 'L', 'T', 'i', 'm', 'e', 5})
	type anything struct {
		SeqNo, Incarnation uint32
		Node, From, Name   string
		Addr, Meta, Vsn    []byte
		Port               uint16
		LTime              uint64
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c gossipCheck
		_ = c.exchange(b)
		if c.packet(b) != nil || b[0] == mlCompound || b[0] == mlChecksum {
			return
		}
		b = b[1:]
		if len(b) > 0 && b[0] < 0x80 { // a serf message has one more byte
			b = b[1:]
		}
		var v anything
		_ = codec.NewDecoderBytes(b, &codec.MsgpackHandle{}).Decode(&v)
	})
}

func FuzzTags(f *testing.F) {
	f.Add(memberName(testID(1), 7), "name", "site", "1")
	f.Add("x.1", "", "", "0")
	f.Fuzz(func(t *testing.T, name, n, s, r string) {
		if id, boot, err := parseMemberName(name); err == nil && memberName(id, boot) != name {
			t.Errorf("member name %q is written as %q", name, memberName(id, boot))
		}
		in := map[string]string{tagName: n, tagSite: s}
		if r != "" {
			in[tagReady] = r
		}
		if got, err := decodeTags(in); err == nil && fmt.Sprint(got.encode()) != fmt.Sprint(in) {
			t.Errorf("tags %v are written as %v", in, got.encode())
		}
	})
}
