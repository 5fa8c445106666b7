package node

import "time"

// Status is a node's view of itself, of its rooms and of the mesh.
type Status struct {
	Node    string       `json:"node"` // id
	Name    string       `json:"name"`
	Site    string       `json:"site"`
	Boot    uint64       `json:"boot"`
	Version string       `json:"version"`
	Ready   bool         `json:"ready"`
	Reason  string       `json:"reason,omitempty"` // why not ready
	Rooms   []RoomStatus `json:"rooms"`
	Peers   []PeerStatus `json:"peers"`
}

// RoomStatus is one room as this node sees it, over the whole mesh.
type RoomStatus struct {
	ID                string       `json:"id"`
	Name              string       `json:"name"`
	Policy            string       `json:"policy"`
	QueueingMethod    string       `json:"queueing_method"`
	Active            int64        `json:"active"`
	Waiting           int64        `json:"waiting"`
	AdmittedPerMinute int64        `json:"admitted_per_minute"`
	TotalActiveUsers  int          `json:"total_active_users"`
	NewUsersPerMinute int          `json:"new_users_per_minute"`
	Slots             int          `json:"slots"`
	Sites             []SiteStatus `json:"sites"`
}

// SiteStatus is one site's part of a room.
type SiteStatus struct {
	Site    string `json:"site"`
	Active  int64  `json:"active"`
	Waiting int64  `json:"waiting"`
}

// PeerStatus is one other node as this node sees it.
type PeerStatus struct {
	Node        string        `json:"node"`
	Name        string        `json:"name"`
	Site        string        `json:"site"`
	Boot        uint64        `json:"boot"`
	State       string        `json:"state"` // alive, failed or left
	RTT         time.Duration `json:"rtt_ns"`
	ClockOffset time.Duration `json:"clock_offset_ns"`
}
