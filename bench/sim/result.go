package sim

import (
	"fmt"
	"time"
)

// Result is what became of a run. All of it but Speed follows from the Config.
type Result struct {
	Seed    uint64 `json:"seed"`
	Sites   int    `json:"sites"`
	Nodes   int    `json:"nodes_per_site"`
	Policy  string `json:"policy"`
	Method  string `json:"method"`
	Figures `json:"figures"`
	// Violations are promises that were broken. A sound mesh has none, whatever
	// the faults. That a policy lets in too many, or too few, is not one: the
	// figures tell.
	Violations []Violation `json:"violations"`
	Series     []Point     `json:"series"`
	Waits      Waits       `json:"waits"`
	Faults     []Fault     `json:"faults"`
	Speed      *Speed      `json:"speed,omitempty"`
}

// Figures sum a run up. DESIGN.md defines each of them.
type Figures struct {
	// OvershootPct is the largest excess of truly active visitors over the greatest
	// limit in force, in percent of it.
	OvershootPct float64 `json:"overshoot_pct"`
	// OvershootRatePct is the same for visitors let in within any 60 s.
	OvershootRatePct float64 `json:"overshoot_rate_pct"`
	// OverMintedPct and OverMintedRatePct are the same beside the rights that nodes
	// have minted; escrow.
	OverMintedPct     float64 `json:"over_minted_pct"`
	OverMintedRatePct float64 `json:"over_minted_rate_pct"`
	// Exempt are admissions beyond a limit that break no promise.
	Exempt Exempt `json:"beyond_limit_exempt"`
	// EarlyQueuedPct is the part of arrivals, in percent, whose first request was
	// refused while there was a place that nobody before them waited for.
	EarlyQueuedPct float64 `json:"early_queued_pct"`
	// IdlePct is the part of the limit, in percent, that was free while somebody
	// waited for it, averaged over the time in which anybody waited.
	IdlePct float64 `json:"idle_pct"`

	// WaitP50, WaitP90 and WaitP99 are over all who were let in; who did not have
	// to wait has waited for 0 s.
	WaitP50 float64 `json:"wait_p50_s"`
	WaitP90 float64 `json:"wait_p90_s"`
	WaitP99 float64 `json:"wait_p99_s"`
	WaitMax float64 `json:"wait_max_s"`
	// OrderError is the part of pairs of waiting visitors who were let in in the
	// other order than they came: 0 is first come, first served; 0.5 is chance.
	// Those of a pre-queue that is shuffled count as having come together.
	OrderError float64 `json:"order_error"`
	// EstimateP50 and EstimateP90 are of |said − real|, in minutes, for the first
	// wait that a visitor was told.
	EstimateP50 float64 `json:"estimate_error_p50_min"`
	EstimateP90 float64 `json:"estimate_error_p90_min"`

	// Near and Far are the messages between nodes of one site and of different
	// ones; NearWorst and FarWorst those of the node that sent the most bytes.
	Near      Traffic `json:"near"`
	Far       Traffic `json:"far"`
	NearWorst Traffic `json:"near_worst_node"`
	FarWorst  Traffic `json:"far_worst_node"`

	Visitors     int `json:"visitors"`
	LetIn        int `json:"let_in"`
	Queued       int `json:"queued"` // of Visitors, who did not get in with their first request
	GaveUp       int `json:"gave_up"`
	TurnedAway   int `json:"turned_away"`    // by a room that rejects
	WaitingAtEnd int `json:"waiting_at_end"` // or had never had an answer by then

	Requests     int `json:"requests"`      // of visitors, polls included
	Refused      int `json:"refused"`       // those answered with the queue
	Unanswered   int `json:"unanswered"`    // those that no node answered
	PlacesLost   int `json:"places_lost"`   // had to begin at the back though they kept asking
	SessionsLost int `json:"sessions_lost"` // were put out though they kept asking
	Requeued     int `json:"requeued"`      // queued again because their session was over
	Reanchored   int `json:"reanchored"`    // sessions that went on at another node's ticket
	Doubled      int `json:"doubled"`       // tickets given for a place that had one: a crash between, or two nodes asked
	Revived      int `json:"revived"`       // sessions that a node let go on after they had ended
	PeakActive   int `json:"peak_active"`
	PeakWaiting  int `json:"peak_waiting"`
	PeakMinute   int `json:"peak_new_users_60s"`

	Borrowed     int     `json:"borrowed"`                // sessions that went on without a right; escrow with on-partition open
	PeakBorrowed int     `json:"peak_borrowed"`           // at one node at one time, as that says
	MovedPerMin  float64 `json:"places_moved_per_minute"` // from one node to another; escrow
	Writes       int     `json:"writes"`                  // batches that nodes had written
	WritesFailed int     `json:"writes_failed"`           // of them, as disks said

	MessagesRefused int     `json:"messages_refused"` // that a node could make no sense of
	MessagesLost    int     `json:"messages_lost"`    // in the network, and by nodes that were down or paused
	Ended           float64 `json:"ended_s"`          // when the last visitor was through, from the start
}

// Traffic is what one node sends, without what the transport adds.
type Traffic struct {
	Messages float64 `json:"messages_per_s"`
	Bytes    float64 `json:"bytes_per_s"`
}

// Violation is a promise that was broken.
type Violation struct {
	Kind string  `json:"kind"`
	At   float64 `json:"at_s"`           // from the start
	Node string  `json:"node,omitempty"` // as faults name it: site.node
	Text string  `json:"text"`
}

// Kinds of violations.
const (
	NeverLetIn    = "never_let_in"   // somebody waits and nobody is let in any more
	PlaceLost     = "place_lost"     // somebody who kept asking had to begin at the back
	LetInTwice    = "let_in_twice"   // one node gave two tickets for one place
	CountsRemain  = "counts_remain"  // all are gone, and a node still counts somebody
	NodePanicked  = "node_panicked"  // the run ends there
	NeverReady    = "never_ready"    // a node that started never got ready
	FalseConflict = "false_conflict" // a node takes its disk for an older one, and none is
	EstimateRose  = "estimate_rose"  // somebody who stayed was told to wait longer, under the same limits

	// Under the policy escrow, while clocks are near enough to each other.
	OverLimit      = "over_limit"       // more inside than any limit in force allows
	OverRate       = "over_rate"        // more let in within 60 s than any limit in force allows
	OverMinted     = "over_minted"      // more inside than rights are minted
	OverMintedRate = "over_minted_rate" // more let in within 60 s than rights of rate are minted
	LimitUnknown   = "limit_unknown"    // a node does not go by the limit that it has to know by now
	RightsLost     = "rights_lost"      // all is healed, and nodes hold fewer rights than are minted, or others than the limit
	RightsGained   = "rights_gained"    // all is healed, and nodes hold more
	BorrowedHidden = "borrowed_hidden"  // more inside than limits, or rights, and borrowed sessions allow; or these are never repaid

	// Under every policy.
	TicketTwice = "ticket_twice" // two sessions have the same ticket
)

// String returns one line for people.
func (v Violation) String() string {
	at := time.Duration(v.At * float64(time.Second)).Round(time.Millisecond)
	if v.Node == "" {
		return fmt.Sprintf("%s at %v: %s", v.Kind, at, v.Text)
	}
	return fmt.Sprintf("%s at %v, node %s: %s", v.Kind, at, v.Node, v.Text)
}

// PointEvery is the time between two points of a series.
const PointEvery = 10 * time.Second

// Point is the state at the end of one step of a series.
type Point struct {
	At       float64 `json:"at_s"`
	Arrivals int     `json:"arrivals"`       // within the step
	Active   int     `json:"active"`         // truly
	Seen     int     `json:"active_seen"`    // as one node has it, another one at each point
	Waiting  int     `json:"waiting"`        // truly
	SeenWait int     `json:"waiting_seen"`   // as that node has it
	Limit    int     `json:"limit"`          // of active visitors
	Minute   int     `json:"new_users_60s"`  // let in within the last 60 s
	PerMin   int     `json:"new_users_max"`  // the limit of that
	Offline  int     `json:"nodes_offline"`  // down, paused or not ready
	BySite   []int   `json:"active_by_site"` // by the site that let them in
}

// WaitEvery is the width of the steps of arrival that Waits has.
const WaitEvery = time.Minute

// Waits are the waits of all who were let in, by the minute of their arrival.
type Waits struct {
	Step float64   `json:"step_s"` // the width of one step of WaitRow.Counts
	Rows []WaitRow `json:"rows"`   // by arrival minute, from 0

	// Of a line through all waits over the times of arrival: how much of their
	// variance it explains, how they correlate, and how many seconds of wait one
	// minute of arrival adds.
	R2          float64 `json:"r2"`
	Correlation float64 `json:"correlation"`
	Slope       float64 `json:"slope_s_per_min"`
	// Within is the mean of the standard deviations inside an arrival minute, in
	// seconds.
	Within float64 `json:"within_minute_s"`
}

// WaitRow are the waits of those who came in one minute.
type WaitRow struct {
	Visitors int     `json:"visitors"`
	Mean     float64 `json:"mean_s"`
	Spread   float64 `json:"spread_s"` // standard deviation
	Counts   []int   `json:"counts"`   // by wait, in steps of Waits.Step; shorter rows end in zeros
}

// Speed is how fast the run was on this machine.
type Speed struct {
	Wall     float64 `json:"wall_s"`
	Virtual  float64 `json:"virtual_s"`
	Events   int     `json:"events"`
	Visitors float64 `json:"visitors_per_s"`
	EventsPS float64 `json:"events_per_s"`
}
