package catalog

import (
	"bytes"
	"cmp"
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
}

// Clone returns a copy that shares nothing with l that can be changed.
func (l RateLimit) Clone() RateLimit {
	l.Rule = l.Rule.Clone()
	return l
}

// limitsOrder is the key of the order of rules.
const limitsOrder = kindLimitOrder + "/all"

func limitKey(id limit.ID) string { return kindLimit + "/" + id.String() }

// textsOfLimits stands for a room where the texts of rules stand.
var textsOfLimits crdt.RoomID

// limitValue is a rule as it is written; see groups.go for what holds of it.
type limitValue struct {
	Name               string        `json:"name"`
	Description        string        `json:"description,omitzero"`
	Disabled           bool          `json:"disabled,omitzero"`
	Expression         string        `json:"expression"`
	Characteristics    []string      `json:"characteristics,omitempty"`
	IPv4Prefix         int           `json:"ipv4_prefix"`
	IPv6Prefix         int           `json:"ipv6_prefix"`
	Period             time.Duration `json:"period_ns"`
	RequestsPerPeriod  int           `json:"requests_per_period"`
	MitigationTimeout  time.Duration `json:"mitigation_timeout_ns,omitzero"`
	CountingExpression string        `json:"counting_expression,omitzero"`
	Action             limit.Action  `json:"action"`
	StatusCode         int           `json:"status_code"`
	ContentType        string        `json:"content_type"`
	Content            textRef       `json:"content,omitzero"`
	Scope              limit.Scope   `json:"scope"`
	Version            int           `json:"version"`
	Created            time.Time     `json:"created"`
}

func valueOfLimit(l *RateLimit) *limitValue {
	return &limitValue{
		l.Name, l.Description, l.Disabled, l.Expression, l.Characteristics, l.IPv4Prefix, l.IPv6Prefix, l.Period,
		l.RequestsPerPeriod, l.MitigationTimeout, l.CountingExpression, l.Action, l.Response.StatusCode, l.Response.ContentType,
		refOf(l.Response.Content), l.Scope, l.Version, l.Created.UTC(),
	}
}

// limit returns the rule without its content.
func (v *limitValue) limit(id limit.ID) RateLimit {
	return RateLimit{Version: v.Version, Created: v.Created, Rule: limit.Rule{
		ID: id, Name: v.Name, Description: v.Description, Disabled: v.Disabled, Expression: v.Expression,
		Characteristics: v.Characteristics, IPv4Prefix: v.IPv4Prefix, IPv6Prefix: v.IPv6Prefix, Period: v.Period,
		RequestsPerPeriod: v.RequestsPerPeriod, MitigationTimeout: v.MitigationTimeout, CountingExpression: v.CountingExpression,
		Action: v.Action, Response: limit.Response{StatusCode: v.StatusCode, ContentType: v.ContentType}, Scope: v.Scope,
	}.WithDefaults()}
}

// takeLimit reads one rule.
func (r *reader) takeLimit(name, key string) {
	var v limitValue
	id, err := limit.ParseID(name)
	at, ok := r.value(key, &v)
	if !ok || err != nil || id.String() != name {
		return
	}
	l := v.limit(id)
	l.Modified = at
	content, ok := text(r.m, textsOfLimits, v.Content)
	l.Response.Content, l.Incomplete = content, !ok
	r.limits = append(r.limits, l)
}

// orderedLimits returns the rules that were read in their order.
func (r *reader) orderedLimits() []RateLimit {
	var order []string
	r.value(limitsOrder, &order)
	inOrder(r.limits, order, func(l *RateLimit) string { return l.ID.String() }, func(l *RateLimit) time.Time { return l.Created })
	return r.limits
}

// inOrder puts what has a place in that order first, and then the rest by age.
func inOrder[T any](all []T, order []string, id func(*T) string, created func(*T) time.Time) {
	place := map[string]int{} // from 1 on
	for i, id := range order {
		place[id] = i + 1
	}
	slices.SortFunc(all, func(a, b T) int {
		p, q := place[id(&a)], place[id(&b)]
		switch {
		case p > 0 && q > 0:
			return cmp.Compare(p, q)
		case p > 0:
			return -1
		case q > 0:
			return 1
		}
		return cmp.Or(created(&a).Compare(created(&b)), cmp.Compare(id(&a), id(&b)))
	})
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
func LimitWrites(was, is []RateLimit) (all []Write) {
	old, texts := limitValues(was)
	now, wanted := limitValues(is)
	return differences(textsOfLimits, old, now, texts, wanted)
}

func limitValues(limits []RateLimit) (all map[string][]byte, texts map[string]string) {
	all, texts = map[string][]byte{}, map[string]string{}
	var order []string
	for i := range limits {
		l := &limits[i]
		all[limitKey(l.ID)] = encode(valueOfLimit(l))
		if s := l.Response.Content; s != "" {
			texts[refOf(s).Hash] = s
		}
		order = append(order, l.ID.String())
	}
	if len(order) > 1 {
		all[limitsOrder] = encode(order)
	}
	return all, texts
}

// CheckLimits reports why the rate limit rules cannot become these; each part that is about
// a setting is a *room.FieldError whose field begins with rate-limits and the rule's place.
// check says what else is to hold of a rule, as the front sees it; nil: nothing.
func CheckLimits(all []RateLimit, check func(*limit.Rule) error) error {
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

// CheckLimit returns what of CheckLimits is about the rule at one place, by its own fields.
// Of several rules of one name all are told.
func CheckLimit(all []RateLimit, at int, check func(*limit.Rule) error) []error {
	r := &all[at].Rule
	errs := checkLimit(r, check)
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

func checkLimit(r *limit.Rule, check func(*limit.Rule) error) (errs []error) {
	told := map[string]bool{}
	for _, e := range r.Validate() {
		told[e.Field] = true
		errs = append(errs, e)
	}
	if check == nil {
		return errs
	}
	var more []error
	switch err := check(r).(type) {
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
	return errs
}

// EffectiveLimits returns the rate limit rules that hold, in their order, and those that are
// left out because they do not: as Effective does for rooms. Of two of one name the older
// holds.
func (c *Catalog) EffectiveLimits(check func(*limit.Rule) error) (all []limit.Rule, refused []Refusal) {
	oldest := map[string]*RateLimit{}
	for i := range c.limits {
		l := &c.limits[i]
		if o := oldest[l.Name]; o == nil || l.Created.Before(o.Created) || l.Created.Equal(o.Created) && bytes.Compare(l.ID[:], o.ID[:]) < 0 {
			oldest[l.Name] = l
		}
	}
	for i := range c.limits {
		l := &c.limits[i]
		err := errors.Join(checkLimit(&l.Rule, check)...)
		switch {
		case oldest[l.Name] != l:
			err = fmt.Errorf("an older rate limit is called %q, too; give one of them another name", l.Name)
		case err == nil && len(all) == limit.MaxRules:
			err = fmt.Errorf("there are %d rate limits before it, which is as many as there may be", limit.MaxRules)
		}
		if err != nil {
			refused = append(refused, Refusal{Limit: l.Name, Why: err})
			continue
		}
		if l.Incomplete {
			refused = append(refused, Refusal{Limit: l.Name, Why: errors.New("its content has not arrived at this node yet; those who are blocked get a few words instead")})
		}
		all = append(all, l.Rule.Clone())
	}
	return all, refused
}

// FileLimits returns rate limit rules as a file has them. The same name gives the same id
// again.
func FileLimits(rules []limit.Rule, now time.Time) []RateLimit {
	now = now.Truncate(time.Millisecond) // as those that are made by the API
	all := make([]RateLimit, len(rules))
	for i, r := range rules {
		r = r.Clone()
		sum := sha256.Sum256([]byte("rate limit/" + r.Name))
		copy(r.ID[:], sum[:])
		all[i] = RateLimit{Version: 1, Created: now, Rule: r}
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
	for _, b := range brought {
		i := slices.IndexFunc(is, func(l RateLimit) bool { return l.ID == b.ID })
		changed := before[b.Name] != now[b.Name]
		switch {
		case i < 0 && before != nil && !changed: // it was deleted
		case i < 0 && slices.ContainsFunc(is, func(l RateLimit) bool { return l.Name == b.Name }): // an operator's own
		case i < 0:
			is = append(is, b)
		case before != nil && changed:
			b.Created, b.Version = is[i].Created, is[i].Version+1
			is[i] = b
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
func ReadLimitPrints(m Map, node crdt.NodeID) Prints { return ReadPrints(m, textsOfLimits, node) }

// RememberLimits is Prints.Remember for those of rate limits. Who has never had any
// remembers nothing.
func RememberLimits(p, before Prints, node crdt.NodeID) []Write {
	if len(p) == 0 && before == nil || maps.Equal(p, before) {
		return nil
	}
	return p.Remember(before, textsOfLimits, node)
}
