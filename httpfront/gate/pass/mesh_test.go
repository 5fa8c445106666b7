package pass

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestSessionsOfAnotherMesh has each of three meshes show its passes to the others: the one
// that is so old that its passes do not say of which they are, and two with ids. A session
// is one in its own mesh only; what is left of it elsewhere is who it was, and since when.
func TestSessionsOfAnotherMesh(t *testing.T) {
	older := keyring(1, 1)
	rings := []*Keyring{older, older.Of([16]byte{1}), older.Of([16]byte{2})}
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

// TestOlderMeshKeepsItsFormat: nodes of before open what is sealed in their mesh, and no
// session of any other.
func TestOlderMeshKeepsItsFormat(t *testing.T) {
	older := keyring(1, 1)
	named := older.Of([16]byte{1})
	for _, c := range []struct {
		ring *Keyring
		p    node.Pass
		want byte
	}{{older, admitted(), 3}, {older.Of([16]byte{}), admitted(), 3}, {named, waiting(), 3}, {named, admitted(), 5}} {
		raw := must(encoding.DecodeString(string(c.ring.AppendSeal(nil, c.p, shopHost))))
		if raw[0] != c.want {
			t.Errorf("got version %d, want %d", raw[0], c.want)
		}
	}
}
