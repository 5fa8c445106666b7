package suite

import (
	"context"
	"encoding/csv"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/redis"
)

// counters is what a central counter costs, which is asked about every visitor.
func counters() benchmark {
	return benchmark{
		name:     "counters",
		question: "What does it cost to ask Redis once for each decision, as waiting rooms with a centre do?",
		method: "`INCR` of one key, one call for each decision, by 64 connections that each wait for their answer: by a small client in Go, as a server would have it, and by " +
			"redis-benchmark, which is the least that asking can take. Redis keeps nothing on disk. What the client in Go spends itself is told beside, since whoever decides has to spend it, too.",
		entries: []entry{
			{server: "Redis INCR", what: "a client in Go", needs: []string{"redis-server"}, start: func(p *place) *subject { return startCounter(p, increments) }},
			{server: "Redis INCR", what: "redis-benchmark", needs: []string{"redis-server", "redis-benchmark"}, start: func(p *place) *subject { return startCounter(p, redisBenchmark) }},
		},
	}
}

func startCounter(p *place, send func(context.Context, shot) (answers, error)) *subject {
	return &subject{parts: []*rig.Process{p.runs(redis.Start(p.ctx, rig.OfServer, p.dir, p.listen))}, send: send}
}

// increments has this process increment, whose time can be told, as it does nothing else meanwhile.
func increments(_ context.Context, s shot) (answers, error) {
	r, err := redis.Repeat(s.address, redis.Command("INCR", "counter"), s.conns, s.lasts)
	return answers{answered: r.Calls, sample: sample{perSecond: r.Rate, p50: r.P50 / 1e6, p99: r.P99 / 1e6, generator: 100 * r.CPUShare, asking: r.CPU / 1e6}}, err
}

// redisBenchmark has the program of that name increment. It takes a number of calls, not a time.
func redisBenchmark(ctx context.Context, s shot) (a answers, err error) {
	at, port, _ := strings.Cut(s.address, ":")
	const perSecond = 50_000
	calls := int64(s.lasts.Seconds() * perSecond)
	out, err := exec.CommandContext(ctx, "redis-benchmark", "-h", at, "-p", port,
		"-c", strconv.Itoa(s.conns), "-n", strconv.FormatInt(calls, 10), "--csv", "-t", "incr").Output()
	if err != nil {
		return a, fmt.Errorf("redis-benchmark: %w: %s", err, out)
	}
	if a, err = parseRedisBenchmark(string(out)); err == nil {
		a.answered = calls
	}
	return a, err
}

// parseRedisBenchmark reads what is printed with --csv: the names of columns, and a line for the test.
func parseRedisBenchmark(out string) (a answers, err error) {
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 {
		return a, fmt.Errorf("redis-benchmark: %s", out)
	}
	units := map[string]string{"rps": perSecond, "p50_latency_ms": p50, "p99_latency_ms": p99}
	a.sample = sample{}
	for i, name := range rows[0] {
		if unit := units[name]; unit != "" {
			v, err := strconv.ParseFloat(rows[1][i], 64)
			if err != nil {
				return a, fmt.Errorf("redis-benchmark: %w: %s", err, out)
			}
			a.sample[unit] = v
		}
	}
	a.sample[p50], a.sample[p99] = a.sample[p50]/1e3, a.sample[p99]/1e3
	return a, nil
}
