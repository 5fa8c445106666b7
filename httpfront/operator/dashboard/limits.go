package dashboard

// Limit is one rate limit. Fields that the API has are named and meant as there; those that
// this node does not know are left out.
type Limit struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Order int    `json:"order"` // its place among those that are asked, from 1 on
	State string `json:"state"` // LimitCounts, LimitDisabled or LimitLeftOut
	Scope string `json:"scope"`

	Expression        string   `json:"expression,omitempty"`
	Characteristics   []string `json:"characteristics,omitempty"`
	Period            int64    `json:"period,omitempty"` // seconds
	RequestsPerPeriod int64    `json:"requests_per_period,omitempty"`
	MitigationTimeout int64    `json:"mitigation_timeout,omitempty"` // seconds
	Action            string   `json:"action,omitempty"`

	Keys    OverNodes `json:"keys"`    // that were asked about within two periods
	Limited OverNodes `json:"limited"` // of those

	// By so much the requests of a key can be more than the limit within a period: by what
	// comes in DelaySeconds, and at whatever rate by Most. It is the largest that a node tells.
	DelaySeconds float64 `json:"delay_seconds"`
	Most         int64   `json:"most"`

	Nodes int `json:"nodes"` // whose figures these are
}

// States of a Limit.
const (
	LimitCounts   = "counts"
	LimitDisabled = "disabled"
	LimitLeftOut  = "left out" // it does not hold beside others: see Snapshot.Refused
)

// OverNodes is a number of keys of which several nodes know some. A key is with each node
// that was asked about it, so there are at least Most different ones, and at most Sum.
type OverNodes struct {
	Most int64 `json:"most"` // at one node
	Sum  int64 `json:"sum"`
}

// LimitMemory is how a node gets by with its memory for rate limits.
type LimitMemory struct {
	Bytes          int64  `json:"memory_bytes"`
	Room           int64  `json:"room"`            // for so many keys; 0: no rate limit counts
	Keys           int64  `json:"keys"`            // of all rate limits together
	Replaced       uint64 `json:"replaced"`        // keys that were forgotten too early, since the start
	ReplacedLately uint64 `json:"replaced_lately"` // within five minutes
}
