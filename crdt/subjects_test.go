package crdt

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

func testNode(i int) NodeID { return NodeID{byte(i + 1), 'n'} }
func testRoom(i int) RoomID { return RoomID{byte(i + 1), 'r'} }

// must is for encodings made by the test itself.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// rowReplica is a node that writes its own row and may start again.
type rowReplica struct {
	*Rows
	me Incarnation
}

func newRowReplicas(n int) []replica {
	if n == 0 {
		return []replica{&rowReplica{new(Rows), Incarnation{testNode(9), 1}}}
	}
	var out []replica
	for i := range n {
		r := &rowReplica{new(Rows), Incarnation{testNode(i), 1}}
		r.Open(r.me, "site", time.Unix(1_800_000_000, 0))
		out = append(out, r)
	}
	return out
}

func (r *rowReplica) clone() replica  { return &rowReplica{r.Clone(), r.me} }
func (r *rowReplica) merge(o replica) { r.Merge(o.(*rowReplica).Rows) }
func (r *rowReplica) digest() []byte  { return must(r.Digest().AppendBinary(nil)) }

func (r *rowReplica) write(w write, now time.Time) {
	switch {
	case w.special == 0:
		r.me.Boot++
		r.Open(r.me, "site", now)
		return
	case !r.opened():
		return // a merged copy: nobody's node
	case w.special == 1:
		r.Close(r.me, TickOf(now)-int64(w.back), now)
		return
	}
	key := Key{testRoom(w.room), Kind(w.kind + 1), 0}
	switch key.Kind {
	case Waiting:
		key.Tick = now.Unix() - int64(w.back)
	case Seen, Admitted:
		key.Tick = TickOf(now) - int64(w.back)
	}
	r.Add(r.me, key, uint64(w.amount), uint64(w.special%3), now)
}

func (r *rowReplica) opened() bool {
	w, ok := r.rows[r.me]
	return ok && w.mine
}

func (r *rowReplica) delta(have []byte, limit int) []byte {
	return must(r.Delta(must(DecodeRowDigest(have)), limit).AppendBinary(nil))
}

func (r *rowReplica) join(a, b []byte) []byte {
	return must(must(DecodeRowDelta(a)).Join(must(DecodeRowDelta(b))).AppendBinary(nil))
}

func (r *rowReplica) apply(delta []byte, now time.Time) error {
	for _, p := range must(DecodeRowDelta(delta)).Pieces {
		if _, err := r.Apply(p, now); err != nil {
			return err
		}
	}
	return nil
}

func (r *rowReplica) scribble() {
	for _, w := range r.rows {
		for _, rc := range w.rooms {
			for s := range maps.Collect(rc.cells.all()) {
				rc.cells.set(s, entry{Cell{P: 99, N: 98}, 97})
			}
		}
	}
}

func (r *rowReplica) detach(o replica) {
	mine, theirs := r.Delta(nil, 0), o.(*rowReplica).Delta(nil, 0)
	joined, into := mine.Join(theirs), new(Rows)
	for _, p := range joined.Pieces {
		must(into.Apply(p, time.Unix(1_900_000_000, 0)))
	}
	(&rowReplica{Rows: into}).scribble()
	scribbled := fmt.Sprint(joined)
	for _, d := range []RowDelta{mine, theirs} {
		for _, p := range d.Pieces {
			for _, rc := range p.Rooms {
				clear(rc.Cells)
			}
		}
	}
	if fmt.Sprint(joined) != scribbled {
		panic("a joined delta shares memory with its parts")
	}
}

func (r *rowReplica) recode() replica {
	return &rowReplica{must(DecodeRows(must(r.AppendBinary(nil)), MaxState)), r.me}
}

func (r *rowReplica) expire(now time.Time)         { r.Expire(now, lawRetention) }
func (r *rowReplica) current(now time.Time) string { return r.visible(now) }

func (r *rowReplica) held() string { return r.dump(func(*row, entry) bool { return true }, false) }

func (r *rowReplica) promised() string {
	return r.dump(func(w *row, e entry) bool { return e.seq <= w.known }, true)
}

func (r *rowReplica) dump(keep func(*row, entry) bool, knowledge bool) string {
	var lines []string
	for owner, w := range r.rows {
		if knowledge {
			lines = append(lines, fmt.Sprint(owner, " known ", w.known, " closed ", w.closed))
		} else {
			lines = append(lines, fmt.Sprint(owner, w.site, w.seq, w.changed))
		}
		for room, rc := range w.rooms {
			for s, e := range rc.cells.all() {
				if keep(w, e) {
					lines = append(lines, fmt.Sprint(owner, room, s, e))
				}
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (r *rowReplica) visible(now time.Time) string {
	var lines []string
	for i := range 4 {
		for owner := range r.rows {
			if c := r.Count(owner, testRoom(i), now, lawRetention); !blankCounts(c) {
				lines = append(lines, fmt.Sprint(owner, i, c))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func blankCounts(c Counts) bool {
	return c.Active == 0 && c.Held == 0 && c.HeldRate == 0 && len(c.Waiting)+len(c.Seen)+len(c.Admitted) == 0
}

// summaryReplica publishes for its site whenever it thinks it should: the first
// two share a site and know nothing of each other's plans.
type summaryReplica struct {
	*Summaries
	me   Incarnation
	site string
}

func newSummaryReplicas(n int) []replica {
	out := []replica{}
	for i := range max(n, 1) {
		out = append(out, &summaryReplica{new(Summaries), Incarnation{testNode(i), 1}, []string{"east", "east", "west"}[i]})
	}
	return out
}

func (r *summaryReplica) clone() replica  { return &summaryReplica{r.Clone(), r.me, r.site} }
func (r *summaryReplica) merge(o replica) { r.Merge(o.(*summaryReplica).Summaries) }
func (r *summaryReplica) digest() []byte  { return must(r.Digest().AppendBinary(nil)) }

func (r *summaryReplica) write(w write, now time.Time) {
	leads := r.Leads(r.site, r.me)
	switch {
	case !leads && w.special > 3:
		return
	case !leads:
		r.TakeOver(r.site, r.me, 0, now)
		return
	case w.special == 1:
		r.Close(r.site, r.me, TickOf(now)-int64(w.back), now)
		return
	}
	tick := TickOf(now) - int64(w.back)
	r.Publish(r.site, r.me, testRoom(w.room), Summarize(Counts{
		Active: int64(w.amount),
		Held:   int64(w.special), HeldRate: int64(w.kind),
		Waiting: map[int64]int64{now.Unix() - int64(w.back): int64(w.kind)},
		Seen:    map[int64]int64{tick: int64(w.amount), tick - 1: int64(w.special)},
	}, time.Second), now)
}

func (r *summaryReplica) delta(have []byte, limit int) []byte {
	return must(r.Delta(must(DecodeSummaryDigest(have)), limit).AppendBinary(nil))
}

func (r *summaryReplica) join(a, b []byte) []byte {
	return must(must(DecodeSummaryDelta(a)).Join(must(DecodeSummaryDelta(b))).AppendBinary(nil))
}

func (r *summaryReplica) apply(delta []byte, now time.Time) error {
	for _, p := range must(DecodeSummaryDelta(delta)).Pieces {
		if _, err := r.Apply(p, now); err != nil {
			return err
		}
	}
	return nil
}

func (r *summaryReplica) scribble() {
	for _, w := range r.sites {
		for _, g := range w.rooms {
			scribbleSummary(g.Summary)
		}
	}
}

func scribbleSummary(s Summary) {
	for _, spans := range [][]Span{s.Waiting, s.Seen, s.Admitted} {
		for i := range spans {
			spans[i] = Span{99, 98}
		}
	}
}

func (r *summaryReplica) detach(o replica) {
	mine, theirs := r.Delta(nil, 0), o.(*summaryReplica).Delta(nil, 0)
	joined, into := mine.Join(theirs), new(Summaries)
	before := fmt.Sprint(joined)
	for _, p := range joined.Pieces {
		must(into.Apply(p, time.Unix(1_900_000_000, 0)))
	}
	(&summaryReplica{Summaries: into}).scribble()
	for _, d := range []SummaryDelta{mine, theirs} {
		for _, p := range d.Pieces {
			for _, rs := range p.Rooms {
				scribbleSummary(rs.Summary)
			}
		}
	}
	if fmt.Sprint(joined) != before {
		panic("a joined delta shares memory with its parts or with a state")
	}
}

func (r *summaryReplica) recode() replica {
	return &summaryReplica{must(DecodeSummaries(must(r.AppendBinary(nil)), MaxState)), r.me, r.site}
}

func (r *summaryReplica) expire(now time.Time) { r.Expire(now, lawRetention) }

func (r *summaryReplica) held() string {
	return r.dump(func(*siteSummary, register) bool { return true }, false)
}

func (r *summaryReplica) promised() string {
	return r.dump(func(w *siteSummary, g register) bool {
		return g.version.compareStream(w.known) == 0 && g.version.Seq <= w.known.Seq
	}, true)
}

func (r *summaryReplica) dump(keep func(*siteSummary, register) bool, knowledge bool) string {
	var lines []string
	for site, w := range r.sites {
		if knowledge {
			// What a former publisher closed is remembered by who heard it,
			// and not passed on once another has taken over.
			lines = append(lines, fmt.Sprint(site, " known ", w.known))
		} else {
			lines = append(lines, fmt.Sprint(site, w.head, w.changed))
		}
		for room, g := range w.rooms {
			if keep(w, g) {
				lines = append(lines, fmt.Sprint(site, room, g))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (r *summaryReplica) visible(now time.Time) string {
	return r.shown(now, func(*siteSummary, register) bool { return true })
}

// current leaves out what a publisher left behind that the next one never heard
// of: it is not passed on, and fades where it is.
func (r *summaryReplica) current(now time.Time) string {
	return r.shown(now, func(w *siteSummary, g register) bool { return g.version.compareStream(w.head) == 0 })
}

func (r *summaryReplica) shown(now time.Time, keep func(*siteSummary, register) bool) string {
	var lines []string
	for i := range 4 {
		for site, w := range r.sites {
			if !keep(w, w.rooms[testRoom(i)]) {
				continue
			}
			if c := r.Count(site, testRoom(i), now, lawRetention); !blankCounts(c) {
				lines = append(lines, fmt.Sprint(site, i, c))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// lwwReplica writes under its own name with its own clock.
type lwwReplica struct {
	*LWW
	clock Clock
	me    NodeID
	line  uint64              // of states that follow from each other: a chain of deltas is of one such line
	parts map[uint64]lwwChain // by line: those that came so far
	wrote *[]lwwWrote         // by any replica of this history
}

type lwwChain struct {
	got    LWWDigest
	pieces []LWWPiece
}

type lwwWrote struct {
	key   string
	entry lwwEntry
}

func newLWWReplicas(n int) []replica {
	var out []replica
	wrote := new([]lwwWrote)
	for i := range max(n, 1) {
		out = append(out, &lwwReplica{LWW: new(LWW), me: testNode(i), line: uint64(n*10 + i), parts: map[uint64]lwwChain{}, wrote: wrote})
	}
	return out
}

func (r *lwwReplica) clone() replica {
	c := &lwwReplica{LWW: r.Clone(), clock: r.clock, me: r.me, line: r.line, parts: map[uint64]lwwChain{}, wrote: r.wrote}
	for line, chain := range r.parts {
		c.parts[line] = lwwChain{maps.Clone(chain.got), slices.Clone(chain.pieces)}
	}
	return c
}

func (r *lwwReplica) merge(o replica) {
	r.Merge(o.(*lwwReplica).LWW)
	r.line = r.line*31 + o.(*lwwReplica).line + 1
}

// lwwHas is what a replica says that it has: what it knows, and what it has got of each line.
type lwwHas struct {
	line  uint64
	known LWWDigest
	got   map[uint64]LWWDigest
}

func (r *lwwReplica) digest() []byte {
	w := newWriter(nil)
	w.uint(r.line)
	w.known(r.Digest())
	w.array(len(r.parts))
	for _, line := range slices.Sorted(maps.Keys(r.parts)) {
		w.uint(line)
		w.known(r.parts[line].got)
	}
	return w.must()
}

func decodeHas(b []byte) lwwHas {
	r := newReader(b)
	has := lwwHas{r.uint(math.MaxUint64), r.known(), map[uint64]LWWDigest{}}
	for range r.array(1) {
		line := r.uint(math.MaxUint64)
		has.got[line] = r.known()
	}
	return has
}

func (r *lwwReplica) expire(time.Time)             {}
func (r *lwwReplica) current(now time.Time) string { return r.visible(now) }

func (r *lwwReplica) visible(time.Time) string {
	var lines []string
	for key := range r.Keys() {
		value, at, _ := r.Get(key)
		lines = append(lines, fmt.Sprint(key, value, at))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (r *lwwReplica) write(w write, now time.Time) {
	var value []byte
	if w.special > 1 {
		value = []byte(strings.Repeat("v", w.amount*20))
	}
	key := fmt.Sprint("key", w.room)
	_, was, _ := r.Get(key)
	at := r.clock.Now(now, r.me)
	if err := r.CompareAndSet(key, value, was, at); err != nil {
		panic(err)
	}
	*r.wrote = append(*r.wrote, lwwWrote{key, entryOf(at, Write{Value: value})})
}

// lwwTold is a delta as it is under way in the laws, where it may come to somebody else than it was made for.
type lwwTold struct {
	from, to   uint64 // lines
	known, got LWWDigest
	delta      LWWDelta
}

func (d lwwTold) encode() []byte {
	w := newWriter(nil)
	w.uint(d.from)
	w.uint(d.to)
	w.known(d.known)
	w.known(d.got)
	w.array(map[bool]int{true: 1}[d.delta.Whole])
	return must(d.delta.AppendBinary(w.must()))
}

func decodeTold(b []byte) lwwTold {
	r := newReader(b)
	d := lwwTold{from: r.uint(math.MaxUint64), to: r.uint(math.MaxUint64), known: r.known(), got: r.known()}
	whole := r.array(1) > 0
	d.delta = must(DecodeLWWDelta(b[len(b)-r.src.Len():]))
	d.delta.Whole = whole
	return d
}

// size is that of the delta in what delta returns.
func (r *lwwReplica) size(d []byte) int { return len(must(decodeTold(d).delta.AppendBinary(nil))) }

func (r *lwwReplica) delta(have []byte, limit int) []byte {
	has := decodeHas(have)
	got := has.got[r.line]
	return lwwTold{r.line, has.line, has.known, got, r.DeltaAfter(has.known, got, limit)}.encode()
}

// join is of deltas that all go to who has had none of them; only with all of them it is whole.
func (r *lwwReplica) join(a, b []byte) []byte {
	x, y := decodeTold(a), decodeTold(b)
	x.known, x.got = SettlingOf([]LWWDigest{x.known, y.known}).All, nil
	whole := x.delta.Whole || y.delta.Whole
	x.delta = x.delta.Join(y.delta)
	x.delta.Whole = whole
	return x.encode()
}

func (r *lwwReplica) apply(delta []byte, now time.Time) error {
	d := decodeTold(delta)
	chain := r.parts[d.from]
	// One chain at a time, and in order; where nothing came before, it may also be for somebody else who knows less.
	goesOn := covers(r.Digest(), d.known) && covers(d.got, chain.got) && covers(chain.got, d.got) && (len(d.got) == 0 || d.to == r.line)
	for _, p := range d.delta.Pieces {
		aside, err := r.Apply(p, &r.clock, now)
		if err != nil {
			return err
		}
		if aside && goesOn {
			if chain.got == nil {
				chain.got = LWWDigest{}
			}
			chain.got[p.Writer], chain.pieces = p.To, append(chain.pieces, p)
			r.parts[d.from] = chain
		}
	}
	if goesOn && d.delta.Whole {
		delete(r.parts, d.from)
		if aside, err := r.ApplyWhole(chain.pieces, &r.clock, now); aside || err != nil {
			return fmt.Errorf("left aside %v: %w", aside, err)
		}
	}
	return r.checkKnown()
}

func covers(d, o LWWDigest) bool {
	for writer, n := range o {
		if d[writer] < n {
			return false
		}
	}
	return true
}

// checkKnown looks at every write that was ever made: of those that are known each is here, or one that has won over it.
func (r *lwwReplica) checkKnown() error {
	for _, w := range *r.wrote {
		if e, ok := r.entries.get(w.key); r.Holds(w.entry.stamp) && (!ok || w.entry.wins(e)) {
			return fmt.Errorf("%v of %s is known, and there is %v", w.entry, w.key, e)
		}
	}
	return nil
}

// scribble has nothing to write to: values are strings.
func (r *lwwReplica) scribble() {}

func (r *lwwReplica) detach(o replica) {
	var clock Clock
	mine, theirs := r.Delta(nil, 0), o.(*lwwReplica).Delta(nil, 0)
	joined, into := mine.Join(theirs), new(LWW)
	before := fmt.Sprint(joined)
	for _, p := range joined.Pieces {
		must(into.Apply(p, &clock, time.Unix(1_900_000_000, 0)))
	}
	(&lwwReplica{LWW: into}).scribble()
	for _, d := range []LWWDelta{mine, theirs} {
		for _, p := range d.Pieces {
			for _, w := range p.Writes {
				for i := range w.Value {
					w.Value[i] = '#'
				}
			}
		}
	}
	if fmt.Sprint(joined) != before {
		panic("a joined delta shares memory with its parts or with a state")
	}
}

func (r *lwwReplica) recode() replica {
	stored := new(LWW)
	for _, p := range r.Parts(0) {
		must(0, stored.SetPart(p))
	}
	return &lwwReplica{LWW: stored.Clone(), clock: r.clock, me: r.me, wrote: r.wrote}
}

func (r *lwwReplica) held() string {
	var lines []string
	for key, e := range r.entries.all() {
		lines = append(lines, fmt.Sprint(key, e.stamp, e.gone, e.value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (r *lwwReplica) promised() string {
	var lines []string
	for _, writer := range slices.SortedFunc(maps.Keys(r.known), NodeID.Compare) {
		lines = append(lines, fmt.Sprint(writer, " known ", r.known[writer]))
		for key, e := range r.entries.all() {
			if e.stamp.Node == writer && e.stamp.packed() <= r.known[writer] {
				lines = append(lines, fmt.Sprint(writer, key, e.stamp, e.gone, e.value))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
