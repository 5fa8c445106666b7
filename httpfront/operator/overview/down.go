package overview

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
)

// While nodes are down the others are asked although nobody looks, since alerts go by what they
// say: often at first, and when something changes.
const (
	downAsk   = 3 * time.Second
	downSoon  = time.Minute
	downLater = 15 * time.Second
)

// downWatch tells when others have to be asked about nodes that are down. It belongs to Run.
type downWatch struct {
	states  map[crdt.NodeID]bool // whether each is declared dead
	changed time.Time
}

// pause returns how long to leave others alone; zero: there is nothing to ask.
func (w *downWatch) pause(all []node.Down, now time.Time) time.Duration {
	if len(all) == 0 {
		w.states = nil
		return 0
	}
	states := make(map[crdt.NodeID]bool, len(all))
	same := len(w.states) == len(all)
	for i := range all {
		declared, known := w.states[all[i].Node]
		same = same && known && declared == all[i].Declared
		states[all[i].Node] = all[i].Declared
	}
	if w.states = states; !same {
		w.changed = now
	}
	if now.Sub(w.changed) < downSoon {
		return downAsk
	}
	return downLater
}

// Down returns the nodes whose capacity cannot be used, as this node and others know them. s is
// the status of this node.
func (o *Overview) Down(s *node.Status, now time.Time) []node.DownStatus {
	self, err := crdt.ParseNodeID(s.Node)
	if err != nil {
		return []node.DownStatus{}
	}
	v := node.DownView{Running: []crdt.NodeID{self}, Names: map[crdt.NodeID]string{self: s.Name}, Reports: map[crdt.NodeID][]node.Down{self: o.cfg.Local.Down()}}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range s.Peers {
		id, err := crdt.ParseNodeID(p.Node)
		if err != nil {
			continue
		}
		v.Names[id] = p.Name
		if p.State != "alive" {
			continue
		}
		v.Running = append(v.Running, id)
		if r := o.reports[p.Node]; r != nil && r.Boot == p.Boot {
			v.Reports[id] = r.Down
		}
	}
	return v.DownStatuses(now)
}
