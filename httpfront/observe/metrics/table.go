package metrics

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/transport"
)

// Type is the type of a metric.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"   // only grows, from 0 at the start of the process
	Gauge     Type = "gauge"     // goes up and down
	Histogram Type = "histogram" // durations, counted by how long they are
)

// Metric is one metric. Where it has labels, there is a series for each.
type Metric struct {
	Name   string   `json:"name"`
	Type   Type     `json:"type"`
	Unit   string   `json:"unit"` // of the value; "0 or 1" where it is a yes or no
	Labels []string `json:"labels"`
	Help   string   `json:"help"`

	read func(*Sample, emit) // nil: counted as it happens
}

// emit takes one series: its value, and its labels in the order of the table.
type emit func(value float64, labels ...string)

// Table returns all metrics that ropeline has of its own, in the order in which they are
// documented.
func Table() []Metric { return slices.Concat(nodeTable, meshTable, roomTable, limitTable, frontTable) }

// bit is the unit of what is so or is not.
const bit = "0 or 1"

func bitOf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// one returns how a single number is read.
func one[N int | int64 | uint64](of func(*Sample) N) func(*Sample, emit) {
	return func(s *Sample, out emit) { out(float64(of(s))) }
}

// whether is one of what is so or is not.
func whether(of func(*Sample) bool) func(*Sample, emit) {
	return func(s *Sample, out emit) { out(bitOf(of(s))) }
}

// longest is the longest time of a node that is alive.
func longest(of func(*node.PeerStatus) time.Duration) func(*Sample, emit) {
	return func(s *Sample, out emit) {
		var most time.Duration
		for i := range s.Node.Peers {
			if p := &s.Node.Peers[i]; p.State == transport.Alive.String() {
				most = max(most, of(p))
			}
		}
		out(most.Seconds())
	}
}

var nodeTable = []Metric{
	{
		"ropeline_node_info", Gauge, "always 1",
		[]string{"node", "name", "site", "version"},
		"which node this is, and what runs there",
		func(s *Sample, out emit) { out(1, s.Node.Node, s.Node.Name, s.Node.Site, s.Node.Version) },
	},
	{"ropeline_node_ready", Gauge, bit, nil, "the node takes traffic, as /readyz says", whether(func(s *Sample) bool { return s.Node.Ready })},
	{"ropeline_node_leaving", Gauge, bit, nil, "the node passes its rights on, and then ends", whether(func(s *Sample) bool { return s.Node.Leaving })},
	{"ropeline_node_boot_number", Gauge, "starts", nil, "how often the node has started, ever", one(func(s *Sample) uint64 { return s.Node.Boot })},
	{
		"ropeline_clock_ok", Gauge, bit, nil, "the clock agrees with those of the other nodes; while it does not, the node gives no tickets",
		whether(func(s *Sample) bool { return s.Node.Clock == "ok" }),
	},
	{
		"ropeline_store_ok", Gauge, bit, nil, "the disk takes writes; while it does not, the node gives no tickets",
		whether(func(s *Sample) bool { return s.Node.Store == "ok" }),
	},
	{"ropeline_store_failures_total", Counter, "writes", nil, "writes that the disk did not take", one(func(s *Sample) uint64 { return s.Node.StoreFailures })},
	{"ropeline_store_size_bytes", Gauge, "bytes", nil, "what the store takes on the disk", one(func(s *Sample) uint64 { return s.Disk.StoreBytes })},
	{"ropeline_disk_free_bytes", Gauge, "bytes", nil, "free on the file system of the data directory", one(func(s *Sample) uint64 { return s.Disk.FreeBytes })},
	{"ropeline_disk_size_bytes", Gauge, "bytes", nil, "size of the file system of the data directory", one(func(s *Sample) uint64 { return s.Disk.SizeBytes })},
	{"ropeline_facts", Gauge, "facts", nil, "facts that this node knows of rooms and nodes", one(func(s *Sample) int { return s.Node.Facts.Known })},
	{"ropeline_facts_limit", Gauge, "facts", nil, "facts that there is room for", one(func(s *Sample) int { return s.Node.Facts.Most })},
	{"ropeline_facts_refused_total", Counter, "facts", nil, "facts of this node for which there was no room", one(func(s *Sample) uint64 { return s.Node.Facts.Refused })},
	{"ropeline_settings_left_out", Gauge, "settings", nil, "rooms, events and rate limits that operators have set and that do not hold, since they cannot be beside others", one(func(s *Sample) int { return len(s.Node.RoomsRefused) })},
	{
		"ropeline_messages_refused_total", Counter, "messages", nil, "messages of other nodes that made no sense or were not theirs to send",
		one(func(s *Sample) uint64 { return s.Node.MessagesRefused }),
	},
	{
		"ropeline_messages_dropped_total", Counter, "messages", nil, "messages of other nodes that came faster than they could be taken in",
		one(func(s *Sample) uint64 { return s.Node.MessagesDropped }),
	},
	{
		"ropeline_overflow_total", Counter, "notes", nil, "polls, check-ins and ends of sessions lost because a table was full",
		one(func(s *Sample) uint64 { return s.Node.Overflow }),
	},
	{"ropeline_history_bytes", Gauge, "bytes", nil, "memory that the history of the last day takes", one(func(s *Sample) uint64 { return s.Node.HistoryBytes })},
	{
		"ropeline_history_refused_total", Counter, "observations", nil, "observations of rooms for which the history had no place",
		one(func(s *Sample) uint64 { return s.Node.HistoryRefused }),
	},
	{
		"ropeline_log_dropped_lines_total", Counter, "lines", nil, "lines of the log of the node that were not written, since its reader stopped or went away",
		one(func(s *Sample) uint64 { return s.Front.LogDropped }),
	},
}

var meshTable = []Metric{
	{"ropeline_peers", Gauge, "nodes", []string{"state"}, "other nodes by state: alive, failed or left", func(s *Sample, out emit) {
		states := map[string]int{}
		for i := range s.Node.Peers {
			states[s.Node.Peers[i].State]++
		}
		for _, state := range []transport.State{transport.Alive, transport.Failed, transport.Left} {
			out(float64(states[state.String()]), state.String())
		}
	}},
	{
		"ropeline_peer_longest_round_trip_seconds", Gauge, "seconds", nil, "the longest round trip to a node that is alive",
		longest(func(p *node.PeerStatus) time.Duration { return p.RTT }),
	},
	{
		"ropeline_peer_largest_clock_offset_seconds", Gauge, "seconds", nil, "how far the clock of a node that is alive is away at most, in either direction",
		longest(func(p *node.PeerStatus) time.Duration { return p.ClockOffset.Abs() }),
	},
	{"ropeline_mesh_links", Gauge, "connections", nil, "QUIC connections to other nodes", one(func(s *Sample) int { return s.Mesh.Links })},
	{"ropeline_mesh_received_bytes_total", Counter, "bytes", nil, "UDP payload received from other nodes", one(func(s *Sample) uint64 { return s.Mesh.BytesIn })},
	{"ropeline_mesh_sent_bytes_total", Counter, "bytes", nil, "UDP payload sent to other nodes", one(func(s *Sample) uint64 { return s.Mesh.BytesOut })},
	{
		"ropeline_mesh_handshakes_refused_total", Counter, "handshakes", nil, "handshakes without the identity of this mesh, or cut off half-way",
		one(func(s *Sample) uint64 { return s.Mesh.RefusedHandshakes }),
	},
	{
		"ropeline_mesh_peers_refused_total", Counter, "connections", nil, "connections of members that claimed what is not theirs",
		one(func(s *Sample) uint64 { return s.Mesh.RefusedPeers }),
	},
	{"ropeline_mesh_frames_malformed_total", Counter, "frames", nil, "streams and packets that made no sense", one(func(s *Sample) uint64 { return s.Mesh.MalformedFrames })},
	{"ropeline_mesh_panics_total", Counter, "panics", nil, "panics in the handling of messages and calls", one(func(s *Sample) uint64 { return s.Mesh.HandlerPanics })},
	{"ropeline_mesh_calls_total", Counter, "calls", []string{"direction"}, "calls to and from other nodes: in or out", func(s *Sample, out emit) {
		out(float64(s.Mesh.CallsIn), "in")
		out(float64(s.Mesh.CallsOut), "out")
	}},
	{"ropeline_mesh_messages_total", Counter, "messages", []string{"direction"}, "one-way messages to and from other nodes: in or out", func(s *Sample, out emit) {
		out(float64(s.Mesh.MessagesIn), "in")
		out(float64(s.Mesh.MessagesOut), "out")
	}},
	{
		"ropeline_mesh_messages_replaced_total", Counter, "messages", nil, "messages whose place a newer one took while they waited",
		one(func(s *Sample) uint64 { return s.Mesh.MessagesReplaced }),
	},
	{
		"ropeline_mesh_messages_dropped_total", Counter, "messages", nil, "messages that were not sent: the queue was full, or nobody there",
		one(func(s *Sample) uint64 { return s.Mesh.MessagesDropped }),
	},
	{"ropeline_mesh_queued_messages", Gauge, "messages", nil, "messages that wait to be sent", one(func(s *Sample) int { return s.Mesh.QueuedMessages })},
	{"ropeline_mesh_queued_bytes", Gauge, "bytes", nil, "what they take", one(func(s *Sample) int { return s.Mesh.QueuedBytes })},
	{
		"ropeline_gossip_dropped_packets_total", Counter, "packets", nil, "packets of serf that a connection could not keep up with",
		one(func(s *Sample) uint64 { return s.Mesh.GossipDropped }),
	},
	{"ropeline_gossip_queued_messages", Gauge, "messages", nil, "membership news that serf has still to tell", one(func(s *Sample) int { return s.Mesh.GossipQueue })},
}
