package pass

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/ropeline/ropeline/node"
)

func from(prefix, agent string, byAddress, byAgent bool) *Binding {
	return &Binding{ByAddress: byAddress, ByAgent: byAgent, Address: netip.MustParsePrefix(prefix), Agent: []byte(agent)}
}

// TestABoundPassComesFromWhereItWasGiven: sealed by one and opened by another binding.
func TestABoundPassComesFromWhereItWasGiven(t *testing.T) {
	const home, office, phone = "192.0.2.0/24", "198.51.100.0/24", "2001:db8:7::/48"
	nothing := (*Binding)(nil)
	for _, c := range []struct {
		name   string
		given  *Binding
		shown  *Binding
		as, ok bool
	}{
		{"the same network", from(home, "a", true, false), from(home, "b", true, false), true, true},
		{"another one", from(home, "a", true, false), from(office, "a", true, false), false, false},
		{"of IPv6", from(phone, "a", true, false), from(phone, "a", true, false), true, true},
		{"one of IPv6 from another", from(phone, "a", true, false), from("2001:db8:8::/48", "a", true, false), false, false},
		{"a part of the network", from(home, "a", true, false), from("192.0.2.0/25", "a", true, false), false, false},
		{"IPv4 inside IPv6", from("0.0.0.0/24", "a", true, false), from("::/24", "a", true, false), false, false},
		{"the same browser", from(home, "a", false, true), from(office, "a", false, true), true, true},
		{"another browser", from(home, "a", false, true), from(home, "b", false, true), false, false},
		{"no browser", from(home, "", false, true), from(home, "", false, true), true, true},
		{"both", from(home, "a", true, true), from(home, "a", true, true), true, true},
		{"both, elsewhere", from(home, "a", true, true), from(office, "a", true, true), false, false},
		{"both, another browser", from(home, "a", true, true), from(home, "b", true, true), false, false},

		{"bound since", nothing, from(home, "a", true, true), false, true},
		{"bound more since", from(home, "a", true, false), from(home, "b", true, true), false, true},
		{"bound otherwise since", from(home, "a", true, false), from(home, "b", false, true), false, true},
		{"bound otherwise since, elsewhere", from(home, "a", true, false), from(office, "a", false, true), false, false},
		{"bound to nothing any more", from(home, "a", true, true), from(office, "b", false, false), false, true},
		{"nobody asks any more", from(home, "a", true, true), nothing, false, true},
		{"never bound", nothing, nothing, true, true},
	} {
		r := keyring(t, 1, 1, 2)
		for _, want := range []node.Pass{admitted(), waiting(), borrowed()} {
			text := r.AppendSealTo(nil, want, shopHost, c.given)
			p, as, err := r.OpenFrom(text, shop, shopHost, c.shown)
			switch {
			case c.ok && (err != nil || p != want || as != c.as):
				t.Errorf("%s: got %+v, %v, %v, want it as it was and %v", c.name, p, as, err, c.as)
			case !c.ok && (!errors.Is(err, ErrInvalid) || p != (node.Pass{})):
				t.Errorf("%s: got %+v, %v, want ErrInvalid", c.name, p, err)
			}
		}
	}
}

// TestABoundPassTellsNothingWithoutItsKey: by another key the same network has another
// hash, so passes of two meshes cannot be compared.
func TestABoundPassTellsNothingWithoutItsKey(t *testing.T) {
	b := from("192.0.2.0/24", "a", true, true)
	one, two := bindingKey(key(1)), bindingKey(key(2))
	if b.sum(partsKnown, &one) == b.sum(partsKnown, &two) {
		t.Error("two keys give one hash")
	}
	seen := map[[sumSize]byte]byte{}
	for parts := range byte(partsKnown + 1) {
		sum := b.sum(parts, &one)
		if other, ok := seen[sum]; ok {
			t.Errorf("parts %b and %b give one hash", parts, other)
		}
		seen[sum] = parts
	}
}

func TestEveryChangedBitOfABoundPassIsRefused(t *testing.T) {
	r := keyring(t, 1, 1, 2)
	b := from("192.0.2.0/24", "a", true, true)
	text := r.AppendSealTo(nil, borrowed(), shopHost, b)
	if len(text) > 180 {
		t.Errorf("a bound pass has %d bytes, want at most 180", len(text))
	}
	for i := range text {
		for bit := range 8 {
			changed := slices.Clone(text)
			changed[i] ^= 1 << bit
			for _, by := range []*Binding{b, nil} {
				if p, _, err := r.OpenFrom(changed, shop, shopHost, by); !errors.Is(err, ErrInvalid) || p != (node.Pass{}) {
					t.Fatalf("bit %d of byte %d: got %+v, %v", bit, i, p, err)
				}
			}
		}
	}
}
