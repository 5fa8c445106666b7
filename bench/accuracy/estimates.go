package accuracy

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ropeline/ropeline/bench/virtual"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
)

// estimates are those of the nodes of a mesh, which requests of sources come to at random. Times are from 0 on.
type estimates struct {
	mesh  *virtual.Mesh
	begin time.Time
	rng   *rand.Rand
	rule  limit.Rule
}

// newEstimates returns those of sites of so many nodes, each of which counts in so many bytes.
func newEstimates(sites []int, memory int) (*estimates, error) {
	// Nobody reaches the limit: what is asked for is the estimate.
	rule := limit.Rule{ID: limit.ID{1}, Name: "all", Expression: "true", Period: period, RequestsPerPeriod: limit.MaxRequests}.WithDefaults()
	e := &estimates{mesh: virtual.New(), rng: rand.New(rand.NewPCG(1, 5)), rule: rule}
	for s, nodes := range sites {
		for range nodes {
			if err := e.add(fmt.Sprint("site-", s), memory); err != nil {
				return nil, err
			}
		}
	}
	if len(e.mesh.Nodes) > 1 {
		if err := e.mesh.Settle(); err != nil {
			return nil, err
		}
	}
	// The access log is of the same minute of each hour, and is to be cut by the ends of periods as crowds are.
	e.begin = e.mesh.Now.Truncate(period).Add(period + 20*time.Second)
	return e, nil
}

func (e *estimates) add(site string, memory int) error {
	number := len(e.mesh.Nodes) + 1
	self := crdt.Incarnation{Node: crdt.NodeID{byte(number)}, Boot: 1}
	core, err := node.NewCore(node.CoreConfig{
		Self: self, Site: site, OwnerKey: []byte("key of the measured mesh"), Rand: rand.New(rand.NewPCG(1, uint64(number))),
		Limits: []limit.Rule{e.rule}, LimitMemory: memory, Found: number == 1,
	})
	if err == nil {
		e.mesh.Add(self, site, core, time.Duration(e.rng.Float64()*float64(virtual.Tick))) // so that no two keep time
	}
	return err
}

// pass lets time pass. Without, nodes are told nothing of it but by requests.
func (e *estimates) pass(at limit.Millis) { e.mesh.Run(e.begin.Add(at.Duration()).Sub(e.mesh.Now)) }

// count counts a request, and returns the estimate of the node that was asked.
func (e *estimates) count(source int, at limit.Millis) float64 {
	var values [8]byte
	binary.BigEndian.PutUint64(values[:], uint64(source))
	meter := e.mesh.Nodes[e.rng.IntN(len(e.mesh.Nodes))].Core.Meter(e.rule.ID)
	key, now := meter.Key(values[:]), e.begin.Add(at.Duration())
	meter.Count(key, now)
	rep, _ := meter.Report(key, true, now)
	return rep.Estimate
}
