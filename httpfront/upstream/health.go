package upstream

import "time"

// health is what is known of one origin from the requests that it was sent and
// from checks. The zero value is an origin of which nothing bad is known.
//
// An origin is out from some failures in a row until something succeeds:
//
//	in ──failures──▶ ejected ──time──▶ on trial: one request ──success──▶ in
//	                    ▲                        │
//	                    └──── twice as long ─────┘
//
// That one request decides, as in nginx (commit "Upstream: smooth weighted
// round-robin balancing", 2012), keeps a dead origin from costing many visitors
// a timeout each time that its ejection ends.
//
// An answer with a status from 500 on is no success, and no failure either: a path may have it of every site, and
// whoever knows one could take the origin out. It raises a doubt, as a failure does, and a request that waits long for its
// answer, which probes settle. Not those of an origin where probes go badly whatever it does, as where HEAD / is an error:
// whether it is one is found out when some requests have gone well, and when one does though the probes before it did not. Until
// then a request that waits says nothing either: the whole site may be slow.
type health struct {
	failures int           // requests in a row that it did not answer
	ejection time.Duration // how long the last one was, or is; 0: there was none
	until    time.Time     // end of the ejection; zero: it is not ejected
	trying   bool          // a request is finding out whether it is back

	down           bool // by checks
	passed, failed int  // checks in a row

	served  int  // requests that have gone well, up to enough
	doubted bool // a request went badly, and nothing has gone well since
	untried bool // whether probes go well where requests do is to be found out
	probes  worth
	bad     int // probes in a row that went badly

	since time.Time // when it came in again; zero: it has never been out
}

// badProbes is how many probes in a row have to go badly until a doubt takes an origin out, and until they say nothing. An
// origin that fails half of the time is only seen to do so.
const badProbes = 10

// enough requests have to go well until it is found out whether probes do: a site of few visitors is asked for nothing besides.
const enough = 16

// worth is what probes of an origin say.
type worth int

const (
	unknown worth = iota
	telling
	mute // they go badly whatever it does
)

// change is what an observation has made of an origin.
type change int

const (
	stays change = iota
	goesOut
	comesIn
)

// isOut reports whether the origin is to be left alone, a trial aside.
func (h *health) isOut() bool { return h.down || !h.until.IsZero() }

// isDue reports whether an ejected origin may be tried.
func (h *health) isDue(now time.Time) bool {
	return !h.down && !h.until.IsZero() && !now.Before(h.until)
}

// isEligible reports whether a request may go to the origin.
func (h *health) isEligible(now time.Time) bool { return !h.isOut() || h.isDue(now) }

// try is called when an origin that is due gets a request. No other one follows
// until it is known what became of it, or for as long as the ejection was.
func (h *health) try(now time.Time) {
	h.trying = true
	h.until = now.Add(h.ejection)
}

// succeed takes note of an answer with a status below 500.
func (h *health) succeed(now time.Time) change {
	if h.doubted {
		h.doubted, h.bad = false, 0
	}
	h.failures = 0
	if h.served < enough {
		h.served++
		h.untried = h.untried || h.served == enough && h.probes != telling
	}
	h.untried = h.untried || !h.until.IsZero()
	if h.until.IsZero() {
		return stays
	}
	return h.allow(now)
}

// isProbed reports whether the origin, which is in, is to be probed.
func (h *health) isProbed() bool { return !h.isOut() && (h.doubted || h.untried) }

// doubt begins a doubt.
func (h *health) doubt() {
	if h.until.IsZero() && !h.doubted {
		h.doubted, h.bad = true, 0
	}
}

// allow ends an ejection.
func (h *health) allow(now time.Time) change {
	h.until, h.trying, h.failures, h.doubted = time.Time{}, false, 0, false
	if h.down {
		return stays
	}
	h.since = now
	return comesIn
}

// fail takes note of a request that the origin did not answer. While the origin
// is out only a trial counts: other requests began before, or were sent because
// there was nowhere else to send them, and say nothing new.
func (h *health) fail(p *Passive, now time.Time) change {
	switch {
	case h.trying:
		h.eject(p, now, 2*h.ejection)
		return stays
	case !h.until.IsZero():
		return stays
	}
	h.doubt()
	if h.failures++; h.failures < p.Failures {
		return stays
	}
	return h.goOut(p, now)
}

// err takes note of an answer with a status from 500 on.
func (h *health) err(p *Passive, now time.Time) change {
	h.failures = 0
	h.doubt()
	if h.trying {
		h.eject(p, now, 2*h.ejection)
	}
	return stays
}

// wait takes note of a request that the origin has not answered for long. That may be as it should, and come again and again:
// probes that say nothing would be for nothing.
func (h *health) wait(time.Time) change {
	if h.probes == telling {
		h.doubt()
	}
	return stays
}

// What a probe comes to that went badly, out of badProbes: one without an answer takes probeTimeout, so two of them do.
const (
	aBadProbe  = 1
	aLostProbe = badProbes / 2
)

// probe takes note of a probe that went well, which is 0, or badly. What it says counts only where requests go badly, or none
// come.
func (h *health) probe(p *Passive, bad int, now time.Time) change {
	if bad == 0 {
		h.doubted, h.untried, h.probes, h.bad = false, false, telling, 0
		if h.until.IsZero() {
			return stays
		}
		return h.allow(now)
	}
	if !h.isProbed() {
		return stays
	}
	if h.bad += bad; h.bad < badProbes && (h.doubted || bad < aLostProbe) { // where requests go well, one that is lost is enough
		return stays
	}
	h.bad = 0
	switch {
	case h.doubted && h.probes != mute:
		return h.goOut(p, now)
	case h.doubted:
		h.doubted = false // until the next request goes badly
	default:
		h.untried, h.probes = false, mute
	}
	return stays
}

func (h *health) goOut(p *Passive, now time.Time) change {
	wasOut := h.isOut()
	next := p.Ejection
	if h.ejection > 0 && now.Sub(h.since) < h.ejection {
		next = 2 * h.ejection // it did not last: the origin is not well yet
	}
	h.eject(p, now, next)
	if wasOut {
		return stays
	}
	return goesOut
}

func (h *health) eject(p *Passive, now time.Time, d time.Duration) {
	h.ejection = min(d, p.EjectionMax)
	h.until = now.Add(h.ejection)
	h.trying, h.failures, h.passed, h.bad = false, 0, 0, 0
}

// check takes note of a check. As many good ones in a row as bring an origin
// that is down up again also end an ejection, as Envoy's
// successful_active_health_check_uneject_host does by default.
func (h *health) check(c *Check, ok bool, now time.Time) change {
	wasOut := h.isOut()
	if !ok {
		h.passed = 0
		if h.failed++; h.failed < c.Unhealthy || h.down {
			return stays
		}
		h.down = true
		if wasOut {
			return stays
		}
		return goesOut
	}
	h.failed = 0
	if h.passed++; h.passed < c.Healthy || !wasOut {
		return stays
	}
	h.down = false
	return h.allow(now)
}
