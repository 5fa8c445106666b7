package suite

import (
	"slices"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/measurement"
)

// A ratio of medians would be 14/12: the rounds differ, and a ratio is of one round.
func TestRatiosAreFormedWithinARound(t *testing.T) {
	var out strings.Builder
	run := &measurement.Run{Out: &out, Log: &out, Quick: true}
	i := slices.IndexFunc(Entries(), func(e measurement.Entry) bool { return e.Name == "proxy" })
	run.Begin(&Entries()[i], &out)
	h := harness{config: config{rounds: 3}, run: run, samples: map[string][]sample{rowAdmitted: {{cpu: 14}, {cpu: 15}, {cpu: 13}}, rowNginx: {{cpu: 12}, {cpu: 12.5}}}}
	h.record(proxying())
	var got []float64
	for _, s := range h.samples[rowAdmitted] {
		if v, ok := s[byBase]; ok {
			got = append(got, v)
		}
	}
	if want := []float64{14. / 12, 15 / 12.5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Ratios, bounds and rates find rows by their names.
func TestEveryNameIsOfARow(t *testing.T) {
	for _, b := range benchmarks() {
		var rows []string
		for _, e := range b.entries {
			if slices.Contains(rows, e.name()) || e.halfOf != "" && !slices.Contains(rows, e.halfOf) {
				t.Errorf("%s: two rows %q, or one that goes by a later one", b.name, e.name())
			}
			rows = append(rows, e.name())
		}
		var names []string
		for _, r := range b.ratios {
			for _, e := range b.entries {
				names = append(names, r.by(&e))
			}
		}
		for _, bound := range b.bounds {
			names = append(names, bound.Row)
		}
		for _, name := range names {
			if name != "" && !slices.Contains(rows, name) {
				t.Errorf("%s: no row %q", b.name, name)
			}
		}
	}
}

func TestWhatIsMissingIsTold(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out strings.Builder
	run := &measurement.Run{Out: &out, Quick: true}
	i := slices.IndexFunc(Entries(), func(e measurement.Entry) bool { return e.Name == "proxy" })
	run.Begin(&Entries()[i], &out)
	h := harness{config: config{only: "Caddy"}, run: run, caddy: "/no/such/caddy"}
	if chosen := h.choose(proxying()); len(chosen) != 0 {
		t.Errorf("got %+v", chosen)
	}
	if _, err := run.End(t.Context()); err != nil || !strings.Contains(out.String(), "Caddy is not measured: caddy (make artifacts/caddy) is missing.") {
		t.Errorf("got %v, and the table does not say so:\n%s", err, out.String())
	}
}
