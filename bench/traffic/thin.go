package traffic

import (
	"math/rand/v2"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/replica"
)

// countsKind is the kind of messages of counts, by the number that goes over the wire.
const countsKind = 1

// thin is a node without rules: it counts the visitors it is told of and keeps its counts in
// step with others. It says what a whole node says of counts, as a test holds, and costs a tenth
// of one to run: meshes of hundreds of sites are made of these. It writes nothing into the
// last-writer map.
type thin struct {
	*replica.Replica
}

func newThin(self crdt.Incarnation, site string, rng *rand.Rand) (thin, error) {
	r, err := replica.New(replica.Config{Self: self, Site: site, Rand: rng})
	return thin{r}, err
}

func (t thin) Tick(now time.Time) []node.Message { return wrap(t.Replica.Tick(now)) }

func (t thin) Receive(from replica.Peer, _ uint8, payload []byte, now time.Time) ([]node.Message, error) {
	out, err := t.Replica.Receive(from, payload, now)
	return wrap(out), err
}

func wrap(in []replica.Message) []node.Message {
	out := make([]node.Message, len(in))
	for i, m := range in {
		out[i] = node.Message{To: m.To, Kind: countsKind, Slot: m.Slot, Payload: m.Payload}
	}
	return out
}

// enter counts a visitor who is let in, and leave one whose session is over.
func (t thin) enter(r crdt.RoomID, now time.Time) {
	tick := crdt.TickOf(now)
	t.Add(crdt.Key{Room: r, Kind: crdt.Active}, 1, 0, now)
	t.Add(crdt.Key{Room: r, Kind: crdt.Seen, Tick: tick}, 1, 0, now)
	t.Add(crdt.Key{Room: r, Kind: crdt.Admitted, Tick: tick}, 1, 0, now)
}

func (t thin) leave(r crdt.RoomID, now time.Time) {
	t.Add(crdt.Key{Room: r, Kind: crdt.Active}, 0, 1, now)
}
