package limit

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func valid() Rule {
	return Rule{Name: "logins", Expression: "true", Period: time.Minute, RequestsPerPeriod: 5}.WithDefaults()
}

func TestRuleWithDefaultsIsValid(t *testing.T) {
	r := valid()
	if errs := r.Validate(); len(errs) > 0 {
		t.Errorf("got %v, want a rule that may be left at its defaults", errs)
	}
	if r.Action != Block || r.Scope != Mesh || r.Response.StatusCode != 429 || r.IPv6Prefix != 64 {
		t.Errorf("got defaults %+v", r)
	}
}

// Each field at its limits and beyond them.
func TestRuleValidate(t *testing.T) {
	for _, c := range []struct {
		field string // that is refused; "": none
		set   func(r *Rule)
	}{
		{"name", func(r *Rule) { r.Name = "" }},
		{"", func(r *Rule) { r.Name = strings.Repeat("n", MaxName) }},
		{"name", func(r *Rule) { r.Name = strings.Repeat("n", MaxName+1) }},
		{"name", func(r *Rule) { r.Name = "a\"b" }},
		{"", func(r *Rule) { r.Description = strings.Repeat("ü", 500) }},
		{"description", func(r *Rule) { r.Description = strings.Repeat("ü", 501) }},
		{"expression", func(r *Rule) { r.Expression = "" }},
		{"", func(r *Rule) { r.Period = time.Second }},
		{"", func(r *Rule) { r.Period = 24 * time.Hour }},
		{"period", func(r *Rule) { r.Period = 0 }},
		{"period", func(r *Rule) { r.Period = 24*time.Hour + time.Second }},
		{"period", func(r *Rule) { r.Period = 1500 * time.Millisecond }},
		{"", func(r *Rule) { r.RequestsPerPeriod = 1 }},
		{"", func(r *Rule) { r.RequestsPerPeriod = MaxRequests }},
		{"requests-per-period", func(r *Rule) { r.RequestsPerPeriod = 0 }},
		{"requests-per-period", func(r *Rule) { r.RequestsPerPeriod = MaxRequests + 1 }},
		{"", func(r *Rule) { r.MitigationTimeout = 24 * time.Hour }},
		{"mitigation-timeout", func(r *Rule) { r.MitigationTimeout = -time.Second }},
		{"mitigation-timeout", func(r *Rule) { r.MitigationTimeout = 25 * time.Hour }},
		{"mitigation-timeout", func(r *Rule) { r.MitigationTimeout = time.Millisecond }},
		{"action", func(r *Rule) { r.Action = "challenge" }},
		{"", func(r *Rule) { r.Action = Queue }},
		{"scope", func(r *Rule) { r.Scope = "world" }},
		{"", func(r *Rule) { r.Response.StatusCode = 400 }},
		{"", func(r *Rule) { r.Response.StatusCode = 499 }},
		{"status-code", func(r *Rule) { r.Response.StatusCode = 399 }},
		{"status-code", func(r *Rule) { r.Response.StatusCode = 500 }},
		{"", func(r *Rule) { r.Response.Content = strings.Repeat("c", MaxContent) }},
		{"content", func(r *Rule) { r.Response.Content = strings.Repeat("c", MaxContent+1) }},
		{"content-type", func(r *Rule) { r.Response.ContentType = "image/png" }},
		{"", func(r *Rule) { r.IPv4Prefix, r.IPv6Prefix = 8, 16 }},
		{"ipv4-prefix", func(r *Rule) { r.IPv4Prefix = 33 }},
		{"ipv6-prefix", func(r *Rule) { r.IPv6Prefix = 129 }},
		{"", func(r *Rule) { r.Characteristics = []string{Source, "http.host"} }},
		{"characteristics[1]", func(r *Rule) { r.Characteristics = []string{Source, Source} }},
		{"characteristics[0]", func(r *Rule) { r.Characteristics = []string{""} }},
		{"characteristics[1]", func(r *Rule) { r.Characteristics = []string{Source, VisitorID} }},
		{"", func(r *Rule) { r.Characteristics = []string{strings.Repeat("x", MaxCharacteristic)} }},
		{"characteristics[0]", func(r *Rule) { r.Characteristics = []string{strings.Repeat("x", MaxCharacteristic+1)} }},
		{"characteristics", func(r *Rule) {
			r.Characteristics = slices.Collect(func(yield func(string) bool) {
				for i := range MaxCharacteristics + 1 {
					if !yield("http.request.headers[\"" + strings.Repeat("x", i+1) + "\"]") {
						return
					}
				}
			})
		}},
	} {
		r := valid()
		c.set(&r)
		var got []string
		for _, e := range r.Validate() {
			got = append(got, e.Field)
		}
		if want := slices.DeleteFunc([]string{c.field}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("%+v\n\tis refused for %q, want %q", r, got, want)
		}
	}
}

func TestIDs(t *testing.T) {
	id := ID{1, 2, 0xff}
	if got, err := ParseID(id.String()); got != id || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	for _, s := range []string{"", "12", strings.Repeat("g", 32), strings.Repeat("0", 34)} {
		if _, err := ParseID(s); err == nil {
			t.Errorf("%q is taken for an id", s)
		}
	}
}
