package suite

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// benchmark is one question, and how it is answered.
type benchmark struct {
	name     string // for the command line
	question string
	method   string
	page     string // of docs; empty: that of most
	site     bool   // there is an origin behind the servers
	ratios   []ratio
	entries  []entry
	bounds   []measurement.Bound // of rows by their names
}

// ratio is a unit of rows that says what they are beside others in the same round.
type ratio struct {
	unit measurement.Unit
	by   func(e *entry) string // the other row; one that is none: a row has no such value
	of   func(s, other sample) float64
}

// byBase is the unit of [byRow].
const byBase = "by-base"

// byRow tells processor time by that of one row.
func byRow(name string) []ratio {
	unit := measurement.Unit{Name: byBase, Meaning: "processor time by that of " + name + " in the same round", Better: "lower"}
	return []ratio{{unit, func(*entry) string { return name }, byCPU}}
}

func byCPU(s, other sample) float64 { return s[cpu] / other[cpu] }

// aside is a ratio that is no column: bounds alone are about it. rows has the rows that have one, and the other row of each.
func aside(name string, rows map[string]string, of func(s, other sample) float64) ratio {
	return ratio{measurement.Unit{Name: name, Meaning: "what a bound is for, as its text says", Aside: true}, func(e *entry) string { return rows[e.name()] }, of}
}

// beyondCPU is a difference in µs.
func beyondCPU(s, other sample) float64 { return 1e6 * (s[cpu] - other[cpu]) }

// benchmarks are all, in the order of the page.
func benchmarks() []benchmark {
	return []benchmark{proxying(), waiting(), central(), tail(), limits()}
}

// entry is one server in one situation, as it is measured.
type entry struct {
	server, what string
	needs        []string              // programs, beside taskset
	conns        int                   // 0: usualConns
	line         int                   // how many are to wait first
	halfOf       string                // the row before by whose rate requests are due, half as many; empty: as many as can be
	start        func(*place) *subject // ends by rig.Must where it cannot
}

const usualConns = 64

// name is how ratios and bounds call the row.
func (e *entry) name() string {
	if e.server == "" || e.what == "" {
		return e.server + e.what
	}
	return e.server + ", " + e.what
}

func (e *entry) row() string { return measurement.Row("server", e.server, "case", e.what) }

// sample is one measurement, in the units of rows.
type sample = measurement.Values

// subject is a server that runs and can be measured.
type subject struct {
	parts      []*rig.Process // whose processor time counts
	heads      [][]byte       // requests, in turn
	onePerConn bool           // each connection sends one of heads
	address    string         // where it is asked; empty: where its place listens
	nodes      []*rig.Process // those of parts that tell of collections
	code       int            // that answers have to have; 0: 200
	// probe looks, before and after the measurement, whether answers are what is to be measured; nil: their code is enough.
	probe func(*http.Response) error
	after func(context.Context) error // looks afterwards whether all is as it was to be; nil: nothing
	path  string                      // what to ask for; empty: what heads ask for
}

// wants is the code that answers have to have.
func (s *subject) wants() int { return cmp.Or(s.code, http.StatusOK) }

// place is where a subject runs, for one measurement.
type place struct {
	*harness
	ctx     context.Context // of the measurement
	dir     string          // its own, and empty
	listen  string          // host:port of the server
	admin   string          // of the node
	started []*rig.Process  // that are to be ended
}

// runs has a process ended after the measurement.
func (p *place) runs(proc *rig.Process, err error) *rig.Process {
	rig.Must(err)
	p.started = append(p.started, proc)
	return proc
}

// ready is a subject of one process, from when it answers.
func (p *place) ready(proc *rig.Process, err error) *subject {
	rig.Must(p.runs(proc, err).Await(p.ctx, p.url()))
	return &subject{parts: []*rig.Process{proc}, heads: [][]byte{head(strangerCookie)}}
}

// proxied is a subject that answers what the site does.
func (p *place) proxied(proc *rig.Process, err error) *subject {
	sub := p.ready(proc, err)
	sub.probe = isSite
	return sub
}

// end ends all that was started.
func (p *place) end() (err error) {
	for _, proc := range p.started {
		err = errors.Join(err, proc.Stop())
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

func (p *place) url() string { return "http://" + p.listen + "/" }

// host is the one that all requests are for.
const host = "shop.example"

// head returns a request for / with a cookie. All servers of a benchmark get heads of about the same length.
func head(cookie string) []byte { return headFor("/", "*/*", cookie) }

// headFor returns a request for a path, of somebody who accepts that kind of content. An empty cookie is none.
func headFor(path, accept, cookie string) []byte {
	h := "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: bench\r\nAccept: " + accept + "\r\n"
	if cookie != "" {
		h += "Cookie: " + cookie + "\r\n"
	}
	return []byte(h + "\r\n")
}
