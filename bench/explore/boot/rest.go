package boot

import (
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// settledEvery is of how many worlds one is brought to rest, by default: it costs as much as many
// events.
const settledEvery = 53

// Rest takes restSteps steps of restStep each: time for some rounds.
const (
	restSteps = 60
	restStep  = 500 * time.Millisecond
)

// unsettled says what is wrong once all hosts hear each other for long enough, after
// all has arrived that was on its way; "": all hold one mesh, and it is minted, or the minter's
// disk is gone, and somebody says so.
func (m *model) unsettled(w world) string {
	m.nonces = fresh
	defer func() { m.nonces = 0 }()
	var mail []message
	for _, n := range m.sets.All[w.messages] {
		mail = append(mail, m.messages.All[n])
	}
	now := m.at(w)
	for i := range now {
		now[i] = m.ready(now[i])
	}
	for range restSteps {
		m.deliver(now, mail)
		mail = nil
		for i := range now {
			f := m.tick(now[i], m.others(now, i, most))
			now[i], mail = m.ready(f.to), append(mail, f.sent...)
			now[i].now = now[i].now.Add(restStep)
		}
	}
	return m.apart(now, w.hasMinted())
}

// ready has what a host writes be on its disk.
func (m *model) ready(h *host) *host {
	if _, writes := h.m.Write(); writes {
		return m.apply(h, event{do: saves}).to
	}
	return h
}

// deliver has messages arrive, and answers to them.
func (m *model) deliver(now []*host, mail []message) {
	for len(mail) > 0 {
		x := mail[0]
		mail = mail[1:]
		if i := int(x.to[1]); m.self(now[i]) == x.to {
			f := m.receive(now[i], x)
			now[i], mail = m.ready(f.to), append(mail, f.sent...)
		}
	}
}

// apart says what hosts at rest do not agree on; "": nothing. One that is not named, and was cut
// off, may be of a mesh that never came to be: the first disk that promised it is gone.
func (m *model) apart(now []*host, minted bool) string {
	r, told := now[0].disk.Record, false
	for i, h := range now {
		is := h.disk.Record
		if never := i >= m.cfg.Named && !m.there(now, is.Minter) && r.Minter == m.self(now[0]); r.Mesh.IsZero() || !is.Same(r) && !never {
			return fmt.Sprintf("when all is well again, %s holds %s, and %s %s: %s", m.hosts[0], m.held(r), m.hosts[i], m.held(is), h.m.Waits(h.now))
		}
		minted, told = minted || h.disk.Minted, told || h.m.Returned() != crdt.NodeID{}
	}
	switch there := m.there(now, r.Minter); {
	case there && !minted:
		return "when all is well again, the minter is there, and has not minted"
	case !there && !told:
		return "when all is well again, the minter's disk is gone, and nobody says so"
	}
	return ""
}

// there reports whether a disk is.
func (m *model) there(now []*host, id crdt.NodeID) bool {
	return slices.ContainsFunc(now, func(h *host) bool { return m.self(h) == id })
}
