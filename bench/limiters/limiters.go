// Package limiters holds rate limits of ropeline beside those of nginx (limit_req) and
// HAProxy (stick tables), through HTTP and in one run: requests without a limit, within one
// and beyond one, and what each costs in processor time; and visitors while one source comes
// beyond a limit.
package limiters

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rate"
	"github.com/ropeline/ropeline/bench/rig"
)

// Entries are the measurements.
func Entries() []measurement.Entry {
	compared := measurement.Entry{
		Name: "limit-bench", Page: "rate-limits-measured.md",
		Question: "What does a rate limit cost, beside those of nginx and HAProxy?",
		Method:   "One server at a time on one core, a load that asks again as soon as it has an answer, on 64 connections, and the site on the other: requests without a limit, within one that is not reached, and beyond one that refuses nearly all.",
		Units: []measurement.Unit{{Name: "req/s", Meaning: "answers a second", Better: "higher"},
			{Name: "cpu-sec/req", Meaning: "processor time of the server for each request", Better: "lower"},
			{Name: "of-no-limit", Meaning: "that time by what the same server takes without a limit, within a round", Better: "lower"},
			{Name: "ropeline-by-it", Meaning: "that time of ropeline by that of this server, within a round", Better: "lower"}},
		Needs: []string{measurement.Ropeline, "nginx", "haproxy", "taskset"}, Cores: []int{1},
	}
	attacked := measurement.Entry{
		Name: "limit-attack", Page: "rate-limits-measured.md",
		Question: "What do visitors notice while one source comes beyond a rate limit?",
		Method: fmt.Sprintf("Through HTTP, with the server on one core, and visitors, the attack and the site on the other. %d visitors a second come at an even rate on %d connections and are measured from when they were to come; "+
			"the attack goes on whether it is answered or not.", visitorRate, visitorConns),
		Units: []measurement.Unit{{Name: "attacks/s", Meaning: "requests of the attack"}, {Name: "answers/s", Meaning: "answers to it"},
			{Name: "p50-sec", Meaning: "latency of visitors, half are faster", Better: "lower"}, {Name: "p99-sec", Meaning: "latency of visitors, 99 of 100 are faster", Better: "lower"},
			{Name: "p99-of-none", Meaning: "that by what it is without an attack, within a round", Better: "lower"}},
		Needs: []string{measurement.Ropeline, "nginx", "taskset"}, Cores: []int{1},
	}
	programs := map[string][]string{"nginx": {"nginx", "-v"}, "HAProxy": {"haproxy", "-v"}}
	compared.Programs, attacked.Programs = programs, programs
	return []measurement.Entry{withSite(compared, 6, compare), withSite(attacked, 11, attack)}
}

// bench is a run while the site runs, with a folder for the time.
type bench struct {
	*measurement.Run
	dir    string
	rounds int
	lasts  time.Duration
}

// withSite gives an entry what both have.
func withSite(e measurement.Entry, rounds int, do func(context.Context, *bench)) measurement.Entry {
	e.Quick = []string{"rounds=1", "for=1s"}
	e.New = func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
		var b bench
		o.IntVar(&b.rounds, "rounds", rounds, "how often each is measured; an interval takes six")
		o.DurationVar(&b.lasts, "for", 4*time.Second, "how long each time")
		return func(ctx context.Context, r *measurement.Run) error {
			b.Run = r
			return rig.Try(func() {
				b.dir = rig.Got(os.MkdirTemp("", "limiters"))
				defer os.RemoveAll(b.dir)
				origin := rig.Got(rig.StartSite(ctx, filepath.Join(b.dir, "site"), site))
				defer origin.Stop()
				do(ctx, &b)
			})
		}
	}
	return e
}

// What each server is measured in.
const (
	without = "no limit"
	within  = "within a limit"
	beyond  = "beyond it"
)

func compare(ctx context.Context, b *bench) {
	for range b.rounds {
		found := map[string]time.Duration{}
		for _, s := range servers {
			for _, c := range []string{without, within, beyond} {
				perSecond, cpu, err := b.measure(ctx, s, c)
				if err != nil {
					rig.Must(fmt.Errorf("%s, %s: %w", s.name, c, err))
				}
				found[s.name+c] = cpu
				values := measurement.Values{"req/s": perSecond, "cpu-sec/req": cpu.Seconds(), "of-no-limit": float64(cpu) / float64(found[s.name+without])}
				if own, ok := found[servers[0].name+c]; ok && s.name != servers[0].name {
					values["ropeline-by-it"] = float64(own) / float64(cpu)
				}
				b.Add(measurement.Row("server", s.name, "case", c), values)
			}
		}
	}
}

// measure starts a server, asks it, and ends it. It returns the requests a second, and the time of
// the server for each.
func (b *bench) measure(ctx context.Context, s server, c string) (perSecond float64, cpu time.Duration, err error) {
	p, err := s.start(ctx, b.dir, b.Binary, c)
	if err != nil {
		return 0, 0, err
	}
	err = rig.Try(func() {
		rig.Must(p.Await(ctx, "http://"+address+"/"))
		load := rate.Config{Address: address, Requests: [][]byte{[]byte(request)}, Lasts: time.Second}
		rig.Got(rate.Run(ctx, load)) // all is warm, and the limit is reached
		load.Lasts = b.lasts
		before := rig.Got(p.CPU())
		got := rig.Got(rate.Run(ctx, load))
		perSecond, cpu = got.Rate, (rig.Got(p.CPU())-before)/time.Duration(max(got.Answered, 1))
		if good := got.Status[http.StatusOK]; (good < got.Due/2) != (c == beyond) {
			rig.Must(fmt.Errorf("of %d requests %d were answered with 200: %s", got.Due, good, got.LastError))
		}
	})
	return perSecond, cpu, errors.Join(err, p.Stop())
}

// Where the server under test and the site are.
const (
	address = "127.0.0.1:24980"
	site    = "127.0.0.1:24981"
)

// server is one kind of server under test.
type server struct {
	name  string
	start func(ctx context.Context, dir, binary, c string) (*rig.Process, error)
}

var servers = []server{{"ropeline", startRopeline}, {"nginx", startNginx}, {"HAProxy", startHAProxy}}

func startRopeline(ctx context.Context, dir, binary, c string) (*rig.Process, error) {
	limits := map[string]string{
		within: "rate-limits: [{name: all, expression: 'true', characteristics: [ip.src], period: 1m, requests-per-period: 1000000000}]\n",
		beyond: "rate-limits: [{name: all, expression: 'true', characteristics: [ip.src], period: 1h, requests-per-period: 1, mitigation-timeout: 1h}]\n",
	}
	return rig.StartNode(ctx, rig.NodeConfig{Binary: binary, Listen: address, Admin: "127.0.0.1:24982", Site: site, Dir: dir, Config: "suspended: true\n" + limits[c]})
}

func startNginx(ctx context.Context, dir, _, c string) (*rig.Process, error) {
	zones := map[string]string{
		within: "limit_req_zone $binary_remote_addr zone=all:10m rate=1000000r/s;",
		beyond: "limit_req_zone $binary_remote_addr zone=all:10m rate=1r/m;",
	}
	limit := map[string]string{within: "limit_req zone=all burst=1000000 nodelay;", beyond: "limit_req zone=all; limit_req_status 429; limit_req_log_level info;"}
	return rig.StartNginx(ctx, rig.OfServer, filepath.Join(dir, "nginx"), rig.NginxProxy(address, site, zones[c], limit[c]))
}

func startHAProxy(ctx context.Context, dir, _, c string) (*rig.Process, error) {
	most := map[string]int{within: 2_000_000_000, beyond: 1}
	var limit []string
	if most[c] > 0 {
		limit = []string{"stick-table type ipv6 size 1m expire 1h store http_req_rate(1h)", "http-request track-sc0 src",
			fmt.Sprintf("http-request deny deny_status 429 if { sc_http_req_rate(0) gt %d }", most[c])}
	}
	return rig.StartHAProxy(ctx, rig.OfServer, dir, address, site, limit...)
}
