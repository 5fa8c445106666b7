package overview

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

// Local is the node that all this is seen from.
type Local interface {
	Status() node.Status
	Catalog() *catalog.Catalog // nil: there is none
	View(crdt.RoomID) *room.View
	Down() []node.Down
}

// Peers are the other nodes.
type Peers interface {
	Members() []transport.Peer
	Call(ctx context.Context, to transport.PeerID, method uint8, req []byte) ([]byte, error)
}

// Config says what an Overview looks at. Local is required.
type Config struct {
	Local   Local
	Address string // of this node in the mesh; "": it is alone
	Peers   Peers  // nil: it is alone
	Method  uint8  // of the call that Answer answers
	// Origins returns those of this node; nil: it has none.
	Origins func() []dashboard.Origin
	Logger  *slog.Logger // default slog.Default()
}

const (
	askEvery  = time.Second      // from one round of questions to the next
	askWait   = 2 * time.Second  // for an answer
	lookWait  = time.Second      // that who looks first waits for answers
	lookKept  = 5 * time.Second  // after somebody has looked, others are asked
	askedMost = 50               // nodes asked in a second, on the average
	recentGap = 10 * time.Second // from one figure of the last minutes to the next
	recentMax = 30
)

// Overview is a dashboard.Source. Its methods may be called by several goroutines.
type Overview struct {
	cfg    Config
	looked atomic.Int64  // Unix nanoseconds; when somebody did last
	wake   chan struct{} // somebody looks after a pause

	mu      sync.Mutex    // guards the following
	round   chan struct{} // closed when the round of questions that is next is over
	reports map[string]*Report
	silent  map[string]time.Time // replaced, and never changed, since snapshots have it
	recent  map[string]recently  // the same
	// replaced is how many keys of rate limits this node had forgotten too early, oldest first.
	replaced []uint64
}

// recently is the last minutes of a room, oldest first.
type recently struct{ active, waiting []int64 }

var _ dashboard.Source = (*Overview)(nil)

// New returns an Overview. Run has to run for it to know of others.
func New(cfg Config) *Overview {
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	return &Overview{cfg: cfg, wake: make(chan struct{}, 1), round: make(chan struct{}), reports: map[string]*Report{}}
}

// Answer returns what this node says of itself, for the call of Config.Method.
func (o *Overview) Answer() ([]byte, error) {
	s := o.cfg.Local.Status()
	o.mu.Lock()
	r := o.reportLocked(&s)
	o.mu.Unlock()
	return r.Encode()
}

// Run keeps what is known up to date until ctx ends.
func (o *Overview) Run(ctx context.Context) error {
	ask, note := time.NewTicker(downAsk), time.Tick(recentGap)
	var asked time.Time
	var watch downWatch
	o.note()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-note:
			o.note()
			continue
		case <-o.wake:
		case <-ask.C:
		}
		now := time.Now()
		pause, next := askEvery/2, askEvery
		if now.Sub(time.Unix(0, o.looked.Load())) > lookKept {
			if pause = watch.pause(o.cfg.Local.Down(), now); pause == 0 {
				next = downAsk
			}
		}
		ask.Reset(next)
		if o.cfg.Peers == nil || pause == 0 {
			continue
		}
		members := o.cfg.Peers.Members()
		if pause = max(pause, time.Duration(len(members))*time.Second/askedMost); now.Sub(asked) >= pause {
			asked = now
			o.ask(ctx, members, now)
		}
	}
}

// ask has all nodes that are alive tell of themselves.
func (o *Overview) ask(ctx context.Context, members []transport.Peer, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	transport.AskAll(ctx, o.cfg.Peers, transport.AliveOf(members), o.cfg.Method, nil, func(from transport.Peer, b []byte, err error) {
		var r *Report
		if err == nil {
			r, err = DecodeReport(b)
		}
		if err != nil {
			o.cfg.Logger.Debug("a node does not tell of itself", "peer", from.ID.String(), "error", err)
			return
		}
		r.Node.Node = from.ID.String()
		o.mu.Lock()
		defer o.mu.Unlock()
		o.reports[r.Node.Node] = r
	})
	o.prune(members, now)
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.round)
	o.round = make(chan struct{})
}

// prune forgets nodes that are no members any more, and notes which sites are silent.
func (o *Overview) prune(members []transport.Peer, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	there, silent := map[string]bool{}, map[string]bool{}
	for _, p := range members {
		there[p.ID.String()] = true
		if p.State == transport.Failed {
			if _, heard := silent[p.Site]; !heard {
				silent[p.Site] = true
			}
		} else if p.State == transport.Alive {
			silent[p.Site] = false
		}
	}
	maps.DeleteFunc(o.reports, func(id string, _ *Report) bool { return !there[id] })
	since := map[string]time.Time{}
	for site, is := range silent {
		if is {
			since[site] = cmp.Or(o.silent[site], now.UTC())
		}
	}
	o.silent = since
}

// note remembers what rooms and rate limits are like now.
func (o *Overview) note() {
	s := o.cfg.Local.Status()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.replaced = last(o.replaced, s.Limits.Replaced)
	recent := make(map[string]recently, len(s.Rooms))
	for i := range s.Rooms {
		r := &s.Rooms[i]
		before := o.recent[r.ID]
		recent[r.ID] = recently{last(before.active, r.Active), last(before.waiting, r.Waiting)}
	}
	o.recent = recent
}

// last appends to a copy, since what was returned before is read by others.
func last[T any](all []T, n T) []T {
	next := make([]T, 0, recentMax)
	return append(append(next, all[max(0, len(all)+1-recentMax):]...), n)
}

// refresh has others be asked while somebody looks. Who looks after a pause waits for the
// answers, if they come soon.
func (o *Overview) refresh() {
	now := time.Now()
	before := o.looked.Swap(now.UnixNano())
	if o.cfg.Peers == nil || now.Sub(time.Unix(0, before)) <= lookKept {
		return
	}
	o.mu.Lock()
	round := o.round
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
	select {
	case <-round:
	case <-time.After(lookWait):
	}
}

// see returns what is known now.
func (o *Overview) see() *seen {
	o.refresh()
	status := o.cfg.Local.Status()
	o.mu.Lock()
	defer o.mu.Unlock()
	return &seen{status: &status, self: o.reportLocked(&status), set: o.cfg.Local.Catalog(), view: o.cfg.Local.View, reports: maps.Clone(o.reports), silent: o.silent, recent: o.recent}
}

// Snapshot implements dashboard.Source.
func (o *Overview) Snapshot(now time.Time) dashboard.Snapshot {
	seen := o.see()
	all := seen.snapshot(now)
	all.Down, all.Bootstrap = o.Down(seen.status, now), seen.status.Bootstrap
	return all
}

// Room implements dashboard.Source.
func (o *Overview) Room(id string, now time.Time) (dashboard.Detail, bool) {
	room, err := crdt.ParseRoomID(id)
	if err != nil {
		return dashboard.Detail{}, false
	}
	v := o.cfg.Local.View(room)
	if v == nil {
		return dashboard.Detail{}, false
	}
	var set *catalog.Room
	if c := o.cfg.Local.Catalog(); c != nil {
		set = c.Room(room)
	}
	return o.see().detail(room, set, v, now), true
}
