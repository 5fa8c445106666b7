package load

import "time"

// Report is what a run came to. Its JSON form is one object with these keys.
type Report struct {
	// Visitors came; Admitted of them were let in at least once, and Waiting
	// still stood in the queue when the run ended.
	Visitors int `json:"visitors"`
	Admitted int `json:"admitted"`
	Waiting  int `json:"waiting"`
	// Requests were sent, every try counted; Errors of them brought no answer,
	// or one that decides nothing (a server error, a refused request).
	Requests int `json:"requests"`
	Errors   int `json:"errors"`
	// DecisionsPerSecond is the rate of the answers that were no errors.
	DecisionsPerSecond float64 `json:"decisions_per_second"`
	// Latency is counted from the moment at which a request was due to the
	// last byte of its answer, tries that failed and the way to another target
	// included.
	Latency Latency `json:"latency_ms"`
	// PeakActive is the most visitors who were on the site at one time. A
	// visitor is there from the moment at which the first answer of the site
	// was complete, until one session after the last request that the site
	// answered was sent. Whatever the room counts cannot be less, so that a
	// PeakActive above the limit proves that the limit was passed.
	PeakActive int `json:"peak_active"`
	// OrderError is the normalized Kendall tau distance between arrival and
	// first admission: the share of all pairs of visitors who were let in the
	// wrong way round. Who still waits comes after everybody who was let in;
	// who left without being let in is not counted.
	OrderError float64 `json:"order_error"`

	// Waited is how many visitors stood in the queue at least once, and
	// PeakWaiting how many did at one time.
	Waited      int `json:"waited"`
	PeakWaiting int `json:"peak_waiting"`
	// GaveUp is how many left without ever being let in: nothing answered, or
	// they waited longer than they liked.
	GaveUp int `json:"gave_up"`
	// PlacesLost counts the answers that told a waiting visitor a later arrival
	// than the answer before. Rooms tell it in JSON only.
	PlacesLost int `json:"places_lost"`
	// SessionsLost counts the answers that sent an admitted visitor into the
	// queue although the session could not be over.
	SessionsLost int `json:"sessions_lost"`
	// Status counts answers by class: "2xx", "5xx", "other".
	Status map[string]int `json:"status"`
	// ElapsedSeconds is how long the run took.
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	// Seed is the one that makes the same arrivals again.
	Seed uint64 `json:"seed"`

	lastError error
}

// LastError returns why the last try without an answer failed, nil if every
// request was answered.
func (r Report) LastError() error { return r.lastError }

// Latency holds percentiles in milliseconds.
type Latency struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
}

// Snapshot is the state of a run at one moment. The counts mean what those of
// Report mean.
type Snapshot struct {
	Elapsed  time.Duration
	Visitors int // who came so far
	Gone     int // of them, who have left again
	Admitted int
	Waiting  int // right now
	Requests int
	Errors   int
	// Expected is how many visitors will come in all, 0 if that is not known.
	Expected int
}
