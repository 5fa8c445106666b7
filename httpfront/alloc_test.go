//go:build !race

package httpfront

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/observe/tracing"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// The race detector allocates on its own account, hence the build tag.

// allocatesNothing holds that f allocates nothing, once it has run.
func allocatesNothing(t *testing.T, what string, f func()) {
	t.Helper()
	equal(t, what+": allocations", testing.AllocsPerRun(1000, f), 0)
}

// What a node does most of all, from the client's bytes to the answer's, the origin included,
// allocates nothing. Whoever sees this fail has made every request slower.
func TestWholeRequestsDoNotAllocate(t *testing.T) {
	const host = "tickets.example.org"
	origin := answering(t)
	now := time.Now()
	waits := node.Pass{Room: [16]byte{1}, Visitor: node.VisitorID{7}, Arrival: now, LastPoll: now}
	isIn := waits
	isIn.AcceptedAt, isIn.LeaseEnd = now, now.Add(time.Minute)
	for _, c := range []struct {
		name, accept string
		decide       func(node.Pass, bool, time.Time) node.Verdict
		pass         node.Pass
	}{
		{"on the site", "text/html", always, isIn},
		{"on the site, with a new pass", "text/html", letIn, isIn},
		{"waits, and gets a page", "text/html", never, waits},
		{"waits, and gets JSON", "application/json", never, waits},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := serveTo(t, fakeRooms{room: newRoom(c.decide)}, origin, func(c *Config) { c.Limits.Requests = 1 << 30 })
			ask := asker(t, f.dial(), "GET /queue/"+strings.Repeat("a", 20)+"?row=7 HTTP/1.1\r\nHost: "+host+":8080\r\n"+
				"Accept: "+c.accept+"\r\nCookie: "+f.seal(c.pass, host)+"\r\n\r\n")
			for range 100 {
				ask()
			}
			allocatesNothing(t, "after a hundred requests", ask)
		})
	}
}

func TestAdmittedRequestsDoNotAllocate(t *testing.T) {
	allocatesNothing(t, "escrow", newOnSite(t, room.Escrow).comeAgain)
	allocatesNothing(t, "even", newOnSite(t, room.Even).comeAgain)
	allocatesNothing(t, "with rate limits", newOnSite(t, room.Escrow, manyRequests()...).comeAgain)
}

func TestBytesThatFlowCostNoAllocation(t *testing.T) {
	o := newOnTheSite(t)
	f := judges(t, fakeRooms{room: o}, o.use)
	a := f.watch(&admitted{req: newRequest(), room: o, pass: enter(node.Pass{}, false, o.clock()).Pass, judged: o.clock()})
	quiet := time.Now().Add(time.Hour)
	allocatesNothing(t, "a byte", func() {
		a.Moved()
		quiet = a.Wake(quiet)
	})
}

func TestOpeningAPassCostsNoAllocation(t *testing.T) {
	for name, c := range map[string]struct {
		by     room.Binding
		before *memory // of its connection
	}{
		"loose":                     {room.Binding{}, nil},
		"bound":                     {room.Binding{Address: true, UserAgent: true}, nil},
		"brought by its connection": {room.Binding{}, new(memory)},
	} {
		r, keys, s := admittedRequest(t, c.by)
		r.before = c.before
		allocatesNothing(t, name, func() {
			var to pass.Binding
			var p carried
			if r.openPass(&p, keys, s, r.bind(&to, s)); !p.known || p.stale {
				t.Fatal("the pass does not open")
			}
		})
	}
}

func TestLimitsOnNewVisitorsDoNotAllocate(t *testing.T) {
	f, s, now := judges(t, fakeRooms{}), newRoom(queues), time.Now()
	for name, limits := range map[string]room.NewVisitors{
		"within": {PerAddress: room.MaxNewVisitors, All: room.MaxNewVisitors}, "beyond": {PerAddress: 1, All: 1},
	} {
		made, r := newNewVisitors(limits, nil), newRequest()
		r.via.Client = netip.MustParseAddr("2001:db8::7")
		f.mayQueue(r, s, &s.settings, &made, now) // the first one beyond is told in the log
		allocatesNothing(t, name, func() { f.mayQueue(r, s, &s.settings, &made, now) })
	}
}

func TestAProofThatIsKeptCostsNoAllocation(t *testing.T) {
	f := judges(t, fakeRooms{}, func(c *Config) { c.Proof = newSigner(t) })
	r, s, p, now := newRequest(), newRoom(nil).Settings(), inside(node.Pass{}, true, time.Time{}).Pass, time.Now()
	r.proofName = f.cfg.ProofHeader
	head := make([]byte, 0, 4096)
	allocatesNothing(t, "a proof", func() {
		f.prove(r, s, &p, now)
		head = r.appendProof(head[:0])
	})
	if len(head) == 0 {
		t.Error("nothing is proven")
	}
}

// TestRecordsAllocateNothing: neither where nobody wants to know of a request, nor where
// somebody counts and logs it.
func TestRecordsAllocateNothing(t *testing.T) {
	h := http1.RawHead{Method: []byte("GET"), Target: []byte("/a?b"), Protocol: []byte("HTTP/1.1")}
	s := newRoom(nil).Settings()
	tracer := must(tracing.New(t.Context(), tracing.Config{Endpoint: nowhere, Sample: 0}))
	defer run(t, tracer.Run)()
	for name, change := range map[string]func(*Config){
		"nobody":   func(*Config) {},
		"counts":   func(c *Config) { c.Requests = deaf{} },
		"tracing":  func(c *Config) { c.Tracer = tracer },
		"and logs": func(c *Config) { c.Requests, c.AccessLog = deaf{}, deaf{} },
	} {
		f := judges(t, fakeRooms{}, change)
		p, now := node.Pass{Arrival: time.Now()}, time.Now()
		allocatesNothing(t, name, func() {
			r := newRequest()
			r.record = f.newRecord(true)
			r.record.begin()
			r.record.asked(h, r)
			r.record.traced(r, false)
			r.record.decided(r.record.now())
			r.record.judged(Queued, s, &p, now)
			r.handOver(200).end(5)
			r.release()
		})
	}
}
