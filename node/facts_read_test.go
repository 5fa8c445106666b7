package node

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestFactsAreReadAsTheyChange writes, deletes and hears facts of all kinds at random, in any order and
// malformed ones among them, and holds what was read bit by bit against what is read of the whole map.
// A room whose facts have changed has another number.
func TestFactsAreReadAsTheyChange(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 35))
		r, err := replica.New(replica.Config{Self: crdt.Incarnation{Node: crdt.NodeID{9}, Boot: 1}, Site: "a", Rand: rng})
		if err != nil {
			t.Fatal(err)
		}
		now := noon
		is := newFacts(r, 0)
		for i := range 300 {
			now = now.Add(time.Millisecond)
			writeAny(t, rng, r, now)
			if rng.IntN(3) > 0 {
				continue
			}
			type state struct {
				reading uint64
				is      string
			}
			before := map[crdt.RoomID]state{}
			for id := range is.rooms {
				before[id] = state{is.readingOf(id), inWords(&is, id)}
			}
			is.update()
			want := newFacts(r, 0)
			want.update()
			for id := range union(is.rooms, want.rooms) {
				if got, want := inWords(&is, id), inWords(&want, id); got != want {
					t.Fatalf("seed %d, step %d, room %v:\nread as it changed %s\nread as a whole   %s", seed, i, id[0], got, want)
				}
				if was, known := before[id]; known && was.is != inWords(&is, id) && was.reading == is.readingOf(id) {
					t.Fatalf("seed %d, step %d: room %v has changed, and still has the number %d", seed, i, id[0], was.reading)
				}
			}
			for _, named := range []map[crdt.NodeID][]crdt.NodeID{is.named, want.named} {
				for id := range named {
					slices.SortFunc(named[id], compareNodes)
				}
			}
			got, all := []any{is.sites, is.names, is.left, is.dead, is.named, is.unheard}, []any{want.sites, want.names, want.left, want.dead, want.named, want.unheard}
			if !reflect.DeepEqual(got, all) {
				t.Fatalf("seed %d, step %d: nodes are\n%v\nand read as a whole\n%v", seed, i, got, all)
			}
		}
	}
}

func union(a, b map[crdt.RoomID]*roomFacts) map[crdt.RoomID]*roomFacts {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// inWords writes down what is known of a room.
func inWords(f *facts, id crdt.RoomID) string {
	r := *f.room(id)
	by, kept, knew := maps.Collect(r.by.all()), maps.Collect(r.kept.all()), maps.Collect(r.knew.all())
	return fmt.Sprint(f.rooms[id] != nil, r.limits, r.session, r.minter, by, r.retired, r.finals, knew, r.words, kept, r.took, r.again, r.inherited, r.counted)
}

// writeAny has a replica write a fact, delete one, or hear one out of turn.
func writeAny(t *testing.T, rng *rand.Rand, r *replica.Replica, now time.Time) {
	t.Helper()
	node := func() crdt.NodeID { return crdt.NodeID{byte(1 + rng.IntN(4))} }
	amount := func() ticket.Amount { return ticket.Amount{Places: rng.Int64N(5), Rate: rng.Int64N(3)} }
	id, a, b := crdt.RoomID{byte(rng.IntN(3))}, node(), node()
	key, value := "", []byte(nil)
	switch rng.IntN(15) {
	case 0:
		key, value = roomKey(factLimits, id), encodeAmount(amount())
	case 1:
		key, value = roomKey(factSession, id), strconv.AppendInt(nil, rng.Int64N(10), 10)
	case 2:
		key, value = roomKey(factMinter, id), a[:]
	case 3, 4:
		key, value = roomNodeKey(factMinted, id, a), encodeAmount(amount())
	case 5:
		key, value = roomNodeKey(factTold, id, a), said{session: time.Duration(rng.IntN(4)) * time.Second}.encode()
	case 6:
		key, value = roomNodeKey(factRests, id, a), said{session: time.Duration(rng.IntN(4)) * time.Second}.encode()
	case 7:
		key, value = roomKey(factRetired, id), []byte{factVersion}
	case 8:
		key, value = roomNodeKey(factKnew, id, a), ticket.AppendTold(nil, []ticket.Told{{Node: b, Minted: amount(), At: crdt.Stamp{Wall: 1, Node: b}}})
	case 9, 10:
		final := ticket.Final{Node: a, Heir: b, Span: time.Second, Minting: ticket.Minting{Known: rng.IntN(2) == 0}}
		if final.Minting.Known {
			final.Minting.Minted = amount()
		}
		if c := node(); rng.IntN(2) == 0 && c != a {
			final.Recovered = []ticket.Recovery{{Dead: c, Minted: amount()}}
		}
		key, value = roomNodeKey(factFinal, id, a), ticket.AppendFinal(nil, final)
	case 11:
		key, value = roomNodeKey(factRecovered, id, a), recovered{b, amount(), int64(rng.IntN(3))}.encode()
	case 12:
		key, value = wordKey(id, a, b), ticket.AppendWord(nil, ticket.Word{Node: b, Dead: a, Heir: node(), Round: 1})
	case 13:
		key, value = nodeKey([]string{factNode, factName, factOver}[rng.IntN(3)], a), fmt.Append(nil, rng.IntN(3))
	default:
		if key, value = nodeKey(factLeft, a), b[:]; rng.IntN(2) == 0 {
			key, value = nodeKey(factDead, a)+"/"+b.String(), []byte{factVersion}
		}
	}
	switch rng.IntN(12) {
	case 0, 1, 2:
		value = nil
	case 3:
		value = []byte("malformed")
	case 4:
		value = []byte{}
	}
	if from := node(); rng.IntN(4) == 0 {
		r.Take(key, value, crdt.Stamp{Wall: now.UnixMilli(), Node: from}, now)
	} else if err := r.Set(key, value, now); err != nil {
		t.Fatal(err)
	}
}
