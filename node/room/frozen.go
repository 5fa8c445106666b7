package room

import (
	"cmp"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// whole is a share of everything. Shares are whole numbers of it, so that two
// nodes on two kinds of machine come to the same.
const whole = 1 << 40

// stake is a stretch of the line from 0 to whole along which a room is divided.
type stake struct {
	site     string
	from, to uint64
}

// Frozen says how a room is divided while sites are silent: each of them keeps
// the share that it had when everybody was last in touch, and the others divide
// the rest. The zero value: no site is silent. It is never changed once made.
type Frozen struct {
	line  []stake  // of silent sites, along the line; a site may have several
	sites []string // that are silent, sorted; a share may be none

	// doubt lists sites of which fewer nodes are in sight than when they were last
	// heard from, before it is clear whether they have fallen silent.
	doubt []doubt

	promises []promise // of those of sites of which a promise is known
	back     []returned
	base     int64     // an old base that still holds besides the new ones; 0: none does
	baseEnds time.Time // until when
}

// settles is for how long after a silence both what held during it and what holds
// afterwards bind a node. Sites notice that others have fallen silent, or are back, at
// moments that are up to a tick and the news of it apart; as long as that, one side goes by
// the one and one by the other, and what both allow would be more than there is.
const settles = crdt.TickSpan + 3*time.Second

// promise is what a site that has fallen silent may have taken before anybody noticed:
// what it had, and its part of what there was. The line may say less.
type promise struct {
	site         string
	active, rate int
}

// returned is a site that is heard again after it was silent.
type returned struct {
	promise // zero but for the name: none is known
	line    []stake
	until   time.Time
}

// isBack reports whether a site is heard again, but may not have heard of us yet.
func (f Frozen) isBack(site string) bool {
	return slices.ContainsFunc(f.back, func(r returned) bool { return r.site == site })
}

// limits are two numbers of visitors, for the two limits of a room.
type limits struct{ active, rate int }

// keptFor returns what is kept for those who are silent, or also for those who are back.
func (f Frozen) keptFor(active, rate int, back bool) limits {
	kept, promised := limits{f.kept(active), f.kept(rate)}, limits{}
	for _, p := range f.promises {
		promised = limits{promised.active + p.active, promised.rate + p.rate}
	}
	for _, r := range f.back {
		if back {
			line := Frozen{line: r.line}
			kept = limits{kept.active + line.kept(active), kept.rate + line.kept(rate)}
			promised = limits{promised.active + r.active, promised.rate + r.rate}
		}
	}
	return limits{max(kept.active, promised.active), max(kept.rate, promised.rate)}
}

// doubt is how many nodes a site may still have.
type doubt struct {
	site  string
	nodes int
}

// nodes returns how many nodes to reckon with at a site of which so many are in
// sight. Membership notices within seconds that a site is out of reach, and the
// site notices the same of us; if each side counted itself as the whole from then
// on until shares are frozen, both would give away what no traffic claims.
func (f Frozen) nodes(site string, inSight int) int {
	for _, d := range f.doubt {
		if d.site == site {
			return max(d.nodes, inSight)
		}
	}
	return inSight
}

// Any reports whether any site is silent.
func (f Frozen) Any() bool { return len(f.sites) > 0 }

// Has reports whether the share of a site is frozen.
func (f Frozen) Has(site string) bool {
	_, ok := slices.BinarySearch(f.sites, site)
	return ok
}

// kept returns how much of limit belongs to those who are silent. Where the line
// is cut between two sites is the same on both sides of a partition, so what one
// keeps for the other and what that one uses add up to limit:
//
//	0 ── a ──┬──── b ────┬─ c ─┬──── a ──── whole     stakes
//	     1   ╵ 2   3   4 ╵     ╵ 5   6  7             limit: 7 of them
//
// One who is cut off later divides what was left then, and no stake of others is
// moved by that.
func (f Frozen) kept(limit int) int {
	kept := 0
	for _, s := range f.line {
		kept += part(limit, s.to) - part(limit, s.from)
	}
	return kept
}

// with returns f and the stakes of those of shares who are silent. All shares are
// laid out side by side in what the stakes of f leave free of the line.
func (f Frozen) with(shares []siteShare) Frozen {
	out := Frozen{line: slices.Clone(f.line), sites: slices.Clone(f.sites)}
	var at uint64 // where the next share begins
	next := 0     // index of the next stake in f.line
	for _, s := range shares {
		if s.silent {
			out.sites = append(out.sites, s.site)
		}
		for left := s.share; left > 0; {
			for next < len(f.line) && f.line[next].from == at {
				at = f.line[next].to
				next++
			}
			end := at + left
			if next < len(f.line) {
				end = min(end, f.line[next].from)
			}
			if s.silent {
				out.line = append(out.line, stake{s.site, at, end})
			}
			left -= end - at
			at = end
		}
	}
	slices.SortFunc(out.line, func(a, b stake) int { return cmp.Compare(a.from, b.from) })
	slices.Sort(out.sites)
	return out
}

// only returns f without the sites for which keep reports false.
func (f Frozen) only(keep func(site string) bool) Frozen {
	gone := func(site string) bool { return !keep(site) }
	return Frozen{
		line:  slices.DeleteFunc(slices.Clone(f.line), func(s stake) bool { return gone(s.site) }),
		sites: slices.DeleteFunc(slices.Clone(f.sites), gone),
	}
}

// siteShare is what one site has of the part of a room that is divided anew.
type siteShare struct {
	site   string
	share  uint64 // of whole
	silent bool
}
