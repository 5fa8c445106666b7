package crdt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// replica is one copy of some mergeable state, as the laws see it. Deltas and
// digests pass through their encodings, so every law also holds of the codec.
type replica interface {
	clone() replica
	merge(replica)
	write(w write, now time.Time)
	digest() []byte
	delta(have []byte, limit int) []byte
	join(a, b []byte) []byte
	apply(delta []byte, now time.Time) error
	recode() replica // decode(encode(x))
	// detach takes deltas of both, joins and applies them without a codec in
	// between, and scribbles over all that came of it.
	detach(o replica)
	expire(now time.Time)

	held() string                 // the lattice, in full
	promised() string             // what is known, and the knowledge
	scribble()                    // overwrites all memory of its own
	visible(now time.Time) string // what a reader is told
	current(now time.Time) string // the same, without what is only fading
}

// write is one random change, to be read by each type in its own way.
type write struct {
	room, kind, back, amount, special int
}

var lawRetention = Retention{
	History:  2 * time.Minute,
	Arrivals: 10 * time.Minute,
	Room:     func(RoomID) Fading { return Fading{Session: time.Minute, Refresh: 8 * time.Second} },
}

var subjects = map[string]func(n int) []replica{
	"rows":      newRowReplicas,
	"summaries": newSummaryReplicas,
	"lww":       newLWWReplicas,
}

// history is where a random run has led: replicas that wrote, heard of each
// other in part, and the messages that were under way.
type history struct {
	replicas []replica
	flights  [][]byte
	now      time.Time
}

// drawHistory is the one generator of all types: it makes states that can be
// reached, by owners that write and messages that are cut, lost, doubled, late
// and out of order.
func drawHistory(t *rapid.T, fresh func(n int) []replica) *history {
	h := &history{replicas: fresh(3), now: time.Unix(1_800_000_000, 0)}
	// Sampled, since ranges prefer small numbers, and a run of nothing but
	// first choices has no holes in it.
	who := rapid.SampledFrom([]int{0, 1, 2})
	small := rapid.SampledFrom([]int{0, 1, 2, 3})
	kind := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5})
	for range rapid.SampledFrom([]int{5, 20, 50}).Draw(t, "steps") {
		a, b := h.replicas[who.Draw(t, "from")], h.replicas[who.Draw(t, "to")]
		switch rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5}).Draw(t, "step") {
		case 0, 1:
			a.write(write{
				small.Draw(t, "room"), kind.Draw(t, "kind"), rapid.IntRange(0, 30).Draw(t, "back"),
				small.Draw(t, "amount"), rapid.IntRange(0, 9).Draw(t, "special"),
			}, h.now)
		case 2: // heard at once
			h.deliver(t, b, a.delta(b.digest(), limits.Draw(t, "limit")))
		case 3: // under way
			h.flights = append(h.flights, a.delta(b.digest(), limits.Draw(t, "limit")))
		case 4: // arrives anywhere, any number of times
			if len(h.flights) > 0 {
				h.deliver(t, b, rapid.SampledFrom(h.flights).Draw(t, "flight"))
			}
		case 5:
			h.now = h.now.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "ms")) * time.Millisecond)
		}
	}
	return h
}

var limits = rapid.SampledFrom([]int{0, 220, 300, 500, 1000})

func (h *history) deliver(t *rapid.T, to replica, delta []byte) {
	if err := to.apply(delta, h.now); err != nil {
		t.Fatalf("an honest delta was refused: %v", err)
	}
}

func merged(rs ...replica) replica {
	m := rs[0].clone()
	for _, r := range rs[1:] {
		m.merge(r)
	}
	return m
}

func both(r replica) string { return r.held() + r.promised() }

func equal(t *rapid.T, law, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("%s:\ngot  %s\nwant %s", law, got, want)
	}
}

func checkLaws(t *rapid.T, fresh func(n int) []replica) {
	h := drawHistory(t, fresh)
	checkMerge(t, h)
	checkOwnership(t, h)
	checkDeltas(t, h, fresh)
	checkRounds(t, h)
	checkExpiry(t, h)
	checkDrop(t, h)
}

func checkMerge(t *rapid.T, h *history) {
	a, b, c := h.replicas[0], h.replicas[1], h.replicas[2]
	ab := merged(a, b)
	equal(t, "commutative", both(merged(b, a)), both(ab))
	equal(t, "associative", both(merged(a, merged(b, c))), both(merged(ab, c)))
	equal(t, "idempotent", both(merged(a, a)), both(a))
	equal(t, "monotone", both(merged(ab, a)), both(ab))
	equal(t, "codec", both(ab.recode()), both(ab))
	for _, d := range h.flights {
		x := a.clone()
		h.deliver(t, x, d)
		equal(t, "applying is monotone", merged(x, a).held(), x.held())
		once := both(x)
		h.deliver(t, x, d)
		equal(t, "applying twice", both(x), once)
	}
}

// checkOwnership writes all over the result of a merge, of a delta and of a
// join, and looks at what they came from.
func checkOwnership(t *rapid.T, h *history) {
	a, b := h.replicas[0], h.replicas[1]
	m := merged(a, b)
	beforeA, beforeB, beforeM := both(a), both(b), both(m)
	x := m.clone()
	for i := range 8 {
		x.write(write{room: i % 3, kind: i % int(lastKind), amount: 3}, h.now)
	}
	x.expire(h.now.Add(5 * time.Minute))
	x.scribble()
	merged(a, b).scribble()
	for i, apart := range []replica{a, b} {
		apart.detach([]replica{b, a}[i])
	}
	equal(t, "left operand owns its memory", both(a), beforeA)
	equal(t, "right operand owns its memory", both(b), beforeB)
	equal(t, "clone owns its memory", both(m), beforeM)
}

// checkDeltas takes a state apart into cut deltas and puts it together again in
// another order, doubled and joined.
func checkDeltas(t *rapid.T, h *history, fresh func(n int) []replica) {
	whole := merged(h.replicas...)
	limit := limits.Draw(t, "cut")
	empty := blank(fresh)
	var chain [][]byte
	for x := blank(fresh); ; {
		d := whole.delta(x.digest(), limit)
		size := len(d)
		if r, ok := whole.(interface{ size([]byte) int }); ok {
			size = r.size(d)
		}
		if limit > 0 && size > limit {
			t.Fatalf("delta of %d bytes, limit %d", size, limit)
		}
		before := both(x) + string(x.digest())
		h.deliver(t, x, d)
		if both(x)+string(x.digest()) == before {
			equal(t, "cut deltas in order", x.promised(), whole.promised())
			break
		}
		chain = append(chain, d)
	}
	full := empty.clone()
	h.deliver(t, full, whole.delta(empty.digest(), 0))
	equal(t, "one delta is the state", both(full), both(whole))

	shuffled := empty.clone()
	h.deliverAll(t, shuffled, rapid.Permutation(append(chain, chain...)).Draw(t, "order"))
	all := empty.clone()
	inOrder := rapid.Permutation(chain).Draw(t, "join order")
	h.deliverAll(t, all, inOrder)
	var join []byte
	for i, d := range inOrder {
		if i == 0 {
			join = d
		} else {
			join = whole.join(join, d)
		}
	}
	equal(t, "shuffled and doubled deltas", shuffled.held(), all.held())
	if len(chain) > 0 {
		joined := empty.clone()
		h.deliver(t, joined, join)
		equal(t, "joined deltas", joined.promised(), whole.promised())
		equal(t, "joined deltas hold as much", joined.held(), all.held())
	}
	h.deliver(t, shuffled, whole.delta(shuffled.digest(), 0))
	equal(t, "a digest round after shuffled deltas", shuffled.promised(), whole.promised())
}

// deliverAll delivers deltas again and again until they bring nothing more: one behind a hole may be left aside.
func (h *history) deliverAll(t *rapid.T, r replica, all [][]byte) {
	for {
		was := both(r) + string(r.digest())
		for _, d := range all {
			h.deliver(t, r, d)
		}
		if both(r)+string(r.digest()) == was {
			return
		}
	}
}

func blank(fresh func(n int) []replica) replica { return fresh(0)[0] }

// checkRounds lets everybody answer everybody's digest once. The writer of each
// part is among the replicas, so all then know the same.
func checkRounds(t *rapid.T, h *history) {
	whole := merged(h.replicas...)
	for i, r := range meet(t, h, h.replicas) {
		equal(t, fmt.Sprintf("replica %d after a digest round", i), r.promised(), whole.promised())
	}
}

func meet(t *rapid.T, h *history, rs []replica) []replica {
	var out []replica
	for _, r := range rs {
		x := r.clone()
		for _, o := range rs {
			h.deliver(t, x, o.delta(x.digest(), 0))
		}
		out = append(out, x)
	}
	return out
}

func checkExpiry(t *rapid.T, h *history) {
	whole := merged(h.replicas...)
	later := h.now.Add(time.Duration(rapid.IntRange(0, 540).Draw(t, "later")) * time.Second)
	want := whole.visible(later)
	for _, r := range h.replicas {
		x := r.clone()
		x.expire(later)
		equal(t, "expiry is not seen by readers", x.visible(later), r.visible(later))
		once := both(x)
		x.expire(later)
		equal(t, "expiry twice", both(x), once)
	}
	kept := whole.clone()
	kept.expire(later)
	for _, d := range h.flights {
		x := kept.clone()
		h.deliver(t, x, d)
		equal(t, "a late message brings nothing back", x.visible(later), want)
	}
	var expired []replica
	for _, r := range h.replicas {
		x := r.clone()
		x.expire(later)
		expired = append(expired, x)
	}
	equal(t, "expiry before and after merging", merged(expired...).visible(later), want)
	for i, x := range meet(t, h, expired) {
		x.expire(later)
		for line := range strings.Lines(whole.current(later)) {
			if seen := x.visible(later); !strings.Contains(seen, strings.TrimSpace(line)) {
				t.Fatalf("replica %d, expired before a digest round:\ngot  %s\nwant %s", i, seen, line)
			}
		}
	}
}

// checkDrop drops a room everywhere: nothing is left of it, also once all have met, what is held of others stays, and
// nobody promises less.
func checkDrop(t *rapid.T, h *history) {
	room := testRoom(rapid.IntRange(0, 3).Draw(t, "dropped"))
	var dropped []replica
	for _, r := range h.replicas {
		x := r.clone()
		d, ok := x.(interface{ Drop(RoomID) })
		if !ok {
			return // it counts nothing
		}
		d.Drop(room)
		equal(t, "others stay", x.held(), without(room, r.held()))
		equal(t, "promises stay", fmt.Sprintf("%x", x.digest()), fmt.Sprintf("%x", r.digest()))
		dropped = append(dropped, x)
	}
	for _, x := range append(meet(t, h, dropped), merged(dropped...)) {
		equal(t, "nothing is left", without(room, x.held()), x.held())
	}
}

// without returns the lines that are not of a room.
func without(room RoomID, lines string) string {
	of := slices.DeleteFunc(strings.Split(lines, "\n"), func(line string) bool { return strings.Contains(line, room.String()) })
	return strings.Join(of, "\n")
}

func TestLaws(t *testing.T) {
	for name, fresh := range subjects {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkLaws(t, fresh) })
		})
	}
}

func FuzzLaws(f *testing.F) {
	f.Add([]byte("rows and summaries and the last writer map"))
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"rows", "summaries", "lww"}).Draw(t, "type")
		checkLaws(t, subjects[name])
	}))
}
