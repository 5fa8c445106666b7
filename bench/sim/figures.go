package sim

import (
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ropeline/ropeline/bench/order"
)

// wait is how long one visitor has waited who was let in.
type wait struct {
	came, in int64
	queued   bool
}

// estimateUnit is how many parts of a minute errors of estimates are kept in.
const estimateUnit = 1000

func newEstimates() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(maxLength/time.Minute)*estimateUnit, 3)
}

func sortTimes(times []int64) { slices.Sort(times) }

// result sums the run up.
func (s *sim) result() *Result {
	r := &Result{
		Seed: s.cfg.Seed, Sites: s.cfg.Sites, Nodes: s.cfg.Nodes,
		Policy: string(s.cfg.Room.Policy), Method: string(s.cfg.Room.QueueingMethod),
		Figures: s.f, Violations: append([]Violation{}, s.violations...), // lists are never null in JSON
		Series: append([]Point{}, s.series...), Faults: append([]Fault{}, s.cfg.Faults...),
	}
	s.sumOracle(&r.Figures)
	s.sumTraffic(&r.Figures)
	f := &r.Figures
	f.Visitors, f.WaitingAtEnd = s.people.come, s.oracle.waiting+s.people.asking()
	f.MessagesRefused, f.MessagesLost = s.refusedMessages, s.network.lost
	f.Ended = seconds(max(0, s.through))
	f.MovedPerMin = s.rights.movedPer(time.Duration(max(0, s.through)))
	f.OrderError = s.orderError()
	f.EstimateP50 = round(float64(s.estimates.ValueAtPercentile(50))/estimateUnit, 3)
	f.EstimateP90 = round(float64(s.estimates.ValueAtPercentile(90))/estimateUnit, 3)
	sumWaits(f, s.waits)
	r.Waits = byArrival(s.waits)
	return r
}

func (s *sim) sumOracle(f *Figures) {
	o := s.oracle
	f.OvershootPct, f.OvershootRatePct = round(100*s.over.active, 4), round(100*s.over.minute, 4)
	f.OverMintedPct, f.OverMintedRatePct = round(100*s.over.mintedActive, 4), round(100*s.over.mintedMinute, 4)
	f.EarlyQueuedPct = round(100*share(float64(o.early), float64(o.arrivals)), 4)
	f.IdlePct = round(100*share(o.idle, o.queued), 4)
	f.PeakActive, f.PeakWaiting, f.PeakMinute = o.peakActive, o.peakWaiting, o.peakMinute
}

// share returns part of whole; nothing of nothing is nothing.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// round keeps figures readable.
func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(x*p) / p
}

func (s *sim) sumTraffic(f *Figures) {
	end := s.through
	if end < 0 {
		end = s.now
	}
	span := seconds(max(1, end))
	rate := func(messages, bytes int64, nodes int) Traffic {
		per := span * float64(nodes)
		return Traffic{round(float64(messages)/per, 3), round(float64(bytes)/per, 1)}
	}
	var sum, worst traffic
	for _, m := range s.machines {
		t := m.sent
		sum.nearMessages += t.nearMessages
		sum.nearBytes += t.nearBytes
		sum.farMessages += t.farMessages
		sum.farBytes += t.farBytes
		if t.nearBytes+t.farBytes > worst.nearBytes+worst.farBytes {
			worst = t
		}
	}
	n := len(s.machines)
	f.Near, f.Far = rate(sum.nearMessages, sum.nearBytes, n), rate(sum.farMessages, sum.farBytes, n)
	f.NearWorst, f.FarWorst = rate(worst.nearMessages, worst.nearBytes, 1), rate(worst.farMessages, worst.farBytes, 1)
}

func (s *sim) orderError() float64 {
	var ranks []order.Rank
	for _, w := range s.waits {
		if w.queued {
			ranks = append(ranks, order.Rank{First: s.oracle.rank(w.came), Second: w.in})
		}
	}
	return round(order.Error(ranks), 6)
}

// waitUnit is the step in which percentiles of waits are kept.
const waitUnit = time.Millisecond

func sumWaits(f *Figures, waits []wait) {
	h := hdrhistogram.New(1, int64(2*maxLength/waitUnit), 3)
	most := int64(0)
	for _, w := range waits {
		h.RecordValue((w.in - w.came) / int64(waitUnit))
		most = max(most, w.in-w.came)
	}
	at := func(q float64) float64 { return round(float64(h.ValueAtPercentile(q))*waitUnit.Seconds(), 3) }
	f.WaitP50, f.WaitP90, f.WaitP99, f.WaitMax = at(50), at(90), at(99), round(seconds(most), 3)
}

// waitSteps is how many steps the longest wait is cut into at most.
const waitSteps = 60

// byArrival sorts waits by the minute of arrival.
func byArrival(waits []wait) Waits {
	w := Waits{Step: waitStep(waits), Rows: []WaitRow{}}
	if len(waits) == 0 {
		return w
	}
	last := int64(0)
	for _, v := range waits {
		last = max(last, v.came)
	}
	w.Rows = make([]WaitRow, last/int64(WaitEvery)+1)
	for i := range w.Rows {
		w.Rows[i].Counts = []int{}
	}
	sums := make([]moments, len(w.Rows))
	var line moments
	for _, v := range waits {
		came, long := float64(v.came)/float64(minute), seconds(v.in-v.came)
		i := v.came / int64(WaitEvery)
		sums[i].add(came, long)
		line.add(came, long)
		row := &w.Rows[i]
		row.Visitors++
		step := int(long / w.Step)
		for len(row.Counts) <= step {
			row.Counts = append(row.Counts, 0)
		}
		row.Counts[step]++
	}
	within := 0.0
	for i := range sums {
		w.Rows[i].Mean, w.Rows[i].Spread = round(sums[i].y.mean, 3), round(sums[i].y.deviation(), 3)
		within += sums[i].y.deviation() * sums[i].y.n
	}
	w.Correlation = round(line.correlation(), 4)
	w.R2 = round(line.correlation()*line.correlation(), 4)
	w.Slope = round(line.slope(), 3)
	w.Within = round(within/float64(len(waits)), 3)
	return w
}

// waitStep returns the smallest handy step that cuts the longest wait into no
// more than waitSteps.
func waitStep(waits []wait) float64 {
	longest := 0.0
	for _, w := range waits {
		longest = max(longest, seconds(w.in-w.came))
	}
	for _, step := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800} {
		if longest/step < waitSteps {
			return step
		}
	}
	return math.Ceil(longest / waitSteps)
}

// spread follows mean and variance, value by value (Welford), without the loss of
// digits that sums of squares have.
type spread struct{ n, mean, square float64 }

func (s *spread) add(x float64) (before, after float64) {
	s.n++
	before = x - s.mean
	s.mean += before / s.n
	after = x - s.mean
	s.square += before * after
	return before, after
}

func (s *spread) deviation() float64 { return math.Sqrt(share(s.square, s.n)) }

// moments follow two values and how they go together.
type moments struct {
	x, y  spread
	joint float64
}

func (m *moments) add(x, y float64) {
	before, _ := m.x.add(x)
	_, after := m.y.add(y)
	m.joint += before * after
}

func (m *moments) correlation() float64 { return share(m.joint, math.Sqrt(m.x.square*m.y.square)) }

// slope is that of the line with the least squares.
func (m *moments) slope() float64 { return share(m.joint, m.x.square) }

// speed says how fast the run was.
func speed(s *sim, wall time.Duration) *Speed {
	w := max(wall.Seconds(), 1e-9)
	return &Speed{
		Wall: w, Virtual: seconds(s.now + int64(warmUp)), Events: s.events,
		Visitors: float64(s.people.come) / w, EventsPS: float64(s.events) / w,
	}
}
