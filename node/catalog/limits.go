package catalog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// RateLimit is a rate limit rule as operators have set it. Rules are of the whole mesh.
type RateLimit struct {
	Version  int // from 1 on; one more with each change
	Created  time.Time
	Modified time.Time // read only
	limit.Rule

	// Incomplete says that its content has not arrived as a whole. Read only.
	Incomplete bool

	thing
	content textRef // of the content
}

// Clone returns a copy that shares nothing with l that can be changed.
func (l RateLimit) Clone() RateLimit {
	l.Rule = l.Rule.Clone()
	return l
}

type limitAnswer struct {
	StatusCode  *int     `json:"status_code"`
	ContentType *string  `json:"content_type"`
	Content     *textRef `json:"content"`
}

// limited is at for what a rule goes by.
func limited[V any](name string, field func(*limit.Rule) *V) unit[RateLimit] {
	return at(name, func(l *RateLimit) *V { return field(&l.Rule) })
}

// What of rate limits merges by itself. The answer is one unit, since the content is of its type.
var limitUnits = units[RateLimit]{
	{unitMade, func(l *RateLimit) any { return &made{&l.Created, &l.thing.file} }, true, true},
	limited(unitName, func(r *limit.Rule) *string { return &r.Name }),
	limited("description", func(r *limit.Rule) *string { return &r.Description }),
	limited("disabled", func(r *limit.Rule) *bool { return &r.Disabled }),
	limited("expression", func(r *limit.Rule) *string { return &r.Expression }),
	limited("characteristics", func(r *limit.Rule) *some[string] { return (*some[string])(&r.Characteristics) }),
	limited("ipv4_prefix", func(r *limit.Rule) *int { return &r.IPv4Prefix }),
	limited("ipv6_prefix", func(r *limit.Rule) *int { return &r.IPv6Prefix }),
	limited("period_ns", func(r *limit.Rule) *time.Duration { return &r.Period }),
	limited("requests_per_period", func(r *limit.Rule) *int { return &r.RequestsPerPeriod }),
	limited("mitigation_timeout_ns", func(r *limit.Rule) *time.Duration { return &r.MitigationTimeout }),
	limited("counting_expression", func(r *limit.Rule) *string { return &r.CountingExpression }),
	limited("action", func(r *limit.Rule) *limit.Action { return &r.Action }),
	together("answer", func(l *RateLimit) *limitAnswer {
		return &limitAnswer{&l.Response.StatusCode, &l.Response.ContentType, &l.content}
	}),
	limited("scope", func(r *limit.Rule) *limit.Scope { return &r.Scope }),
	at("version", func(l *RateLimit) *int { return &l.Version }),
	at(unitRank, func(l *RateLimit) *int64 { return &l.thing.rank }),
}

var listedLimits = &listed[RateLimit]{
	us: limitUnits, fresh: func() RateLimit { return RateLimit{Rule: limit.Rule{}.WithDefaults()} },
	key: func(l *RateLimit) string { return limitKey(l.ID) }, at: func(l *RateLimit) *thing { return &l.thing },
	text: func(w *writer, was, is *RateLimit) {
		is.content = w.text(ofLimits, limitKey(is.ID), was.Response.Content, is.Response.Content, was.content)
	},
}

// readLimits returns the rate limits whose keys these are, in their order.
func (r *reader) readLimits(keys []string) (all []RateLimit) {
	l := listedLimits
	for key, names := range things(ofKind(keys, kindLimit), len(limitKey(limit.ID{}))) {
		f := take(r, key, names, l.us, l.fresh(), l.at)
		if !f.there {
			continue
		}
		is := &f.is
		is.ID, is.Modified = limit.ID(idOf(key)), f.modified
		is.Rule = is.Rule.WithDefaults()
		content, ok := r.text(is.content)
		is.Response.Content, is.Incomplete = content, !ok
		all = append(all, *is)
	}
	inOrder(all, l.at, func(l *RateLimit) time.Time { return l.Created }, l.key)
	return all
}

// RateLimits returns the rate limit rules in the order in which they are asked. They are a
// copy.
func (c *Catalog) RateLimits() []RateLimit {
	all := make([]RateLimit, len(c.limits))
	for i := range c.limits {
		all[i] = c.limits[i].Clone()
	}
	return all
}

// LimitWrites returns what is to be written for rate limit rules to become what is says
// where they were what was says, as Writes does for rooms.
func (c *Catalog) LimitWrites(was, is []RateLimit) []Write {
	w := &writer{by: c.by}
	l := listedLimits
	l.write(w, was, ranked(was, is, l.at, l.key))
	return w.all
}

// CheckLimits reports why the rate limit rules cannot become these; each part that is about
// a setting is a *room.FieldError whose field begins with rate-limits and the rule's place.
// check says what else is to hold of a rule, as the front sees it; nil: nothing.
func CheckLimits(all []RateLimit, check LimitCheck) error {
	check = check.Once()
	var errs []error
	if n := len(all); n > limit.MaxRules {
		errs = append(errs, &room.FieldError{Field: "rate-limits", Value: fmt.Sprint(n), Allowed: fmt.Sprintf("at most %d rules", limit.MaxRules)})
	}
	for i := range all {
		for _, e := range CheckLimit(all, i, check) {
			errs = append(errs, LimitError(i, e))
		}
	}
	return errors.Join(errs...)
}

// MaxLimitSteps is how many steps all rate limits may cost a request together.
const MaxLimitSteps = 2000

// LimitCheck says how many steps a rule costs a request, or what is wrong with it. Errors about several settings are joined.
type LimitCheck func(*limit.Rule) (steps int, err error)

// Once returns a check that looks at each rule once, for as long as none changes.
func (check LimitCheck) Once() LimitCheck {
	if check == nil {
		return nil
	}
	type result struct {
		steps int
		err   error
	}
	known := map[*limit.Rule]result{}
	return func(r *limit.Rule) (int, error) {
		is, ok := known[r]
		if !ok {
			is.steps, is.err = check(r)
			known[r] = is
		}
		return is.steps, is.err
	}
}

// tooManySteps is the error about a rule that costs too much beside others.
func tooManySteps(steps int) error {
	return &room.FieldError{Field: "expression", Problem: fmt.Sprintf(
		"with this one the rate limits may take %d steps for each byte of a request, mostly of their regular expressions with the repetitions written out; %d are allowed: repeat less, or have fewer rules that do",
		steps, MaxLimitSteps)}
}

// CheckLimit returns what of CheckLimits is about the rule at one place, by its own fields.
// Of several rules of one name all are told.
func CheckLimit(all []RateLimit, at int, check LimitCheck) []error {
	r := &all[at].Rule
	steps, errs := checkLimit(r, check)
	if steps > 0 {
		for i := range all {
			if i != at {
				n, _ := check(&all[i].Rule)
				steps += n
			}
		}
		if steps > MaxLimitSteps {
			errs = append(errs, tooManySteps(steps))
		}
	}
	for i := range all {
		if i != at && all[i].Name == r.Name {
			return append(errs, &room.FieldError{Field: "name", Value: r.Name, Allowed: "a name that no other rate limit has"})
		}
	}
	return errs
}

// LimitError returns a mistake in the rule at a place as one in the list.
func LimitError(i int, err error) error {
	e, ok := errors.AsType[*room.FieldError](err)
	if !ok {
		return fmt.Errorf("rate-limits[%d]: %w", i, err)
	}
	placed := *e
	placed.Field = fmt.Sprintf("rate-limits[%d].%s", i, e.Field)
	return &placed
}

func checkLimit(r *limit.Rule, check LimitCheck) (steps int, errs []error) {
	told := map[string]bool{}
	for _, e := range r.Validate() {
		told[e.Field] = true
		errs = append(errs, e)
	}
	if check == nil {
		return 0, errs
	}
	steps, err := check(r)
	var more []error
	switch err := err.(type) {
	case nil:
	case interface{ Unwrap() []error }:
		more = err.Unwrap()
	default:
		more = []error{err}
	}
	for _, err := range more {
		if e, ok := errors.AsType[*room.FieldError](err); !ok || !told[e.Field] {
			errs = append(errs, err)
		}
	}
	return steps, errs
}

// EffectiveLimits returns the rate limit rules that hold, in their order, and those that are
// left out because they do not: as Effective does for rooms. Of two of one name the older
// holds.
func (c *Catalog) EffectiveLimits(check LimitCheck) (all []limit.Rule, refused []Refusal) {
	steps := 0
	oldest := map[string]*RateLimit{}
	for i := range c.limits {
		l := &c.limits[i]
		if o := oldest[l.Name]; o == nil || l.Created.Before(o.Created) || l.Created.Equal(o.Created) && bytes.Compare(l.ID[:], o.ID[:]) < 0 {
			oldest[l.Name] = l
		}
	}
	for i := range c.limits {
		l := &c.limits[i]
		n, errs := checkLimit(&l.Rule, check)
		err := errors.Join(errs...)
		switch {
		case oldest[l.Name] != l:
			err = fmt.Errorf("an older rate limit is called %q, too; give one of them another name", l.Name)
		case err == nil && len(all) == limit.MaxRules:
			err = fmt.Errorf("there are %d rate limits before it, which is as many as there may be", limit.MaxRules)
		case err == nil && n > 0 && steps+n > MaxLimitSteps:
			err = tooManySteps(steps + n)
		}
		if err != nil {
			refused = append(refused, Refusal{Limit: l.Name, Why: err})
			continue
		}
		if l.Incomplete {
			refused = append(refused, Refusal{Limit: l.Name, Why: errors.New("its content has not arrived at this node yet; those who are blocked get a few words instead")})
		}
		steps += n
		all = append(all, l.Rule.Clone())
	}
	return all, refused
}

// FileLimits returns rate limit rules as a file has them. The same name gives the same id
// again.
func FileLimits(rules []limit.Rule, now time.Time) []RateLimit {
	now = now.UTC().Truncate(time.Millisecond) // as those that are made by the API
	all := make([]RateLimit, len(rules))
	for i, r := range rules {
		r = r.Clone()
		sum := sha256.Sum256([]byte("rate limit/" + r.Name))
		copy(r.ID[:], sum[:])
		all[i] = RateLimit{Version: 1, Created: now, Rule: r, thing: thing{file: true}}
	}
	return all
}

// printLimitOrder is what the order of rules is remembered under; no rule has that name.
const printLimitOrder = ""

// LimitPrints returns the fingerprints of rate limit rules from a file, by their names.
func LimitPrints(all []RateLimit) Prints {
	p := Prints{}
	var names []string
	for i := range all {
		p[all[i].Name] = printOf(all[i].Rule)
		names = append(names, all[i].Name)
	}
	if len(all) > 1 {
		p[printLimitOrder] = printOf(names)
	}
	return p
}

// BringLimits returns what becomes of the rate limit rules when a node starts whose file
// has some, and had them as before says: see Bring. Rules that the file has no more stay.
// Their order is the file's where that has changed there.
func (c *Catalog) BringLimits(brought []RateLimit, before Prints) []RateLimit {
	is, now := c.RateLimits(), LimitPrints(brought)
	brought = slices.Clone(brought)
	for i := range brought {
		b := &brought[i]
		changed := before[b.Name] != now[b.Name]
		id, deleted := c.current(ID(b.ID), func(id ID) string { return limitKey(limit.ID(id)) })
		b.ID = limit.ID(id)
		i := slices.IndexFunc(is, func(l RateLimit) bool { return l.ID == b.ID })
		switch {
		case i < 0 && !changed: // it was deleted
		case i < 0 && before == nil && deleted: // the same, and this node has only now heard of all
		case i < 0 && slices.ContainsFunc(is, func(l RateLimit) bool { return l.Name == b.Name }): // an operator's own
		case i < 0:
			is = append(is, *b)
		case before != nil && changed:
			b.Created, b.Version = is[i].Created, is[i].Version+1
			is[i] = *b
		}
	}
	if before != nil && before[printLimitOrder] != now[printLimitOrder] {
		inOrderOf(is, brought)
	}
	return is
}

// inOrderOf puts those of some rate limit rules that a file brought in its order, in the
// places that they have together: those of operators stay where they are.
func inOrderOf(is, brought []RateLimit) {
	var places []int
	var sorted []RateLimit
	for _, b := range brought {
		if i := slices.IndexFunc(is, func(l RateLimit) bool { return l.ID == b.ID }); i >= 0 {
			places, sorted = append(places, i), append(sorted, is[i])
		}
	}
	slices.Sort(places)
	for i, at := range places {
		is[at] = sorted[i]
	}
}

// ReadLimitPrints returns what a node remembers of the rate limits of its file; nil: nothing.
func ReadLimitPrints(m Map, node crdt.NodeID) Prints { return ReadPrints(m, ofLimits, node) }

// RememberLimits is Prints.Remember for those of rate limits. Who has never had any
// remembers nothing.
func RememberLimits(p, before Prints, node crdt.NodeID) []Write {
	if len(p) == 0 && before == nil || maps.Equal(p, before) {
		return nil
	}
	return p.Remember(before, ofLimits, node)
}
