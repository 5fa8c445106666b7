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

// one is a metric that is a single number.
func one[N int | uint64](name string, t Type, unit, help string, of func(*Sample) N) Metric {
	return Metric{name, t, unit, nil, help, func(s *Sample, out emit) { out(float64(of(s))) }}
}

// whether is one of what is so or is not.
func whether(name, help string, of func(*Sample) bool) Metric {
	return Metric{name, Gauge, bit, nil, help, func(s *Sample, out emit) { out(bitOf(of(s))) }}
}

// longest is the longest time of a node that is alive.
func longest(name, help string, of func(*node.PeerStatus) time.Duration) Metric {
	return Metric{name, Gauge, "seconds", nil, help, func(s *Sample, out emit) {
		var most time.Duration
		for i := range s.Node.Peers {
			if p := &s.Node.Peers[i]; p.State == transport.Alive.String() {
				most = max(most, of(p))
			}
		}
		out(most.Seconds())
	}}
}

var nodeTable = []Metric{
	{
		"ropeline_node_info", Gauge, "always 1",
		[]string{"node", "name", "site", "version"},
		"which node this is, and what runs there",
		func(s *Sample, out emit) { out(1, s.Node.Node, s.Node.Name, s.Node.Site, s.Node.Version) },
	},
	whether("ropeline_node_ready", "the node takes traffic, as /readyz says", func(s *Sample) bool { return s.Node.Ready }),
	whether("ropeline_node_leaving", "the node passes its rights on, and then ends", func(s *Sample) bool { return s.Node.Leaving }),
	one("ropeline_node_boot_number", Gauge, "starts", "how often the node has started, ever", func(s *Sample) uint64 { return s.Node.Boot }),
	whether("ropeline_clock_ok", "the clock agrees with those of the other nodes; while it does not, the node gives no tickets",
		func(s *Sample) bool { return s.Node.Clock == "ok" }),
	whether("ropeline_store_ok", "the disk takes writes; while it does not, the node gives no tickets",
		func(s *Sample) bool { return s.Node.Store == "ok" }),
	one("ropeline_store_failures_total", Counter, "writes", "writes that the disk did not take",
		func(s *Sample) uint64 { return s.Node.StoreFailures }),
	one("ropeline_store_size_bytes", Gauge, "bytes", "what the store takes on the disk", func(s *Sample) uint64 { return s.Disk.StoreBytes }),
	one("ropeline_disk_free_bytes", Gauge, "bytes", "free on the file system of the data directory",
		func(s *Sample) uint64 { return s.Disk.FreeBytes }),
	one("ropeline_disk_size_bytes", Gauge, "bytes", "size of the file system of the data directory",
		func(s *Sample) uint64 { return s.Disk.SizeBytes }),
	one("ropeline_facts", Gauge, "facts", "facts that this node knows of rooms and nodes", func(s *Sample) int { return s.Node.Facts.Known }),
	one("ropeline_facts_limit", Gauge, "facts", "facts that there is room for", func(s *Sample) int { return s.Node.Facts.Most }),
	one("ropeline_facts_refused_total", Counter, "facts", "facts of this node for which there was no room",
		func(s *Sample) uint64 { return s.Node.Facts.Refused }),
	one("ropeline_settings_left_out", Gauge, "settings", "rooms, events and rate limits that operators have set and that do not hold, since they cannot be beside others",
		func(s *Sample) int { return len(s.Node.RoomsRefused) }),
	one("ropeline_messages_refused_total", Counter, "messages", "messages of other nodes that made no sense or were not theirs to send",
		func(s *Sample) uint64 { return s.Node.MessagesRefused }),
	one("ropeline_messages_dropped_total", Counter, "messages", "messages of other nodes that came faster than they could be taken in",
		func(s *Sample) uint64 { return s.Node.MessagesDropped }),
	one("ropeline_overflow_total", Counter, "notes", "polls, check-ins and ends of sessions lost because a table was full",
		func(s *Sample) uint64 { return s.Node.Overflow }),
	one("ropeline_history_bytes", Gauge, "bytes", "memory that the history of the last day takes",
		func(s *Sample) uint64 { return s.Node.HistoryBytes }),
	one("ropeline_history_refused_total", Counter, "observations", "observations of rooms for which the history had no place",
		func(s *Sample) uint64 { return s.Node.HistoryRefused }),
	one("ropeline_log_dropped_lines_total", Counter, "lines", "lines of the log of the node that were not written, since its reader stopped or went away",
		func(s *Sample) uint64 { return s.Front.LogDropped }),
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
	longest("ropeline_peer_longest_round_trip_seconds", "the longest round trip to a node that is alive",
		func(p *node.PeerStatus) time.Duration { return p.RTT }),
	longest("ropeline_peer_largest_clock_offset_seconds", "how far the clock of a node that is alive is away at most, in either direction",
		func(p *node.PeerStatus) time.Duration { return p.ClockOffset.Abs() }),
	one("ropeline_mesh_links", Gauge, "connections", "QUIC connections to other nodes", func(s *Sample) int { return s.Mesh.Links }),
	one("ropeline_mesh_received_bytes_total", Counter, "bytes", "UDP payload received from other nodes",
		func(s *Sample) uint64 { return s.Mesh.BytesIn }),
	one("ropeline_mesh_sent_bytes_total", Counter, "bytes", "UDP payload sent to other nodes", func(s *Sample) uint64 { return s.Mesh.BytesOut }),
	one("ropeline_mesh_handshakes_refused_total", Counter, "handshakes", "handshakes without the identity of this mesh, or cut off half-way",
		func(s *Sample) uint64 { return s.Mesh.RefusedHandshakes }),
	one("ropeline_mesh_peers_refused_total", Counter, "connections", "connections of members that claimed what is not theirs",
		func(s *Sample) uint64 { return s.Mesh.RefusedPeers }),
	one("ropeline_mesh_frames_malformed_total", Counter, "frames", "streams and packets that made no sense",
		func(s *Sample) uint64 { return s.Mesh.MalformedFrames }),
	one("ropeline_mesh_panics_total", Counter, "panics", "panics in the handling of messages and calls",
		func(s *Sample) uint64 { return s.Mesh.HandlerPanics }),
	{"ropeline_mesh_calls_total", Counter, "calls", []string{"direction"}, "calls to and from other nodes: in or out", func(s *Sample, out emit) {
		out(float64(s.Mesh.CallsIn), "in")
		out(float64(s.Mesh.CallsOut), "out")
	}},
	{"ropeline_mesh_messages_total", Counter, "messages", []string{"direction"}, "one-way messages to and from other nodes: in or out", func(s *Sample, out emit) {
		out(float64(s.Mesh.MessagesIn), "in")
		out(float64(s.Mesh.MessagesOut), "out")
	}},
	one("ropeline_mesh_messages_replaced_total", Counter, "messages", "messages whose place a newer one took while they waited",
		func(s *Sample) uint64 { return s.Mesh.MessagesReplaced }),
	one("ropeline_mesh_messages_dropped_total", Counter, "messages", "messages that were not sent: the queue was full, or nobody there",
		func(s *Sample) uint64 { return s.Mesh.MessagesDropped }),
	one("ropeline_mesh_queued_messages", Gauge, "messages", "messages that wait to be sent", func(s *Sample) int { return s.Mesh.QueuedMessages }),
	one("ropeline_mesh_queued_bytes", Gauge, "bytes", "what they take", func(s *Sample) int { return s.Mesh.QueuedBytes }),
	one("ropeline_gossip_dropped_packets_total", Counter, "packets", "packets of serf that a connection could not keep up with",
		func(s *Sample) uint64 { return s.Mesh.GossipDropped }),
	one("ropeline_gossip_queued_messages", Gauge, "messages", "membership news that serf has still to tell",
		func(s *Sample) int { return s.Mesh.GossipQueue }),
}
