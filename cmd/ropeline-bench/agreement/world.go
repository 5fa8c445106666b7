package agreement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

const (
	tick      = 100 * time.Millisecond
	nearDelay = 3 * time.Millisecond
	farDelay  = 40 * time.Millisecond
	slowTick  = 2 * time.Second // while nothing is done
	wellAhead = 100             // ms by which the clocks of well nodes differ at most

	agrees = 20 * time.Second // within which all nodes have to agree once all is healed
	calm   = 2 * time.Second  // for which they have to
)

var epoch = time.Unix(1_700_000_000, 0)

// Result is what became of a sequence.
type Result struct {
	Violations []string
	Trace      []string

	Answered, Named, Troubles int
}

// world is one run.
type world struct {
	now    time.Duration
	rng    *rand.Rand
	queue  []event // in the order in which they happen
	nodes  []*machine
	away   map[string]bool // sites that are cut off
	pauses bool            // nothing is done
	healed bool            // and stays so
	truth  truth
	result Result
	fault  Fault
	trace  bool
	deeds  int
	ids    int
	born   int
}

type event struct {
	at time.Duration
	do func()
}

// machine is one node and its computer.
type machine struct {
	replica.Peer
	no      int
	started time.Duration
	core    *node.Core // nil: it is down
	disk    *durable.Memory
	writing bool
	opened  bool // it has been ready
	cut     bool
	mute    bool
	deaf    bool
	leaves  bool          // it was told to leave
	ticked  time.Duration // the last time
	ahead   time.Duration // its clock is
	links   map[crdt.NodeID]*link
	told    []replica.Peer // of those that are up
	toldAt  time.Duration
	knows   map[crdt.NodeID]bool // who must be known by what is on its disk
}

// wrong reports whether its clock is.
func (m *machine) wrong() bool { return m.ahead.Abs() > wellAhead*time.Millisecond }

// joins reports whether a node has not become of the mesh yet.
func (m *machine) joins() bool { return !m.opened }

func (m *machine) ready() bool { return m.core != nil && m.core.Ready() }

func (w *world) after(d time.Duration, do func()) {
	at := w.now + d
	i, _ := slices.BinarySearchFunc(w.queue, at, func(e event, at time.Duration) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	w.queue = slices.Insert(w.queue, i, event{at, do})
}

func (w *world) every(d, first time.Duration, do func() bool) {
	w.after(first, func() {
		if do() {
			w.every(d, d, do)
		}
	})
}

func (w *world) run(d time.Duration) {
	for end := w.now + d; ; {
		if len(w.queue) == 0 || w.queue[0].at > end {
			w.now = end
			return
		}
		e := w.queue[0]
		w.queue = w.queue[1:]
		w.now = e.at
		e.do()
	}
}

// time returns what a node's clock shows.
func (w *world) time(m *machine) time.Time { return epoch.Add(w.now + m.ahead) }

func (w *world) note(format string, args ...any) {
	if w.trace {
		w.result.Trace = append(w.result.Trace, fmt.Sprintf("%8.3f "+format, append([]any{w.now.Seconds()}, args...)...))
	}
}

func (w *world) broken(format string, args ...any) {
	w.result.Violations = append(w.result.Violations, fmt.Sprintf(format, args...))
}

// Run runs a sequence.
func (q Sequence) Run(trace bool, fault Fault) *Result {
	w := &world{rng: rand.New(rand.NewPCG(q.Seed, 7)), away: map[string]bool{}, trace: trace, fault: fault}
	w.truth = truth{things: map[string]*thing{}, lost: map[crdt.NodeID]bool{}, left: map[crdt.NodeID]int{}}
	w.ofFile()
	for i := range q.Layout {
		w.add(q.Layout[i : i+1]).Boot = 1
	}
	for _, m := range w.nodes {
		m.Boot = 0
		w.start(m)
	}
	w.run(3 * time.Second)
	for _, s := range q.Steps {
		w.run(s.After)
		w.step(s)
	}
	w.run(patience)
	w.heal()
	w.settle()
	return &w.result
}

// add adds a machine that is off.
func (w *world) add(site string) *machine {
	m := &machine{no: len(w.nodes) + 1}
	m.Site = site
	w.nodes = append(w.nodes, m)
	w.renew(m)
	return m
}

// renew gives a machine an empty disk, and so another name.
func (w *world) renew(m *machine) {
	w.born++
	m.ID, m.Boot = crdt.NodeID{byte(w.rng.IntN(256)), byte(w.born)}, 0
	m.disk, _ = durable.NewMemory(nil)
	m.leaves, m.opened, m.knows = false, false, map[crdt.NodeID]bool{}
	m.ahead = time.Duration(w.rng.IntN(2*wellAhead)-wellAhead) * time.Millisecond
}

func settingsOf(id crdt.RoomID) room.Settings {
	return room.Settings{
		ID: id, Name: "room-" + id.String(), Host: id.String()[:8] + ".example", Path: "/", TotalActiveUsers: 500, NewUsersPerMinute: 500,
		SessionDuration: time.Minute, QueueingMethod: room.FIFO, Policy: room.Escrow, RefreshInterval: 5 * time.Second, BucketSpan: 12 * time.Second,
	}.WithDefaults()
}

func ruleOf(id limit.ID) limit.Rule {
	return limit.Rule{ID: id, Name: "limit-" + id.String(), Expression: "true", Period: time.Minute, RequestsPerPeriod: 100, Action: limit.Block}.WithDefaults()
}

// fileRoom and fileLimits are what the configuration file of each node has.
var fileRoom = settingsOf(crdt.RoomID{0xf1})

func fileLimits() []limit.Rule {
	r := ruleOf(limit.ID{})
	r.Name = "of-the-file"
	return []limit.Rule{r}
}

func (w *world) ofFile() {
	d := &deed{name: "the file", everyone: true}
	r := catalog.FileRoom(catalog.DefaultZone, "", fileRoom, epoch)
	w.truth.make(fileRoom.ID.String(), "", d, fieldsOfRoom(r))
	limits := catalog.FileLimits(fileLimits(), epoch)
	for i := range limits {
		w.truth.make(limits[i].ID.String(), "", d, fieldsOfLimit(&limits[i]))
	}
	w.truth.make(allLimits, "", d, orderOf(limits, idOfLimit))
	for _, name := range zones {
		w.truth.make(name, "", d, fieldsOfZone(catalog.Zone{}))
	}
}

func (w *world) start(m *machine) {
	m.Boot++
	var stored []durable.Write
	err := m.disk.Load(func(x durable.Write) bool {
		stored = append(stored, x)
		return true
	})
	if err == nil {
		m.core, err = node.NewCore(node.CoreConfig{
			Self: crdt.Incarnation{Node: m.ID, Boot: m.Boot}, Site: m.Site, Key: slices.Clone(m.ID[:]), Rooms: []room.Settings{fileRoom}, Limits: fileLimits(),
			OwnerKey: []byte("key of the mesh"), Rand: rand.New(rand.NewPCG(uint64(m.ID[1]), m.Boot)),
			Entropy: rand.NewChaCha8([32]byte{m.ID[1], byte(m.Boot)}), Stored: stored, Catalog: w.cataloging(m), Found: m.ID[1] == 1,
		})
	}
	if err != nil {
		w.broken("node %d does not start: %v", m.no, err)
		return
	}
	w.note("node %d of site %s starts, for the %d. time, as %.8s, with its clock %v ahead", m.no, m.Site, m.Boot, m.ID, m.ahead)
	m.writing, m.started, m.links, m.told, m.toldAt = false, w.now, map[crdt.NodeID]*link{}, nil, -time.Second
	core := m.core
	w.every(tick, time.Duration(m.no)*tick/mostNodes, func() bool {
		if m.core == core && !(w.pauses && w.now < m.ticked+slowTick) {
			w.tick(m)
		}
		return m.core == core
	})
}

func (w *world) tick(m *machine) {
	m.ticked = w.now
	w.tellMembers(m)
	w.post(m, m.core.Tick(w.time(m)))
	if !m.opened && m.core.Ready() {
		m.opened = true
		w.note("node %d is ready", m.no)
	}
	switch {
	case m.core.Left():
		w.note("node %d has left", m.no)
		w.begins(m, 0)
	case m.core.Forgotten():
		w.note("node %d is forgotten, and its disk emptied", m.no)
		w.truth.lost[m.ID] = true
		w.begins(m, 0)
	}
}

// begins has another node begin on a machine, some time after the one before has ended for good.
func (w *world) begins(m *machine, d time.Duration) {
	w.stop(m)
	w.renew(m)
	w.startIn(d, m)
}

// cataloging has a node say which rooms it does not run.
func (w *world) cataloging(m *machine) *node.Cataloging {
	return &node.Cataloging{Follow: func(_ []room.Settings, refused []catalog.Refusal) {
		for _, r := range refused {
			w.note("node %d does not run what %q says: %v", m.no, r.Room, r.Why)
		}
	}}
}

// startIn starts a node after some time; one that is new once it is in reach of others.
func (w *world) startIn(d time.Duration, m *machine) {
	id := m.ID
	w.every(200*time.Millisecond, d, func() bool {
		if m.core != nil || m.ID != id {
			return false
		}
		if m.joins() && !slices.ContainsFunc(w.nodes, func(o *machine) bool { return o != m && o.ready() && !o.wrong() && w.hears(m, o) && w.hears(o, m) }) {
			return true
		}
		w.start(m)
		return false
	})
}

// stop ends a node as a crash does.
func (w *world) stop(m *machine) { m.core = nil }

// post sends what a node says, and has its disk write what it wants kept.
func (w *world) post(m *machine, out []node.Message) {
	for _, o := range out {
		i := slices.IndexFunc(w.nodes, func(to *machine) bool { return to.ID == o.To })
		if i < 0 || w.rng.IntN(100) == 0 {
			continue
		}
		from, to, d := m.Peer, w.nodes[i], nearDelay
		if to.Site != m.Site {
			d = farDelay
		}
		d += time.Duration(w.rng.Int64N(int64(d)))
		from.Ready = m.core.Ready()
		core := to.core
		w.after(d, func() {
			if core == nil || to.core != core || !w.hears(to, m) {
				return
			}
			out, err := core.Receive(from, o.Kind, o.Payload, w.time(to))
			if err != nil {
				w.note("node %d refuses what node %d says: %v", to.no, m.no, err)
			}
			w.post(to, out)
		})
	}
	w.store(m)
}

// store has a disk write what a node wants kept.
func (w *world) store(m *machine) {
	if m.core == nil || m.writing {
		return
	}
	batch := m.core.Writes()
	if batch == nil {
		return
	}
	core, disk := m.core, m.disk
	m.writing = true
	w.after(time.Duration(1+w.rng.IntN(20))*time.Millisecond, func() {
		if m.core != core {
			return
		}
		if err := disk.Commit(batch); err != nil {
			w.broken("node %d: %v", m.no, err)
		}
		m.writing = false
		w.post(m, m.core.Written(nil, w.time(m)))
	})
}

// step does what a step says.
func (w *world) step(s Step) {
	m := w.nodes[s.Node%len(w.nodes)]
	switch s.Do {
	case CutNode:
		m.cut = true
	case CutSite:
		w.away[m.Site] = true
	case Mute:
		m.mute = true
	case Deafen:
		m.deaf = true
	case Heal:
		w.together()
	case Restart:
		w.restart(m, m.ahead, s)
	case Join:
		if len(w.nodes) < mostNodes {
			m = w.add(string(rune('a' + s.Value%3)))
			w.startIn(0, m)
			w.cutSoon(m, s)
		}
	case Wipe:
		w.wipe(m, s)
	case BuryLost:
		w.bury(m)
	case Leave:
		w.leave(m)
	case Pause:
		w.pauses = true
		w.run(12*time.Minute + time.Duration(s.Value)*time.Second/4) // in which deletions are forgotten, or nearly
		w.pauses = false
	case WrongTime:
		w.restart(m, []time.Duration{10 * time.Second, 10 * time.Minute, 12 * time.Hour, -time.Minute}[s.Value%4], s)
		w.after(time.Duration(2000+s.Value*5)*time.Millisecond, func() { w.restart(m, 0, s) })
	default:
		w.act(m, s)
		return
	}
	w.result.Troubles++
	w.note("%s: node %d", s.Do, m.no)
}

func (w *world) restart(m *machine, ahead time.Duration, s Step) {
	if m.Boot == 0 {
		return
	}
	w.stop(m)
	m.ahead = ahead
	w.startIn(time.Duration(s.Value*3)*time.Millisecond, m)
}

// wipe loses a disk, where another node has one.
func (w *world) wipe(m *machine, s Step) {
	if m.joins() || !slices.ContainsFunc(w.nodes, func(o *machine) bool { return o != m && !o.joins() && !o.leaves }) {
		return
	}
	w.truth.lost[m.ID] = true
	w.begins(m, time.Duration(s.Value*3)*time.Millisecond)
	w.cutSoon(m, s)
}

// leave has a node leave. It does so once another one takes over.
func (w *world) leave(m *machine) {
	if m.core == nil || !m.core.Ready() || m.leaves {
		return
	}
	err := m.core.Leave(w.time(m))
	w.note("node %d is told to leave: %v", m.no, err)
	if m.leaves = err == nil; m.leaves {
		w.truth.left[m.ID] = len(w.truth.lost)
	}
	w.post(m, nil)
}

// bury has an operator declare dead who has lost its disk.
func (w *world) bury(m *machine) {
	if m.core == nil || !m.core.Ready() {
		return
	}
	for id := range w.truth.lost {
		err := m.core.DeclareDead(id, w.time(m))
		w.note("%s is declared dead at node %d: %v", id, m.no, err)
	}
	w.post(m, nil)
}

// heal has all be well.
func (w *world) heal() {
	w.note("all is healed")
	w.healed = true
	w.together()
	for _, m := range w.nodes {
		switch {
		case m.wrong():
			w.restart(m, 0, Step{})
		case m.core == nil:
			w.startIn(0, m)
		}
	}
}

// settle waits until all nodes agree, and judges on what.
func (w *world) settle() {
	for end, since := w.now+agrees, w.now; w.now < end; w.run(500 * time.Millisecond) {
		if len(w.differences()) > 0 {
			since = w.now
		} else if w.now >= since+calm && w.now > end-agrees+2*calm {
			break
		}
	}
	w.result.Violations = append(w.result.Violations, w.differences()...)
}

// differences returns what is not as it must be by now.
func (w *world) differences() (all []string) {
	for _, m := range w.nodes {
		switch {
		case m.core == nil || !m.core.Ready():
			return []string{fmt.Sprintf("node %d is not ready", m.no)}
		case m.core.Conflict() != nil:
			return []string{fmt.Sprintf("node %d stops: %v", m.no, m.core.Conflict())}
		}
	}
	first := w.nodes[0]
	agreed := shownBy(first.core.Catalog())
	for _, m := range w.nodes {
		for _, at := range differ(shownBy(m.core.Catalog()), agreed) {
			all = append(all, fmt.Sprintf("nodes %d and %d do not agree on %s", m.no, first.no, at))
		}
		for r := range m.core.Catalog().Rooms() {
			if is := m.core.Route(r.Settings.Host, "/"); !m.leaves && (is == nil) != r.Settings.Suspended ||
				!m.leaves && is != nil && is.Settings().TotalActiveUsers != r.Settings.TotalActiveUsers {
				all = append(all, fmt.Sprintf("node %d does not run the room %s as the catalog has it", m.no, r.Settings.ID))
			}
		}
	}
	return append(all, w.truth.judge(agreed)...)
}
