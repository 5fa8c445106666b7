package sim

import (
	"fmt"
	"time"
)

// Result is what became of a run. All of it follows from the Config.
type Result struct {
	Figures `json:"figures"`
	// Violations are promises that were broken. A sound mesh has none, whatever
	// the faults. That a policy lets in too many, or too few, is not one: the
	// figures tell.
	Violations []Violation `json:"violations"`
}

// Figures sum a run up. DESIGN.md defines each of them.
type Figures struct {
	// OvershootPct is the largest excess of truly active visitors over the greatest
	// limit in force, in percent of it.
	OvershootPct float64 `json:"overshoot_pct"`
	// OvershootRatePct is the same for visitors let in within any 60 s.
	OvershootRatePct float64 `json:"overshoot_rate_pct"`
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
	// WaitR2 and WaitCorrelation are of a line through all waits over the times of
	// arrival: how much of their variance it explains, and how they correlate.
	WaitR2          float64 `json:"wait_r2"`
	WaitCorrelation float64 `json:"wait_correlation"`
	// WaitSpread is the mean of the standard deviations of waits inside one minute
	// of arrival.
	WaitSpread float64 `json:"wait_within_minute_s"`
	// OrderError is the part of pairs of waiting visitors who were let in in the
	// other order than they came: 0 is first come, first served; 0.5 is chance.
	// Those of a pre-queue that is shuffled count as having come together.
	OrderError float64 `json:"order_error"`
	// EstimateP50 and EstimateP90 are of |said − real|, in minutes, for the first
	// wait that a visitor was told.
	EstimateP50 float64 `json:"estimate_error_p50_min"`
	EstimateP90 float64 `json:"estimate_error_p90_min"`

	// Near and Far are the messages between nodes of one site and of different
	// ones; FarWorst those of the node that sent the most bytes.
	Near     Traffic `json:"near"`
	Far      Traffic `json:"far"`
	FarWorst Traffic `json:"far_worst_node"`

	Visitors     int `json:"visitors"`
	LetIn        int `json:"let_in"`
	Queued       int `json:"queued"` // of Visitors, who did not get in with their first request
	GaveUp       int `json:"gave_up"`
	TurnedAway   int `json:"turned_away"`    // by a room that rejects
	WaitingAtEnd int `json:"waiting_at_end"` // or had never had an answer by then

	Unanswered   int `json:"unanswered"`    // those that no node answered
	PlacesLost   int `json:"places_lost"`   // had to begin at the back though they kept asking
	SessionsLost int `json:"sessions_lost"` // were put out though they kept asking
	Requeued     int `json:"requeued"`      // queued again because their session was over
	Reanchored   int `json:"reanchored"`    // sessions that went on at another node's ticket
	Doubled      int `json:"doubled"`       // tickets given for a place that had one: a crash between, or two nodes asked
	PeakActive   int `json:"peak_active"`
	PeakMinute   int `json:"peak_new_users_60s"`

	Borrowed     int `json:"borrowed"`      // sessions that went on without a right; escrow with on-partition open
	Writes       int `json:"writes"`        // batches that nodes had written
	WritesFailed int `json:"writes_failed"` // of them, as disks said

	MessagesRefused int `json:"messages_refused"` // that a node could make no sense of
	MessagesLost    int `json:"messages_lost"`    // in the network, and by nodes that were down or paused

	Simulated float64 `json:"simulated_s"` // time that was simulated
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
