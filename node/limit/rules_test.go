package limit

import (
	"testing"
	"time"
)

// one is a node's only table.
type one struct{ *Table }

func (o one) Each(f func(*Table))      { f(o.Table) }
func (o one) Of(_ Key, f func(*Table)) { f(o.Table) }
func (o one) Nth(n int, f func(*Table)) bool {
	if n == 0 {
		f(o.Table)
	}
	return n == 0
}

func TestFollow(t *testing.T) {
	a, b := valid(), valid()
	a.ID, b.ID, b.Name = ID{1}, ID{2}, "other"
	a.RequestsPerPeriod, a.MitigationTimeout = 1, time.Hour
	table := one{NewTable(1 << 20)}
	s := NewRules([]byte("secret"))
	s.Follow([]Rule{a, b}, table, start)
	c := s.Counter(a.ID)
	k := c.Key([]byte("client"))
	if k == s.Counter(b.ID).Key([]byte("client")) {
		t.Error("two rules count under the same key")
	}
	other := NewRules([]byte("another secret"))
	other.Follow([]Rule{a}, table, start)
	if k == other.Counter(a.ID).Key([]byte("client")) {
		t.Error("two meshes count under the same key")
	}
	limited := func() bool {
		return table.Peek(s.Counter(a.ID).Key([]byte("client")), &s.Counter(a.ID).Terms, start).Limited
	}
	table.Take(k, &c.Terms, start)
	table.Take(k, &c.Terms, start)
	if !limited() {
		t.Fatal("nobody is limited")
	}

	a.Description, a.Response.Content = "new words", "new body"
	s.Follow([]Rule{b, a}, table, start)
	if !limited() {
		t.Error("another description has ended what is limited")
	}
	a.RequestsPerPeriod = 50
	s.Follow([]Rule{b, a}, table, start)
	if rep, _ := table.Report(k, &s.Counter(a.ID).Terms, true, start); limited() || rep.Current != 1 {
		t.Errorf("with another limit the key is limited: %v; its counts are %+v", limited(), rep)
	}
	a.Period = time.Hour
	s.Follow([]Rule{b, a}, table, start)
	if got := table.Peek(s.Counter(a.ID).Key([]byte("client")), &s.Counter(a.ID).Terms, start); got.Remaining != 50 {
		t.Errorf("a rule with another period has counts: %+v", got)
	}
	a.Disabled = true
	s.Follow([]Rule{b, a}, table, start)
	if s.Counter(a.ID) != nil || s.Counter(b.ID) == nil {
		t.Error("a disabled rule counts, or another one does not")
	}
}

func TestFollowManyTimes(t *testing.T) {
	table := one{NewTable(1 << 16)}
	s := NewRules([]byte("secret"))
	for i := range 3 * MaxSlots {
		rules := make([]Rule, MaxRules)
		for j := range rules {
			rules[j] = valid()
			rules[j].ID = ID{byte(i), byte(i >> 8), byte(j)}
		}
		s.Follow(rules, table, start)
	}
	seen := map[uint16]bool{}
	for _, c := range s.byID {
		seen[c.Slot] = true
	}
	if len(seen) != MaxRules {
		t.Errorf("%d rules have %d slots", MaxRules, len(seen))
	}
}
