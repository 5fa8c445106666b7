package ticket

import (
	"fmt"

	"github.com/ropeline/ropeline/crdt"
)

// truth is what an oracle knows of a run, and what it found wrong.
type truth struct {
	active   map[int]int64 // session → until when
	admitted []int64
	tickets  map[Ticket]bool
	minted   map[crdt.NodeID]Amount // by nodes that are no more
	most     Amount                 // the highest limits ever
	force    []inForce              // in the last 62 s, oldest first
	looked   int                    // Admitted, when it was looked last

	Over     string // more active than minted
	Limit    string // let in beyond every limit in force
	Rate     string // more in 60 s than minted
	Twice    string // a ticket
	Supply   string // more minted than any limit
	Rights   string // lost or gained, once all is well
	Stuck    string // waited for ever
	Admitted int
	used     float64 // of the supply while somebody waits and all is well
	usedN    float64
}

// inForce is the greatest limit that an operator had set at any running machine, or that
// had reached it, at one moment.
type inForce struct {
	at    int64
	limit Amount
}

// limitInForce notes the greatest limit in force now, and returns the greatest of a span
// before and two seconds more: so long may news of a lower one take.
func (t *truth) limitInForce(w *world) (places, rate int64) {
	is := inForce{at: w.now}
	for _, m := range w.machines {
		if m.up {
			is.limit = is.limit.Max(m.facts.limits.Amount)
		}
	}
	t.force = append(t.force, is)
	for t.force[0].at < w.now-62_000 {
		t.force = t.force[1:]
	}
	for _, x := range t.force {
		rate = max(rate, x.limit.Rate)
		if x.at >= w.now-2000-worldStep {
			places = max(places, x.limit.Places)
		}
	}
	return places, rate
}

func newTruth(w *world) truth {
	return truth{active: map[int]int64{}, tickets: map[Ticket]bool{}, minted: map[crdt.NodeID]Amount{}}
}

func (t *truth) wrong() bool { return t.what() != "" }

// what returns the first thing that was wrong.
func (t *truth) what() string {
	for _, s := range []string{t.Over, t.Limit, t.Rate, t.Twice, t.Supply, t.Rights, t.Stuck} {
		if s != "" {
			return s
		}
	}
	return ""
}

// kind returns a word for what was wrong.
func (t *truth) kind() string {
	switch {
	case t.Over != "":
		return "over_limit"
	case t.Limit != "":
		return "let_in_over_limit"
	case t.Rate != "":
		return "over_rate"
	case t.Twice != "":
		return "ticket_twice"
	case t.Supply != "":
		return "minted_too_much"
	case t.Rights != "":
		return "rights_lost_or_gained"
	case t.Stuck != "":
		return "stuck"
	}
	return ""
}

func say(field *string, format string, args ...any) {
	if *field == "" {
		*field = fmt.Sprintf(format, args...)
	}
}

// checkedIn says that a visitor's lease goes on from a moment.
func (t *truth) checkedIn(session int, at int64) {
	t.active[session] = max(t.active[session], at+worldSession.Milliseconds())
}

// passed says that a visitor was let pass.
func (t *truth) passed(session int, now int64) {
	t.active[session] = max(t.active[session], now+1)
}

// settled says that what a dead node minted counts as said from now on: what it
// minted unknown to all is gone, or counted anew by who found it.
func (t *truth) settled(x Recovery) { t.minted[x.Dead] = x.Minted }

func (t *truth) ticket(x Ticket, now int64) {
	if t.tickets[x] {
		say(&t.Twice, "at %d: ticket %v twice", now, x)
	}
	t.tickets[x] = true
}

func (t *truth) admit(now int64) {
	t.Admitted++
	t.admitted = append(t.admitted, now)
}

// supply returns what is minted at most.
func (w *world) supply() (sum Amount) {
	for _, a := range w.truth.minted {
		sum = sum.Add(a)
	}
	for _, m := range w.machines {
		if m.up {
			sum = sum.Add(m.rights.Minted())
		} else {
			sum = sum.Add(m.disk.minted)
		}
	}
	return sum
}

// look compares what is with what may be.
func (t *truth) look(w *world) {
	supply := w.supply()
	n := int64(0)
	for s, until := range t.active {
		switch {
		case until <= w.now:
			if until < w.now-60_000 {
				delete(t.active, s)
			}
		default:
			n++
		}
	}
	places, rate := t.limitInForce(w)
	if t.Admitted > t.looked && n > places {
		say(&t.Limit, "at %d: %d active after somebody was let in, the limit is %d", w.now, n, places)
	}
	t.looked = t.Admitted
	if n > supply.Places {
		say(&t.Over, "at %d: %d active, %d minted", w.now, n, supply.Places)
	}
	for len(t.admitted) > 0 && t.admitted[0] <= w.now-60_000 {
		t.admitted = t.admitted[1:]
	}
	if n := int64(len(t.admitted)); n > supply.Rate {
		say(&t.Rate, "at %d: %d in 60 s, %d minted", w.now, n, supply.Rate)
	}
	if n := int64(len(t.admitted)); n > rate {
		say(&t.Limit, "at %d: %d let in within 60 s, the limit is %d", w.now, n, rate)
	}
	if supply.Max(t.most) != t.most {
		say(&t.Supply, "at %d: minted %v, the highest limit was %v", w.now, supply, t.most)
	}
	if w.now > worldHealed+20_000 && w.now < worldHome && w.waiting() > 0 {
		t.usedN++
		t.used += float64(n) / float64(max(1, supply.Places))
	}
	if w.now == worldHome-worldStep && w.opt.Light {
		for i, v := range w.visitors {
			if v.state == isWaiting && v.since < worldHome-15_000 {
				say(&t.Stuck, "visitor %d waits since %d", i, v.since)
			}
		}
	}
}

// end looks once everything must be free again.
func (t *truth) end(w *world) {
	if t.wrong() {
		return
	}
	var held, free Amount
	var limit limitFact
	for _, m := range w.machines {
		if !m.up {
			say(&t.Rights, "machine %v is down at the end", m)
			return
		}
		m.rights.Expire(w.clock(m))
		held = held.Add(m.rights.Held())
		free = free.Add(m.rights.physical(w.clock(m)))
		if limit.older(m.facts.limits) {
			limit = m.facts.limits
		}
	}
	if want := w.supply(); held != want || free != want {
		say(&t.Rights, "minted %v, held %v, free %v", want, held, free)
	} else if want != limit.Amount {
		say(&t.Rights, "minted %v, the limit is %v", want, limit.Amount)
	}
}

func (w *world) waiting() (n int) {
	for _, v := range w.visitors {
		if v.state == isWaiting {
			n++
		}
	}
	return n
}
