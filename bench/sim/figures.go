package sim

import (
	"maps"
	"math"
	"slices"

	"github.com/ropeline/ropeline/bench/order"
)

// wait is how long one visitor has waited who was let in.
type wait struct {
	came, in int64
	queued   bool
}

func sortTimes(times []int64) { slices.Sort(times) }

// result sums the run up.
func (s *sim) result() *Result {
	r := &Result{Figures: s.f, Violations: append([]Violation{}, s.violations...)} // lists are never null in JSON
	f, o := &r.Figures, s.oracle
	f.OvershootPct, f.OvershootRatePct = round(100*s.over.active, 4), round(100*s.over.minute, 4)
	f.EarlyQueuedPct = round(100*share(float64(o.early), float64(o.arrivals)), 4)
	f.IdlePct = round(100*share(o.idle, o.queued), 4)
	f.PeakActive, f.PeakMinute = o.peakActive, o.peakMinute
	f.Visitors, f.WaitingAtEnd = s.people.come, o.waiting+s.people.asking()
	f.MessagesLost, f.Simulated = s.network.lost, round(seconds(s.now+int64(warmUp)), 3)
	s.sumTraffic(f)
	f.OrderError = s.orderError()
	slices.Sort(s.estimates)
	f.EstimateP50, f.EstimateP90 = round(quantile(s.estimates, 0.5), 3), round(quantile(s.estimates, 0.9), 3)
	f.sumWaits(s.waits)
	return r
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
	f.FarWorst = rate(worst.farMessages, worst.farBytes, 1)
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

// sumWaits says how long those waited who were let in.
func (f *Figures) sumWaits(waits []wait) {
	var came, waited []float64
	inMinute := map[int64][]float64{}
	for _, w := range waits {
		came, waited = append(came, seconds(w.came)), append(waited, seconds(w.in-w.came))
		inMinute[w.came/minute] = append(inMinute[w.came/minute], seconds(w.in-w.came))
	}
	c := share(covariance(came, waited), math.Sqrt(covariance(came, came)*covariance(waited, waited)))
	f.WaitCorrelation, f.WaitR2 = round(c, 4), round(c*c, 4)
	for _, at := range slices.Sorted(maps.Keys(inMinute)) {
		of := inMinute[at]
		f.WaitSpread += math.Sqrt(covariance(of, of)) * float64(len(of)) / float64(len(waited))
	}
	f.WaitSpread = round(f.WaitSpread, 3)
	slices.Sort(waited)
	f.WaitP50, f.WaitP90, f.WaitP99 = round(quantile(waited, 0.5), 3), round(quantile(waited, 0.9), 3), round(quantile(waited, 0.99), 3)
	f.WaitMax = round(quantile(waited, 1), 3)
}

// quantile returns the least value that is not below a part q of all, which are in order.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// covariance returns how two values, of which there are as many, go together; that of
// values with themselves is their variance.
func covariance(x, y []float64) (sum float64) {
	mx, my := mean(x), mean(y)
	for i := range x {
		sum += float64((x[i]-mx)*(y[i]-my)) / float64(len(x)) // never fused, which some machines do
	}
	return sum
}

func mean(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
