package limits

import (
	"math/rand/v2"
	"time"

	"github.com/ropeline/ropeline/node/limit"
)

// Estimates returns what counts requests of sources at random nodes of a mesh, and returns
// the estimate of the node that was asked; and what lets time pass. Times are from 0 on.
func Estimates(period time.Duration, cfg Config) (count func(source int, at limit.Millis) float64, pass func(at limit.Millis)) {
	// Nobody reaches the limit: what is asked for is the estimate.
	r := limit.Rule{ID: limit.ID{1}, Name: "all", Expression: "true", Period: period, RequestsPerPeriod: limit.MaxRequests}.WithDefaults()
	cfg.Rules = []limit.Rule{r}
	m := New(cfg)
	begin := m.Now
	rng := rand.New(rand.NewPCG(cfg.Seed, 5))
	secrets := m.Nodes[0].Rules.Counter(r.ID) // the same at all nodes
	count = func(source int, at limit.Millis) float64 {
		n := m.Nodes[0]
		if len(m.Nodes) > 1 {
			n = m.Nodes[rng.IntN(len(m.Nodes))]
		}
		k := KeyOf(secrets, uint64(source))
		n.table.Count(k, &secrets.Terms, begin+at)
		rep, _ := n.table.Report(k, &secrets.Terms, true, begin+at)
		return rep.Estimate
	}
	return count, func(at limit.Millis) { m.Run(begin + at) }
}
