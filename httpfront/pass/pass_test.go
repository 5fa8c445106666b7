package pass

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/ticket"
)

var (
	shop     = crdt.RoomID{1, 2, 3}
	shopHost = "shop.example"
	day      = time.Date(2026, 3, 4, 5, 6, 7, int(89*time.Millisecond), time.UTC)
)

func key(id byte) Key {
	k := Key{ID: id}
	for i := range k.Secret {
		k.Secret[i] = id + byte(i) + 1
	}
	return k
}

func keyring(tb testing.TB, sealing byte, ids ...byte) *Keyring {
	tb.Helper()
	var keys []Key
	for _, id := range ids {
		keys = append(keys, key(id))
	}
	r, err := NewKeyring(sealing, keys...)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func admitted() node.Pass {
	return node.Pass{
		Visitor:    node.VisitorID{9, 8, 7},
		Room:       shop,
		Arrival:    day,
		LastPoll:   day.Add(40 * time.Second),
		Refresh:    20 * time.Second,
		AcceptedAt: day.Add(time.Minute),
		LeaseEnd:   day.Add(6 * time.Minute),
		Ticket:     ticket.Ticket{Anchor: crdt.NodeID{5}, Boot: 3, Block: 4, Seq: 1 << 40},
	}
}

func passes() *rapid.Generator[node.Pass] {
	return rapid.Custom(func(t *rapid.T) node.Pass {
		id := func(name string) (b [16]byte) {
			copy(b[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name))
			return b
		}
		at := func(name string) time.Time {
			return time.UnixMilli(rapid.Int64Range(1, milliLimit-1).Draw(t, name)).UTC()
		}
		p := node.Pass{Visitor: id("visitor"), Room: id("room"), Arrival: at("arrival"), LastPoll: at("poll")}
		p.Refresh = time.Duration(rapid.Int64Range(0, 1<<31).Draw(t, "refresh")) * time.Millisecond
		if rapid.Bool().Draw(t, "accepted") {
			p.AcceptedAt, p.LeaseEnd = at("accepted"), at("end")
		}
		if rapid.Bool().Draw(t, "ticket") {
			p.Ticket = ticket.Ticket{
				Anchor: id("anchor"),
				Boot:   rapid.Uint64().Draw(t, "boot"),
				Block:  rapid.Uint32().Draw(t, "block"),
				Seq:    rapid.Uint64().Draw(t, "seq"),
			}
		}
		return p
	})
}

func TestWhatWasSealedOpens(t *testing.T) {
	r := keyring(t, 1, 1)
	rapid.Check(t, func(t *rapid.T) {
		want := passes().Draw(t, "pass")
		host := string(rapid.SliceOfN(rapid.Byte(), 0, hostMax).Draw(t, "host"))
		text := r.AppendSeal([]byte("x="), want, host)
		if len(text)-2 > MaxSize {
			t.Fatalf("sealed pass has %d bytes, more than MaxSize %d", len(text)-2, MaxSize)
		}
		got, err := r.Open(text[2:], want.Room, host)
		if err != nil || got != want {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestOutOfRangeTimesAreClamped(t *testing.T) {
	r := keyring(t, 1, 1)
	p := node.Pass{Room: shop, Arrival: time.Unix(-5, 0), LastPoll: time.Unix(1<<40, 0), Refresh: -time.Second}
	got, err := r.Open(r.AppendSeal(nil, p, ""), shop, "")
	if err != nil {
		t.Fatal(err)
	}
	long, err := r.Open(r.AppendSeal(nil, node.Pass{Room: shop, Refresh: 1<<63 - 1}, ""), shop, "")
	if err != nil || long.Refresh != (refreshLimit-1)*time.Millisecond {
		t.Errorf("the longest refresh interval became %v, %v", long.Refresh, err)
	}
	if !got.Arrival.IsZero() || got.LastPoll.UnixMilli() != milliLimit-1 || got.Refresh != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestSize(t *testing.T) {
	r := keyring(t, 1, 1)
	if n := len(r.AppendSeal(nil, admitted(), shopHost)); n > 160 {
		t.Errorf("an admitted visitor's pass has %d bytes, want at most 160", n)
	}
	if MaxSize > 200 {
		t.Errorf("MaxSize is %d, want at most 200", MaxSize)
	}
}

func TestEveryChangedBitIsRefused(t *testing.T) {
	r := keyring(t, 1, 1, 2)
	text := r.AppendSeal(nil, admitted(), shopHost)
	for i := range text {
		for bit := range 8 {
			changed := bytes.Clone(text)
			changed[i] ^= 1 << bit
			refused(t, r, changed, shop, shopHost)
		}
	}
}

func TestEveryCutAndEveryExtraByteIsRefused(t *testing.T) {
	r := keyring(t, 1, 1)
	text := r.AppendSeal(nil, admitted(), shopHost)
	for n := range len(text) {
		refused(t, r, text[:n], shop, shopHost)
		refused(t, r, text[n+1:], shop, shopHost)
		for _, extra := range []byte("A=\r\n\x00") {
			refused(t, r, slices.Insert(bytes.Clone(text), n, extra), shop, shopHost)
		}
	}
	refused(t, r, bytes.Repeat([]byte("A"), 1<<20), shop, shopHost)
}

func TestForeignPassesAreRefused(t *testing.T) {
	r := keyring(t, 1, 1)
	text := r.AppendSeal(nil, admitted(), shopHost)
	refused(t, r, text, crdt.RoomID{1, 2, 4}, shopHost)
	refused(t, r, text, shop, "shop.example.org")
	refused(t, r, text, shop, "")

	other, err := NewKeyring(1, Key{ID: 1, Secret: key(7).Secret})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, other, text, shop, shopHost)
	refused(t, keyring(t, 2, 2), text, shop, shopHost)
}

func refused(t *testing.T, r *Keyring, text []byte, room crdt.RoomID, host string) {
	t.Helper()
	p, err := r.Open(text, room, host)
	if !errors.Is(err, ErrInvalid) || p != (node.Pass{}) {
		t.Fatalf("opening %q gave %+v, %v, want ErrInvalid", text, p, err)
	}
}

func TestOldKeysOpenAndOnlyOneSeals(t *testing.T) {
	old := keyring(t, 1, 1)
	both := keyring(t, 2, 1, 2)
	if _, err := both.Open(old.AppendSeal(nil, admitted(), shopHost), shop, shopHost); err != nil {
		t.Errorf("a pass of the old key: %v", err)
	}
	refused(t, old, both.AppendSeal(nil, admitted(), shopHost), shop, shopHost)
}

func TestKeyringRefusesBadKeys(t *testing.T) {
	for name, keys := range map[string][]Key{
		"none":    nil,
		"missing": {key(2)},
		"twice":   {key(1), key(1)},
		"zero":    {{ID: 1}},
	} {
		if _, err := NewKeyring(1, keys...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBodyIsExact(t *testing.T) {
	b := appendBody(nil, admitted())
	if _, ok := parseBody(b); !ok {
		t.Fatal("the body itself does not parse")
	}
	for n := range b {
		if _, ok := parseBody(b[:n]); ok {
			t.Errorf("a body cut to %d bytes parses", n)
		}
	}
	if _, ok := parseBody(append(bytes.Clone(b), 0)); ok {
		t.Error("a body with a byte too many parses")
	}
	b[0] |= 0x80
	if _, ok := parseBody(b); ok {
		t.Error("a body with an unknown flag parses")
	}
}

// stored is admitted() as it was once sealed with key 1. Passes outlive the
// program that sealed them, so it must go on opening.
var stored = []byte("AQGtXa-cbCgoN8O2LskNw2LLHxfMvtdcChdzh2Wd60g52CpdB4ZygUkpNN2EMDbsybn7MX6i" +
	"V2xFbD4qxoe46HLTaxC8w8hhcfcWTsVCi4Zo2EnYU71PJWhEjiIe8wia3CFmwgpYIsqDJcVY3CM")

func TestStoredPassOpens(t *testing.T) {
	p, err := keyring(t, 2, 1, 2).Open(stored, shop, shopHost)
	if err != nil || p != admitted() {
		t.Errorf("got %+v, %v", p, err)
	}
}

func FuzzOpen(f *testing.F) {
	r := keyring(f, 1, 1, 2)
	good := stored // the same in every process that fuzzes
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte("AQ"))
	f.Fuzz(func(t *testing.T, text []byte) {
		// Nobody without the key can write a pass, so what opens is the seed.
		if _, err := r.Open(text, shop, shopHost); err == nil && !bytes.Equal(text, good) {
			t.Errorf("%q opens", text)
		}
	})
}

func FuzzParseBody(f *testing.F) {
	f.Add(appendBody(nil, admitted()))
	f.Add(appendBody(nil, node.Pass{Arrival: day, LastPoll: day}))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := parseBody(b)
		if !ok {
			return
		}
		again, ok := parseBody(appendBody(nil, p))
		if !ok || again != p && (p.Accepted() || p.AcceptedAt == p.LeaseEnd) {
			t.Errorf("%+v became %+v", p, again)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	r := keyring(b, 1, 1)
	p := admitted()
	buf := make([]byte, 0, MaxSize)
	b.ReportAllocs()
	for b.Loop() {
		buf = r.AppendSeal(buf[:0], p, shopHost)
	}
}

func BenchmarkOpen(b *testing.B) {
	r := keyring(b, 1, 1)
	text := r.AppendSeal(nil, admitted(), shopHost)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Open(text, shop, shopHost); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenForged(b *testing.B) {
	r := keyring(b, 1, 1)
	text := r.AppendSeal(nil, admitted(), shopHost)
	text[40] ^= 1
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Open(text, shop, shopHost); err == nil {
			b.Fatal("opened")
		}
	}
}
