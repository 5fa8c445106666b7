package catalog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

func someLimit(name string) RateLimit {
	l := FileLimits([]limit.Rule{{
		Name: name, Description: "words", Expression: `http.host eq "a"`, Characteristics: []string{"ip.src", "http.host"},
		Period: time.Minute, RequestsPerPeriod: 5, MitigationTimeout: time.Hour, CountingExpression: "true", Action: limit.Queue,
		Scope: limit.Site, IPv4Prefix: 24, IPv6Prefix: 48, Disabled: true,
		Response: limit.Response{StatusCode: 403, Content: strings.Repeat("<p>no</p>", 3000), ContentType: "text/html"},
	}}, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))[0]
	l.Version = 3
	return l
}

// What is written is what is read, in its order, and only differences are written.
func TestLimitsAreReadAsWritten(t *testing.T) {
	m := newStore(1)
	a, b, c := someLimit("a"), someLimit("b"), someLimit("c")
	b.Disabled, b.Response.Content = false, ""
	m.write(t, new(Catalog).LimitWrites(nil, []RateLimit{c, a, b}))
	read := func() []RateLimit {
		all := Read(m).RateLimits()
		for i := range all {
			all[i].Modified = time.Time{}
		}
		return all
	}
	equal := func(got, want []RateLimit) bool {
		return slices.EqualFunc(got, want, func(a, b RateLimit) bool {
			return string(encode(a.Rule)) == string(encode(b.Rule)) && a.Version == b.Version
		})
	}
	if got := read(); !equal(got, []RateLimit{c, a, b}) {
		t.Fatalf("got %+v", got)
	}
	a2 := a.Clone()
	a2.RequestsPerPeriod = 9
	if w := new(Catalog).LimitWrites(read(), []RateLimit{c, a2, b}); len(w) != 1 {
		t.Errorf("one number is written in %d keys", len(w))
	}
	m.write(t, new(Catalog).LimitWrites(read(), []RateLimit{b, a2}))
	if got := read(); !equal(got, []RateLimit{b, a2}) {
		t.Errorf("got %+v", got)
	}
	m.write(t, new(Catalog).LimitWrites(read(), nil))
	m.collect(t)
	for key := range m.Keys() {
		if !strings.HasSuffix(key, "/"+deletedMark) {
			t.Errorf("%s is left", key)
		}
	}
}

func TestCheckLimits(t *testing.T) {
	a, b := someLimit("a"), someLimit("b")
	if err := CheckLimits([]RateLimit{a, b}, nil); err != nil {
		t.Errorf("got %v", err)
	}
	b.Name, b.Period = "a", 0
	err := CheckLimits([]RateLimit{a, b}, func(r *limit.Rule) (int, error) {
		return 0, errors.Join(&room.FieldError{Field: "expression", Problem: "no"})
	})
	var got []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		got = append(got, e.(*room.FieldError).Field)
	}
	want := []string{"rate-limits[0].expression", "rate-limits[0].name", "rate-limits[1].period", "rate-limits[1].expression", "rate-limits[1].name"}
	if !slices.Equal(got, want) {
		t.Errorf("got mistakes in %q, want %q", got, want)
	}
	if err := CheckLimits(make([]RateLimit, limit.MaxRules+1), nil); err == nil || !strings.Contains(err.Error(), "at most 100 rules") {
		t.Errorf("got %v", err)
	}
}

// A file is followed where it has changed, and not where only operators have.
func TestBringLimits(t *testing.T) {
	m := newStore(1)
	catalog := func() *Catalog { return Read(m) }
	bring := func(before Prints, names ...string) (got []string) {
		var brought []RateLimit
		for _, n := range names {
			l := someLimit(strings.TrimRight(n, "!"))
			if strings.HasSuffix(n, "!") {
				l.RequestsPerPeriod = 99
			}
			brought = append(brought, l)
		}
		for _, l := range catalog().BringLimits(brought, before) {
			if l.RequestsPerPeriod == 99 {
				l.Name += "!"
			}
			got = append(got, l.Name)
		}
		return got
	}
	prints := LimitPrints([]RateLimit{someLimit("a"), someLimit("b")})
	three := LimitPrints([]RateLimit{someLimit("a"), someLimit("b"), someLimit("c")})
	for _, c := range []struct {
		there  []string
		before Prints
		file   []string
		want   []string
	}{
		{nil, nil, []string{"a", "b"}, []string{"a", "b"}},                        // the first node
		{[]string{"a"}, nil, []string{"a!", "b"}, []string{"a", "b"}},             // a new node changes nothing
		{[]string{"a"}, prints, []string{"a", "b"}, []string{"a"}},                // b was deleted
		{[]string{"a"}, prints, []string{"a!", "b!"}, []string{"a!", "b!"}},       // the file has changed
		{[]string{"a", "b", "c"}, prints, []string{"a"}, []string{"a", "b", "c"}}, // what the file has no more stays

		{[]string{"b", "a"}, prints, []string{"a", "b"}, []string{"b", "a"}},                             // moved by an operator
		{[]string{"b", "a"}, nil, []string{"a", "b"}, []string{"b", "a"}},                                // a new node moves nothing
		{[]string{"a", "own", "b"}, prints, []string{"b", "a"}, []string{"b", "own", "a"}},               // moved in the file
		{[]string{"a", "own", "b"}, prints, []string{"a", "c", "b!"}, []string{"a", "own", "c", "b!"}},   // added in the middle of it
		{[]string{"a", "b", "own", "c"}, three, []string{"c", "b", "a"}, []string{"c", "b", "own", "a"}}, // turned round
		{[]string{"own", "a", "c"}, three, []string{"c", "b", "a"}, []string{"own", "c", "a"}},           // the same, with one deleted
	} {
		m = newStore(1)
		var all []RateLimit
		for _, n := range c.there {
			all = append(all, someLimit(n))
		}
		m.write(t, new(Catalog).LimitWrites(nil, all))
		if got := bring(c.before, c.file...); !slices.Equal(got, c.want) {
			t.Errorf("with %q there and %q in the file: got %q, want %q", c.there, c.file, got, c.want)
		}
	}
	m = newStore(1)
	own := someLimit("a")
	own.ID = limit.ID{7}
	m.write(t, new(Catalog).LimitWrites(nil, []RateLimit{own}))
	if got := catalog().BringLimits([]RateLimit{someLimit("a")}, nil); len(got) != 1 || got[0].ID != own.ID {
		t.Errorf("got %+v beside a rule of an operator of that name", got)
	}
}

func TestALimitWhoseContentIsMissing(t *testing.T) {
	m := newStore(1)
	writes := new(Catalog).LimitWrites(nil, []RateLimit{someLimit("a")})
	m.write(t, slices.DeleteFunc(writes, func(w Write) bool { return strings.HasPrefix(w.Key, "text/") }))
	all, refused := Read(m).EffectiveLimits(nil)
	if len(all) != 1 || all[0].Response.Content != "" || len(refused) != 1 || refused[0].Limit != "a" {
		t.Errorf("got %+v, %+v", all, refused)
	}
}

// The longest rule that may be set fits into the map, also where each character takes six
// bytes there: what does not fit keeps all that stands in the same file out.
func TestTheLongestLimitFits(t *testing.T) {
	l := someLimit(strings.Repeat("n", limit.MaxName))
	const long = 4096 // characters of an expression
	l.Expression, l.CountingExpression, l.Description = strings.Repeat("<", long), strings.Repeat("<", long), strings.Repeat("<", 500)
	l.Characteristics = nil
	for i := range limit.MaxCharacteristics {
		l.Characteristics = append(l.Characteristics, strings.Repeat("<", limit.MaxCharacteristic-1)+string(rune('0'+i)))
	}
	l.RequestsPerPeriod, l.Period, l.MitigationTimeout = limit.MaxRequests, limit.MaxPeriod, limit.MaxMitigation
	l.Version = 1 << 40
	noise := make([]byte, limit.MaxContent)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	l.Response.Content, l.Response.ContentType = string(noise), "application/json"
	if errs := l.Validate(); errs != nil {
		t.Fatal(errs)
	}
	m := newStore(1)
	m.write(t, new(Catalog).LimitWrites(nil, []RateLimit{l}))
	got := Read(m).RateLimits()
	if len(got) != 1 || got[0].Incomplete || got[0].Response.Content != l.Response.Content || got[0].Expression != l.Expression {
		t.Errorf("it is read as %d rules, or with something else in it", len(got))
	}
}

// What does not hold is left out, and who is in its way is told.
func TestLimitsThatDoNotHold(t *testing.T) {
	names := func(rules []limit.Rule) (all []string) {
		for _, r := range rules {
			all = append(all, r.Name)
		}
		return all
	}
	at := func(name string, id byte, age time.Duration) RateLimit {
		l := someLimit(name)
		l.ID, l.Created = limit.ID{id}, l.Created.Add(-age)
		return l
	}
	wrong := at("wrong", 9, 0)
	wrong.Period = 0
	m := newStore(1)
	m.write(t, new(Catalog).LimitWrites(nil, []RateLimit{at("a", 1, 0), at("a", 2, time.Second), at("b", 4, 0), at("b", 3, 0), at("c", 5, 0), wrong}))
	rules, refused := Read(m).EffectiveLimits(func(r *limit.Rule) (int, error) {
		if r.Name == "c" {
			return 0, &room.FieldError{Field: "expression", Problem: "no such list"}
		}
		return 0, nil
	})
	if got := names(rules); !slices.Equal(got, []string{"a", "b"}) || rules[0].ID[0] != 2 || rules[1].ID[0] != 3 {
		t.Errorf("there hold %+v", rules)
	}
	var got []string
	for _, r := range refused {
		got = append(got, r.Limit+": "+r.Why.Error())
	}
	want := []string{`a: an older rate limit`, `b: an older rate limit`, "c: expression: no such list", "wrong: period"}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("left out is %q, want %q", got, want)
	}

	m = newStore(1)
	var all []RateLimit
	for i := range limit.MaxRules + 1 {
		all = append(all, at(fmt.Sprint("r", i), byte(i), 0))
	}
	m.write(t, new(Catalog).LimitWrites(nil, all))
	rules, refused = Read(m).EffectiveLimits(nil)
	if len(rules) != limit.MaxRules || len(refused) != 1 || refused[0].Limit != all[limit.MaxRules].Name {
		t.Errorf("%d hold, and %+v do not", len(rules), refused)
	}
}

// A key that is not in the form in which it is written is nobody's: else two rules had
// one id.
func TestLimitsUnderOtherKeys(t *testing.T) {
	m := newStore(1)
	l := someLimit("a")
	l.ID = limit.ID{0xab}
	writes := new(Catalog).LimitWrites(nil, []RateLimit{l})
	last := writes[len(writes)-1]
	m.write(t, append(writes, Write{strings.Replace(last.Key, "ab", "AB", 1), last.Value}))
	if got := Read(m).RateLimits(); len(got) != 1 {
		t.Errorf("got %d rules", len(got))
	}
}

// TestStepsOfAllLimits: a request is held against each rate limit, so that they have a bound together, which those that cost
// nothing are not held to.
func TestStepsOfAllLimits(t *testing.T) {
	var all []RateLimit
	for i := range 4 {
		l := someLimit(fmt.Sprint("r", i))
		l.ID = limit.ID{byte(i)}
		all = append(all, l)
	}
	checked := 0
	check := func(r *limit.Rule) (int, error) {
		checked++
		if r.Name == "r3" {
			return 0, nil
		}
		return MaxLimitSteps / 2, nil
	}
	if err := CheckLimits(all[1:], check); err != nil || checked != 3 {
		t.Errorf("two that cost half each: %v, with %d checks", err, checked)
	}
	err := CheckLimits(all, check)
	if n := strings.Count(fmt.Sprint(err), "2000 are allowed"); n != 3 {
		t.Errorf("three that cost half each: %v", err)
	}
	m := newStore(1)
	m.write(t, new(Catalog).LimitWrites(nil, all))
	rules, refused := Read(m).EffectiveLimits(check)
	if len(rules) != 3 || rules[2].Name != "r3" || len(refused) != 1 || refused[0].Limit != "r2" {
		t.Errorf("%+v hold, and %+v do not", rules, refused)
	}
}
