package settings

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// site is something that has settings.
type site struct {
	places int
	wait   time.Duration
	cut    time.Duration
	order  string
	hosts  []string
	shut   bool
	most   *int
	from   time.Time
}

var fields = Table[site]{
	New("places", "how many there are", Int(1, 20), 7, func(s *site) *int { return &s.places }),
	New("wait", "how long at most", Duration(time.Second, time.Hour, time.Second), time.Minute, func(s *site) *time.Duration { return &s.wait }),
	New("cut", "how long, or never", OrNever(Duration(time.Second, time.Hour, 1)), time.Minute, func(s *site) *time.Duration { return &s.cut }),
	New("order", "who is next", ZeroIs(Word("first", "last"), "first"), "last", func(s *site) *string { return &s.order }),
	List("hosts", "where", Several(Letters(1, 5, "-"), 3), func(s *site) *[]string { return &s.hosts }),
	New("open", "whether it is", Not(), false, func(s *site) *bool { return &s.shut }),
	New("most", "if anything", Optional(Int(0, 3)), nil, func(s *site) **int { return &s.most }),
	New("from", "since when", Moment(), time.Time{}, func(s *site) *time.Time { return &s.from }),
}

func field(name string) Field[site] { return fields.Pick(name)[0] }

// TestWrittenAndReadAgain sets each field to texts that are allowed, and to others that are not.
// TestTimesInLowerCase: RFC 3339, 5.6, allows t and z, and they are written large again.
func TestTimesInLowerCase(t *testing.T) {
	v := field("from").Of(new(site))
	for _, s := range []string{"2026-11-27t10:00:00+01:00", "2026-11-27t09:00:00z", "2026-11-27T09:00:00z"} {
		if err := v.Set(s); err != nil || v.String() != strings.ToUpper(s) {
			t.Errorf("%s: %v; it reads %q", s, err, v)
		}
	}
}

func TestWrittenAndReadAgain(t *testing.T) {
	for name, texts := range map[string]struct{ good, bad []string }{
		"places": {[]string{"1", "20"}, []string{"0", "21", "", "1.5", "x"}},
		"wait":   {[]string{"1s", "1h", "1m30s"}, []string{"0s", "61m", "1500ms", "5", "-1s"}},
		"cut":    {[]string{"0s", "1s", "1.5s"}, []string{"-1s", "2h", "1ms"}},
		"order":  {[]string{"first", "last"}, []string{"", "First"}},
		"hosts":  {[]string{"a", "a,b-c"}, []string{"", "a_b", "sixsix", "a,,b"}},
		"open":   {[]string{"true", "false"}, []string{"", "yes", "1"}},
		"most":   {[]string{"0", "3"}, []string{"4", ""}},
		"from":   {[]string{"2026-11-27T09:00:00Z", "2026-11-27T10:00:00.5+01:00", "2026-11-27T09:00:00+00:00", "2026-11-27T05:30:00-03:30"}, []string{"2026-11-27", "1969-01-01T00:00:00Z", "now"}},
	} {
		for _, s := range texts.good {
			v := field(name).Of(new(site))
			if err := v.Set(s); err != nil || v.String() != s || !v.Valid() {
				t.Errorf("%s=%s: %v; it reads %q, valid %v", name, s, err, v, v.Valid())
			}
		}
		for _, s := range texts.bad {
			v := field(name).Of(new(site))
			was := v.String()
			if err := v.Set(s); err == nil || !strings.Contains(err.Error(), "is not allowed") {
				t.Errorf("%s=%s: error is %v", name, s, err)
			}
			if name != "hosts" && v.String() != was {
				t.Errorf("%s=%s was refused, and it reads %q", name, s, v)
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	var s site
	if fields.Filled(&s) {
		t.Error("zero is taken for complete")
	}
	fields.Fill(&s)
	if s.places != 7 || s.wait != time.Minute || s.cut != time.Minute || s.order != "" || !fields.Filled(&s) {
		t.Errorf("filled: %+v", s)
	}
	fields.Start(&s)
	if s.order != "last" {
		t.Errorf("started: %+v", s)
	}
	if all := fields.Refused(&s); len(all) != 0 {
		t.Errorf("defaults are refused: %v", all)
	}
}

func TestRefused(t *testing.T) {
	four := 4
	s := site{places: 21, wait: time.Minute, cut: -5, hosts: []string{"a", "too long"}, most: &four}
	var names []string
	for _, r := range fields.Refused(&s) {
		names = append(names, r.Name+"="+r.Given)
		if r.Allowed == "" {
			t.Errorf("%s: nothing is allowed", r.Name)
		}
	}
	if got := strings.Join(names, " "); got != "places=21 hosts=a,too long most=4" {
		t.Errorf("refused are %s", got)
	}
}

func TestJSON(t *testing.T) {
	s := site{places: 3, wait: 90 * time.Second, cut: -1, shut: true}
	all := map[string]any{}
	for _, f := range fields {
		all[f.Name] = f.Of(&s).JSON()
	}
	got, err := json.Marshal(all)
	if want := `{"cut":"0s","from":null,"hosts":[],"most":null,"open":false,"order":"first","places":3,"wait":"1m30s"}`; err != nil || string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

// TestListsAreTheirOwn: who inherits a list and adds to it changes nobody else's.
func TestListsAreTheirOwn(t *testing.T) {
	of := site{hosts: append(make([]string, 0, 8), "a")}
	one, other := of, of
	for s, host := range map[*site]string{&one: "b", &other: "c"} {
		if err := field("hosts").Of(s).Set(host + ",a"); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(one.hosts, "") + strings.Join(other.hosts, "") + strings.Join(of.hosts, ""); got != "abaca" {
		t.Errorf("lists are %v, %v of %v", one.hosts, other.hosts, of.hosts)
	}
	v := field("hosts").Of(&one)
	if v.Clear(); v.String() != "" || len(of.hosts) != 1 {
		t.Errorf("cleared it reads %q", v)
	}
}

func TestNearWord(t *testing.T) {
	if err := field("order").Of(new(site)).Set("frst"); err == nil || !strings.HasSuffix(err.Error(), "did you mean first?") {
		t.Errorf("error is %v", err)
	}
}
