package overview

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
)

// Report is what a node says of itself: what others cannot know.
type Report struct {
	dashboard.Node              // as the dashboard shows it, which a reader completes by what it knows itself
	Rooms          []RoomReport // in which it has rights

	Down []node.Down // what it knows of nodes that do not run

	Rules []node.LimitStatus // rate limits that it counts for
}

// RoomReport is what a node has of one room.
type RoomReport struct {
	Room   crdt.RoomID
	Rights dashboard.Rights
}

// ReportOf returns what a node says of itself.
func ReportOf(s *node.Status, address string) *Report {
	r := &Report{
		Node: dashboard.Node{
			Node: s.Node, Name: s.Name, Site: s.Site, Address: address, Boot: s.Boot, Version: s.Version, State: "alive",
			Ready: s.Ready, Reason: s.Reason, Leaving: s.Leaving, Store: s.Store, Clock: s.Clock, RTTs: map[string]time.Duration{}, Leads: []string{},
			Limits: &dashboard.LimitMemory{Bytes: int64(s.Limits.MemoryBytes), Room: int64(s.Limits.Keys), Replaced: s.Limits.Replaced},
		},
		Rules: s.Limits.Rules,
	}
	for i := range r.Rules {
		r.Limits.Keys += int64(r.Rules[i].Keys)
	}
	for _, p := range s.Peers {
		if p.RTT > 0 {
			r.RTTs[p.Node] = p.RTT
		}
	}
	for i := range s.Rooms {
		st := &s.Rooms[i]
		id, err := crdt.ParseRoomID(st.ID)
		if err != nil {
			continue
		}
		if st.SiteCounter == s.Node {
			r.Leads = append(r.Leads, st.ID)
		}
		if own := st.Rights; own != nil {
			of := RoomReport{id, dashboard.Rights{Held: own.Held, Free: own.Free, InUse: own.InUse, Borrowed: own.Borrowed}}
			add(&r.Rights, &of.Rights)
			r.Rooms = append(r.Rooms, of)
		}
	}
	return r
}

// What a peer's report may come to, unpacked: twenty nodes that are down, with a thousand rooms each.
const maxReport, maxObjects = 8 << 20, 1 << 17

// Encode returns the report as it travels: packed JSON, fields by name, so that nodes of several versions understand
// each other.
func (r *Report) Encode() ([]byte, error) {
	b, err := json.Marshal(r)
	return catalog.Pack(string(b)), err
}

// DecodeReport reads what Encode wrote. Objects are counted before: three bytes of JSON make a room.
func DecodeReport(b []byte) (*Report, error) {
	r := new(Report)
	text, err := catalog.Unpack(b, maxReport)
	if n := strings.Count(text, "{"); n > maxObjects {
		err = fmt.Errorf("%d objects, at most %d", n, maxObjects)
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), r)
	}
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return r, nil
}
