package pass

import (
	"net/netip"
	"testing"

	"github.com/ropeline/ropeline/node"
)

// bound is to a network and a browser.
var bound = from("192.0.2.0/24", "a", true, true)

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
		r := keyring(1, 1, 2)
		for _, want := range []node.Pass{admitted(), waiting(), borrowed()} {
			text := r.AppendSealTo(nil, want, shopHost, c.given)
			if !c.ok {
				refusedFrom(t, r, text, c.shown)
			} else if p, as, err := r.OpenFrom(text, shop, shopHost, c.shown); err != nil || p != want || as != c.as {
				t.Errorf("%s: got %+v, %v, %v, want it as it was and %v", c.name, p, as, err, c.as)
			}
		}
	}
}

// TestABoundPassTellsNothingWithoutItsKey: by another key the same network has another
// hash, so passes of two meshes cannot be compared.
func TestABoundPassTellsNothingWithoutItsKey(t *testing.T) {
	one, two := bindingKey(key(1)), bindingKey(key(2))
	if bound.sum(partsKnown, &one) == bound.sum(partsKnown, &two) {
		t.Error("two keys give one hash")
	}
	seen := map[[sumSize]byte]byte{}
	for parts := range byte(partsKnown + 1) {
		sum := bound.sum(parts, &one)
		if other, ok := seen[sum]; ok {
			t.Errorf("parts %b and %b give one hash", parts, other)
		}
		seen[sum] = parts
	}
}
