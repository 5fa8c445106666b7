package pass

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
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

func keyring(sealing byte, ids ...byte) *Keyring {
	var keys []Key
	for _, id := range ids {
		keys = append(keys, key(id))
	}
	return must.Do(NewKeyring(key(sealing), keys...))
}

func admitted() node.Pass {
	return node.Pass{
		Visitor: node.VisitorID{9, 8, 7}, Room: shop, Arrival: day, LastPoll: day.Add(40 * time.Second), Refresh: 20 * time.Second,
		AcceptedAt: day.Add(time.Minute), LeaseEnd: day.Add(6 * time.Minute),
		Ticket: ticket.Ticket{Anchor: crdt.NodeID{5}, Boot: 3, Block: 4, Seq: 1 << 40},
	}
}

// passes are of those who wait and of those who are in, with and without a ticket, and with and without what they were shown.
func passes() *rapid.Generator[node.Pass] {
	at := rapid.Map(rapid.Int64Range(1, milliLimit-1), func(ms int64) time.Time { return time.UnixMilli(ms).UTC() })
	refresh := rapid.Map(rapid.Int64Range(0, 1<<31), func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond })
	whole := rapid.MakeCustom[node.Pass](rapid.MakeConfig{
		Types: map[reflect.Type]*rapid.Generator[any]{reflect.TypeFor[time.Time](): at.AsAny(), reflect.TypeFor[time.Duration](): refresh.AsAny()},
		Fields: map[reflect.Type]map[string]*rapid.Generator[any]{
			reflect.TypeFor[node.Pass](): {"Foreign": rapid.Just(false).AsAny()}, // it is not stored
		},
	})
	return rapid.Custom(func(t *rapid.T) node.Pass {
		p := whole.Draw(t, "pass")
		if rapid.Bool().Draw(t, "waits") {
			p.AcceptedAt, p.LeaseEnd = time.Time{}, time.Time{}
		}
		if rapid.Bool().Draw(t, "without a ticket") {
			p.Ticket = ticket.Ticket{}
		}
		if p.Accepted() || !p.Ticket.IsZero() || rapid.Bool().Draw(t, "shown nothing") { // of who is in it is not kept
			p.Shown = room.Shown{}
		}
		return p
	})
}

func TestWhatWasSealedOpens(t *testing.T) {
	r := keyring(1, 1)
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
	r := keyring(1, 1)
	p := node.Pass{Room: shop, Arrival: time.Unix(-5, 0), LastPoll: time.Unix(1<<40, 0), Refresh: -time.Second}
	got := must.Do(r.Open(r.AppendSeal(nil, p, ""), shop, ""))
	long := must.Do(r.Open(r.AppendSeal(nil, node.Pass{Room: shop, Refresh: 1<<63 - 1}, ""), shop, ""))
	if !got.Arrival.IsZero() || got.LastPoll.UnixMilli() != milliLimit-1 || got.Refresh != 0 || long.Refresh != (refreshLimit-1)*time.Millisecond {
		t.Errorf("got %+v, and the longest refresh interval became %v", got, long.Refresh)
	}
}

// borrowed returns the pass of somebody who is in without a right, with a ticket
// of a block.
func borrowed() node.Pass {
	p := admitted()
	p.Ticket.Block, p.Borrowed = 1<<32-1, true
	return p
}

// waiting returns the pass of somebody who was told something.
func waiting() node.Pass {
	return node.Pass{
		Visitor: node.VisitorID{9, 8, 7}, Room: shop, Arrival: day, LastPoll: day.Add(40 * time.Second),
		Refresh: 20 * time.Second, Shown: room.Shown{Terms: 0xfedcba98, Minutes: 12, P25: 5, P75: 300},
	}
}

func TestSize(t *testing.T) {
	r := keyring(1, 1)
	for what, c := range map[string]struct{ size, most int }{
		"a waiting visitor's pass":           {len(r.AppendSeal(nil, waiting(), shopHost)), 120},
		"an admitted visitor's pass":         {len(r.AppendSeal(nil, admitted(), shopHost)), 160},
		"a borrowed session's pass":          {len(r.AppendSeal(nil, borrowed(), shopHost)), 170},
		"such a pass that is bound":          {len(r.AppendSealTo(nil, borrowed(), shopHost, bound)), 180},
		"all that there can be, which is so": {MaxSize, 210},
	} {
		if c.size > c.most {
			t.Errorf("%s has %d bytes, want at most %d", what, c.size, c.most)
		}
	}
}

func TestEveryChangedBitIsRefused(t *testing.T) {
	r := keyring(1, 1, 2)
	for _, to := range []*Binding{nil, bound} {
		text := r.AppendSealTo(nil, borrowed(), shopHost, to)
		for i := range text {
			for bit := range 8 {
				changed := bytes.Clone(text)
				changed[i] ^= 1 << bit
				refused(t, r, changed, shop, shopHost)
				refusedFrom(t, r, changed, bound)
			}
		}
	}
}

func TestEveryCutAndEveryExtraByteIsRefused(t *testing.T) {
	r := keyring(1, 1)
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
	r := keyring(1, 1)
	text := r.AppendSeal(nil, admitted(), shopHost)
	refused(t, r, text, crdt.RoomID{1, 2, 4}, shopHost)
	refused(t, r, text, shop, "shop.example.org")
	refused(t, r, text, shop, "")

	refused(t, must.Do(NewKeyring(Key{ID: 1, Secret: key(7).Secret})), text, shop, shopHost)
	refused(t, keyring(2, 2), text, shop, shopHost)
}

func refused(t *testing.T, r *Keyring, text []byte, room crdt.RoomID, host string) {
	t.Helper()
	p, err := r.Open(text, room, host)
	if !errors.Is(err, ErrInvalid) || p != (node.Pass{}) {
		t.Fatalf("opening %q gave %+v, %v, want ErrInvalid", text, p, err)
	}
}

func refusedFrom(t *testing.T, r *Keyring, text []byte, by *Binding) {
	t.Helper()
	p, _, err := r.OpenFrom(text, shop, shopHost, by)
	if !errors.Is(err, ErrInvalid) || p != (node.Pass{}) {
		t.Fatalf("opening %q from %+v gave %+v, %v, want ErrInvalid", text, by, p, err)
	}
}

func opens(t *testing.T, r *Keyring, text []byte, want node.Pass) {
	t.Helper()
	if p, err := r.Open(text, shop, shopHost); err != nil || p != want {
		t.Errorf("opening %q gave %+v, %v, want %+v", text, p, err, want)
	}
}

func TestOldKeysOpenAndOnlyOneSeals(t *testing.T) {
	old, both := keyring(1, 1), keyring(2, 1, 2)
	opens(t, both, old.AppendSeal(nil, admitted(), shopHost), admitted())
	refused(t, old, both.AppendSeal(nil, admitted(), shopHost), shop, shopHost)
}

func TestKeyringRefusesEmptyKeys(t *testing.T) {
	for what, keys := range map[string][]Key{"seals": {{ID: 1}}, "opens": {key(1), key(2), {ID: 3}}} {
		if _, err := NewKeyring(keys[0], keys[1:]...); err == nil {
			t.Errorf("an empty key %s", what)
		}
	}
	must.Do(NewKeyring(key(1), key(2), key(1), key(2))) // keys may be given twice
}

// TestPassesOfARetiringKeyAreToBeReplaced: those of a key that is to come are not, or
// nodes that have not used it yet would undo what others have done.
func TestPassesOfARetiringKeyAreToBeReplaced(t *testing.T) {
	old, now, next := key(1), key(2), key(3)
	old.Retiring = true
	r := must.Do(NewKeyring(now, next, old))
	for id, want := range map[byte]bool{1: false, 2: true, 3: true} {
		text := keyring(id, id).AppendSeal(nil, admitted(), shopHost)
		p, as, err := r.OpenFrom(text, shop, shopHost, nil)
		if err != nil || p != admitted() || as != want {
			t.Errorf("key %d: %+v, %v, %v, want %v", id, p, as, err, want)
		}
	}
}

// TestKeysOfOneNumberAreToldApart: a number is a byte, so two secrets may share it.
func TestKeysOfOneNumberAreToldApart(t *testing.T) {
	same := func(n byte) Key { return Key{ID: 9, Secret: key(n).Secret} }
	first, second := must.Do(NewKeyring(same(1), same(2))), must.Do(NewKeyring(same(2), same(1)))
	for _, r := range []*Keyring{first, second} {
		text := r.AppendSeal(nil, admitted(), shopHost)
		opens(t, first, text, admitted())
		opens(t, second, text, admitted())
	}
	refused(t, must.Do(NewKeyring(same(1))), second.AppendSeal(nil, admitted(), shopHost), shop, shopHost)
}

// some is a mesh.
var some = [meshSize]byte{1}

func TestBodyIsExact(t *testing.T) {
	for _, p := range []node.Pass{admitted(), waiting(), borrowed()} {
		b := appendBody(nil, p, []byte("a house"), some)
		if got, bound, ok := parseBody(b, some); !ok || string(bound) != "a house" || got.Shown != p.Shown || got.Ticket != p.Ticket || got.Borrowed != p.Borrowed {
			t.Fatalf("the body itself gives %+v, %q, %v", got, bound, ok)
		}
		unknown, inside := bytes.Clone(b), bytes.Clone(b)
		unknown[0] |= 0x80 // a flag that there is not
		inside[0] ^= flagShown | flagAccepted
		wrong := [][]byte{append(bytes.Clone(b), 0), unknown, inside}
		for n := range b {
			wrong = append(wrong, b[:n])
		}
		for _, b := range wrong {
			if _, _, ok := parseBody(b, some); ok {
				t.Errorf("%x parses", b)
			}
		}
	}
}

// stored are passes as they were sealed once with key 1. They outlive the program that sealed
// them, so they must go on opening.
var stored = map[string]node.Pass{
	"BwFM_mXhoUSqJG6tQ6FECpyCqBsCF1crmMfscTaaCSF_2ss-EnGsXKkig2heGRigmVBemuTq-iWe" +
		"PtGFUZuI8KnwZ_0-LgBL4vKv9qIRvI_9tptCuepMub09rtfI29uQ4XwltpTPyB5PidJktCUY_Dla90M": admitted(),
	"BwGd7zHb53XMplesk1eFTPoyUkTMXZl4_WR7ROTdcaXHsp59ul4oEqod6pG-_NqJt-_-C21uyVCd" +
		"gDew2SJVFFS2H2zPOMwjLG5pYq-OTH2-8w": waiting(),
	"BwGUFxTanWOj5B5wWpwGUX0La1LY8hBH1xyTK66kgnLAfSId44rqsxhSgUSc9cj5i-U9CF8-U7B0" +
		"udDoSaektr47Q4QqPwbTG5CQ7Y44CEZHMku1j95KSZL9HfiUjLgEr4oKW887ARMge6I3FXQxNvqF8l_JQhAt": borrowed(),
}

func TestStoredPassesOpen(t *testing.T) {
	for text, p := range stored {
		opens(t, keyring(2, 1, 2), []byte(text), p)
	}
}

// TestVersionsAreNotInterchangeable: the version is under the seal.
func TestVersionsAreNotInterchangeable(t *testing.T) {
	for text := range stored {
		for v := range byte(2 * version) {
			if raw := must.Do(encoding.DecodeString(text)); v != version {
				raw[0] = v
				refused(t, keyring(1, 1), encoding.AppendEncode(nil, raw), shop, shopHost)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	r := keyring(1, 1, 2)
	f.Add([]byte("Bw"))
	for good := range stored { // the same in every process that fuzzes
		f.Add([]byte(good))
		f.Add([]byte(good[:len(good)-1]))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := r.Open(text, shop, shopHost)
		if _, seed := stored[string(text)]; err == nil && !seed { // nobody without the key can write a pass
			t.Errorf("%q opens", text)
		}
	})
}

func FuzzParseBody(f *testing.F) {
	for _, p := range []node.Pass{admitted(), waiting(), borrowed(), {Arrival: day, LastPoll: day}} {
		f.Add(appendBody(nil, p, nil, some))
		f.Add(appendBody(nil, p, []byte("a house"), some))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, bound, ok := parseBody(b, some)
		if !ok {
			return
		}
		p.Foreign = false // it is not stored
		again, as, ok := parseBody(appendBody(nil, p, bound, some), some)
		if !ok || !bytes.Equal(as, bound) || again != p && (p.Accepted() || p.AcceptedAt == p.LeaseEnd) {
			t.Errorf("%+v bound to %q became %+v bound to %q", p, bound, again, as)
		}
	})
}

// TestSessionsOfAnotherMesh has a node that is of no mesh yet, and two meshes, show their passes to the
// others. A session is one in its own mesh only; what is left of it elsewhere is who it was, and since when.
func TestSessionsOfAnotherMesh(t *testing.T) {
	ring := keyring(1, 1)
	rings := []*Keyring{ring, ring.Of([16]byte{1}), ring.Of([16]byte{2})}
	for _, to := range []*Binding{nil, {ByAgent: true, Agent: []byte("browser")}} {
		for i, from := range rings {
			for j, at := range rings {
				for _, p := range []node.Pass{admitted(), waiting(), borrowed()} {
					p.Room = shop
					got, as, err := at.OpenFrom(from.AppendSealTo(nil, p, shopHost, to), shop, shopHost, to)
					want := p
					if p.Accepted() && i != j {
						want.LastPoll, want.Foreign = p.LeaseEnd, true
						want.AcceptedAt, want.LeaseEnd, want.Ticket, want.Borrowed = time.Time{}, time.Time{}, ticket.Ticket{}, false
					}
					if err != nil || !as || got != want {
						t.Errorf("mesh %d at %d, bound %v: got %+v, %v, %v, want %+v", i, j, to != nil, got, as, err, want)
					}
				}
			}
		}
	}
}
