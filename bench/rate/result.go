package rate

import "time"

// Values of [Result.Model].
const (
	Open   = "open"
	Closed = "closed"
)

// Result is what came of the requests that count: those that were due (in the closed model: sent) in the
// measured time, without what came before for warming up. Its JSON form is one object with these keys.
//
// Due is Answered and all Errors together.
type Result struct {
	// Model is Open or Closed. In the open one Latency has the time in it that a stalled server made other requests wait;
	// in the closed one, a server that stalls is asked less often meanwhile, and looks better than it was.
	Model string `json:"model"`
	// RateWanted is Config.Rate: requests per second, 0 in the closed model.
	RateWanted float64 `json:"rate_wanted"`
	// Seconds is the measured time.
	Seconds float64 `json:"seconds"`
	// Due requests should have been sent, Sent were, Answered got a whole answer, whatever its status.
	Due      int64 `json:"due"`
	Sent     int64 `json:"sent"`
	Answered int64 `json:"answered"`
	// Status counts answers by status code.
	Status map[int]int64 `json:"status"`
	// Errors counts requests without an answer by what went wrong.
	Errors map[ErrorKind]int64 `json:"errors"`
	// Rate is how many whole answers came per second of the measured time. Where the server falls behind
	// it is below RateWanted, and the difference waits in line.
	Rate float64 `json:"rate"`
	// Latency runs to the last byte of the answer: in the open model from when the request was due, in the
	// closed one from when it was sent. A request that was given up, since the run was over, is in it with the time
	// until then, which its answer would have exceeded; the other errors are not.
	Latency Latency `json:"latency_us"`
	// CPUShare is the generator's own processor time, of the thread that sends and receives, through the
	// time that passed; 1 is a whole CPU. The nearer to that, the more of the other figures are its own.
	CPUShare float64 `json:"cpu_share"`
	// CPUWaited is the part of the time in which the generator was ready to run and something else had its
	// CPU. 0 where the kernel does not say.
	CPUWaited float64 `json:"cpu_waited"`
	// Late is how late requests were sent by the generator's own fault: after they were due, or, if all
	// connections were busy then, after one was free. 0 in the closed model, where nothing is due.
	// What the generator does not notice is not in it: answers that have come and were not read yet.
	Late Lateness `json:"late_us"`
	// LastError tells of the last error in words. Empty: there was none.
	LastError string `json:"last_error,omitempty"`
}

// Latency holds microseconds. Percentiles have three digits.
type Latency struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Lateness holds microseconds, as [Latency] does.
type Lateness struct {
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// ErrorKind is what became of a request that was not answered.
type ErrorKind string

// Kinds of errors.
const (
	// ErrClosed: the server ended the connection before the answer was complete.
	ErrClosed ErrorKind = "closed"
	// ErrReset: the connection broke.
	ErrReset ErrorKind = "reset"
	// ErrMalformed: what came was no answer of HTTP/1.1, or more than one.
	ErrMalformed ErrorKind = "malformed"
	// ErrUnsent: it still waited in line when the run was over.
	ErrUnsent ErrorKind = "unsent"
	// ErrUnanswered: it was sent, and had no answer when the run was over.
	ErrUnanswered ErrorKind = "unanswered"
)

// Failed returns how many requests got no answer.
func (r Result) Failed() int64 { return r.Due - r.Answered }

// spent is what the generator has used of the processors in some time that passed.
type spent struct {
	wall, thread, waited time.Duration
}

// share fills in what the generator has used.
func (r *Result) share(s spent) {
	if s.wall <= 0 {
		return
	}
	of := func(d time.Duration) float64 { return rounded(float64(d)/float64(s.wall), 1e4) }
	r.CPUShare, r.CPUWaited = of(s.thread), of(s.waited)
}
