package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// What a waiting visitor asks for.
const (
	asPage = "text/html"
	asJSON = "application/json"
)

// waiting is what a request costs of somebody who has to wait.
func waiting() benchmark {
	b := benchmark{
		name:     "waiting",
		question: "What does a poll cost of a visitor who waits, and does it matter how many wait?",
		method: "A room with one place, which is taken. Visitors come by HTTP, with no limit on how many, and are asked for again with the passes that they got, " +
			"a tenth of them in turn, and 10,000 at most. Those told to come after a second, so that each poll counts: the pass is opened, the visitor looked up, " +
			"counted, and a new pass sealed, which a look at an answer before and after holds. The rest of the line was told ten minutes, and keeps its place. The others answer the bytes that ropeline has answered: nginx " +
			"as a file with Debian's settings (`sendfile`, `tcp_nopush`), and the server of fasthttp with a write buffer of 16 KiB, as with its own of 4 KiB a page takes two writes.",
	}
	for _, as := range []string{asPage, asJSON} {
		name := map[string]string{asPage: "page", asJSON: "JSON"}[as]
		for _, in := range []struct {
			line  string
			count int
		}{{"1,000", 1000}, {"100,000", 100_000}, {"1,000,000", 1_000_000}} {
			b.entries = append(b.entries, entry{
				server: "ropeline", what: name + ", " + in.line + " waiting", line: in.count,
				start: func(p *place) *subject { return startWaiting(p, as, in.count) },
			})
			if as == asJSON {
				break // what differs is the bytes
			}
		}
		b.entries = append(b.entries,
			entry{server: "fasthttp", what: name, start: answering(as, startFasthttp)},
			entry{server: "nginx, a file", what: name, needs: []string{"nginx"}, start: answering(as, startFile)})
	}
	few, many, fewJSON := "ropeline, page, 1,000 waiting", "ropeline, page, 1,000,000 waiting", "ropeline, JSON, 1,000 waiting"
	b.ratios = append(byRow("fasthttp, page"),
		aside("beyond-fasthttp", map[string]string{few: "fasthttp, page", fewJSON: "fasthttp, JSON"}, beyondCPU),
		aside("by-file", map[string]string{few: "nginx, a file, page"}, byCPU),
		aside("by-few", map[string]string{many: few}, byCPU))
	b.bounds = []measurement.Bound{
		{Row: few, Unit: "beyond-fasthttp", Most: 1.2, Text: "a waiting page costs, beyond fasthttp with the same bytes [µs]"},
		{Row: fewJSON, Unit: "beyond-fasthttp", Most: 1.2, Text: "the same as JSON [µs]"},
		{Row: few, Unit: "by-file", Most: 1, Text: "processor time of a waiting page by that of nginx with a file"},
		{Row: few, Unit: p99, Most: 1.3e-3, Text: "p99 of a waiting page"},
		{Row: many, Unit: "by-few", Most: 1.1, Text: "processor time with 1,000,000 waiting by that with 1,000"},
	}
	return b
}

// A poll counts a second after the one before; in line are those who came less than two and a half intervals ago. So those who ask are told
// a second, and the rest of the line longer than any measurement takes.
const waitingRoom = `total-active-users: 1
new-users-per-minute: 1
session-duration: 24h
refresh-interval: 1s
place-kept: 24h
max-new-visitors: 0
`

// mostPollers is how many passes are used in turn, of a long line.
const mostPollers = 10_000

// startWaiting starts a node with so many visitors in line, and returns it with the polls of some of them.
func startWaiting(p *place, as string, count int) *subject {
	sub := asNode(p.ready(startNode(p, waitingRoom)))
	sub.heads, sub.probe = nil, polled
	rig.Must(sub.parts[0].AwaitFunc(p.ctx, "lets nobody in", func(ctx context.Context) bool {
		_, err := newcomers(ctx, p.listen, asPage, "waiting", 1, 0)
		return err == nil
	}))
	pollers := min(count/10, mostPollers) // few, so that the line stays long even where a busy machine is late with the polls
	for _, c := range rig.Got(newcomers(p.ctx, p.listen, asJSON, "waiting", pollers, pollers)) {
		sub.heads = append(sub.heads, headFor("/", as, c))
	}
	came := time.Now()
	setRefresh(p, "10m")
	rig.Got(newcomers(p.ctx, p.listen, asJSON, "waiting", count-pollers, 0))
	sub.after = func(ctx context.Context) error { return inLine(ctx, p.admin, count-pollers) }
	rig.Must(rig.Sleep(p.ctx, time.Until(came.Add(1100*time.Millisecond)))) // from then on each of their polls counts
	return sub
}

// setRefresh changes how often the room asks visitors to come, and returns when new ones are told so.
func setRefresh(p *place, to string) {
	out, err := exec.CommandContext(p.ctx, p.run.Binary, "room", "set", "default", "refresh_interval="+to, "--server", "http://"+p.admin).CombinedOutput()
	if err != nil {
		rig.Must(fmt.Errorf("set refresh_interval: %w: %s", err, out))
	}
	if !rig.Until(p.ctx, askTime, 20*time.Millisecond, func() bool {
		return rig.Got(ask(p.ctx, p.listen, headFor("/", asJSON, ""))).Header.Get("Refresh") != "1"
	}) {
		rig.Must(errors.New("visitors are told the old refresh_interval"))
	}
}

// polled reports what keeps an answer from being that to a poll that counts: one of somebody who waits, with a new pass.
func polled(resp *http.Response) error {
	if state := resp.Header.Get("Ropeline-State"); state != "waiting" {
		return fmt.Errorf("the visitor is %q, and not waiting", state)
	}
	if resp.Header.Get("Set-Cookie") == "" {
		return errors.New("the poll did not count: there is no new pass")
	}
	return nil
}

// inLine reports what keeps a node from having at least so many in line.
func inLine(ctx context.Context, admin string, least int) error {
	s, err := rig.StatusAt(ctx, http.DefaultClient, admin)
	if err == nil && (len(s.Rooms) != 1 || s.Rooms[0].Waiting < int64(least)) {
		err = fmt.Errorf("at least %d were to wait, and the node tells of %+v", least, s.Rooms)
	}
	return err
}

// answering returns what starts a server that answers what ropeline has answered to somebody who waits.
func answering(as string, start func(*place, recording) *subject) func(*place) *subject {
	return func(p *place) *subject {
		a, ok := p.recorded[as]
		if !ok {
			a = recordPoll(p, as)
			p.recorded[as] = a
		}
		sub := start(p, a)
		sub.heads = [][]byte{headFor(cmp.Or(sub.path, "/"), as, strangerCookie)}
		sub.probe = func(resp *http.Response) error { return sameAs(resp, a) }
		return sub
	}
}

// recordPoll starts a node, takes down its answer to one poll, and ends it.
func recordPoll(p *place, as string) recording {
	sub := startWaiting(p, as, 1000)
	resp := rig.Got(ask(p.ctx, p.listen, sub.heads[0]))
	rig.Must(errors.Join(polled(resp), sub.parts[0].Stop()))
	return rig.Got(record(resp))
}

// sameAs reports what is different in an answer from the one that was recorded.
func sameAs(resp *http.Response, want recording) error {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if string(body) != string(want.Body) {
		return fmt.Errorf("the answer has %d bytes that are not the %d recorded ones", len(body), len(want.Body))
	}
	for _, f := range want.Fields {
		if got := resp.Header.Get(f[0]); got != f[1] {
			return fmt.Errorf("the answer has %q in %s, and %q was recorded", got, f[0], f[1])
		}
	}
	return nil
}
