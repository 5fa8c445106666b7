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
	Name, Site, Version string
	Address             string // of the mesh; "": it is alone
	Boot                uint64

	Ready   bool
	Reason  string // why not ready
	Leaving bool
	Store   string
	Clock   string

	RTTs  map[string]time.Duration // to other nodes, by id
	Rooms []RoomReport             // in which it has rights, or leads

	Down []node.Down // what it knows of nodes that do not run

	Limits      []node.LimitStatus // rate limits that it counts for
	LimitMemory LimitMemoryReport

	Origins []dashboard.Origin // the servers of the sites behind it
}

// RoomReport is what a node has of one room.
type RoomReport struct {
	Room   crdt.RoomID
	Leads  bool // it is its site's counter
	Rights dashboard.Rights
}

// ReportOf returns what a node says of itself.
func ReportOf(s *node.Status, address string) *Report {
	r := &Report{
		Name: s.Name, Site: s.Site, Version: s.Version, Boot: s.Boot, Address: address,
		Ready: s.Ready, Reason: s.Reason, Leaving: s.Leaving, Store: s.Store, Clock: s.Clock,
		RTTs: map[string]time.Duration{}, Limits: s.Limits.Rules,
		LimitMemory: LimitMemoryReport{Bytes: s.Limits.MemoryBytes, Keys: s.Limits.Keys, Replaced: s.Limits.Replaced},
	}
	for _, p := range s.Peers {
		if p.RTT > 0 {
			r.RTTs[p.Node] = p.RTT
		}
	}
	for i := range s.Rooms {
		st := &s.Rooms[i]
		id, err := crdt.ParseRoomID(st.ID)
		leads := st.SiteCounter == s.Node
		if err != nil || st.Rights == nil && !leads {
			continue
		}
		of := RoomReport{Room: id, Leads: leads}
		if own := st.Rights; own != nil {
			of.Rights = dashboard.Rights{Held: own.Held, Free: own.Free, InUse: own.InUse, Borrowed: own.Borrowed}
		}
		r.Rooms = append(r.Rooms, of)
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
