package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// faultKeys are what faults may be told, each with what sets it.
func faultKeys(f *sim.Fault) map[string]func(string) error {
	span := func(at *time.Duration, least time.Duration) func(string) error {
		return settings.Duration(least, longestSimulated, 1).At(at).Set
	}
	limit := func(name string, at *int) func(string) error { // as that of a room
		return func(value string) error {
			var s room.Settings
			err := room.Fields(nil).Pick(name)[0].Of(&s).Set(value)
			*at = max(s.TotalActiveUsers, s.NewUsersPerMinute)
			return err
		}
	}
	return map[string]func(string) error{
		"site": settings.Int(1, sim.MaxSites).At(&f.Site).Set, "peer": settings.Int(1, sim.MaxSites).At(&f.Peer).Set,
		"from": span(&f.From, 0), "for": span(&f.For, time.Millisecond), "by": span(&f.By, -24*time.Hour), "session": span(&f.Session, time.Second),
		"loss": settings.Float(0, 1).At(&f.Loss).Set, "active": limit("total-active-users", &f.Active), "rate": limit("new-users-per-minute", &f.Rate),
		"to": func(value string) error { f.To = room.Policy(value); return nil },
		"node": func(value string) error {
			site, node, ok := strings.Cut(value, ".")
			if !ok {
				return fmt.Errorf("%q is not allowed: site and node, both counted from 1, such as 1.2", value)
			}
			if err := settings.Int(1, sim.MaxSites).At(&f.Site).Set(site); err != nil {
				return err
			}
			return settings.Int(1, sim.MaxNodes).At(&f.Node).Set(node)
		},
		"oneway": func(value string) error {
			if f.OneWay = value == "" || value == "true" || value == "yes"; !f.OneWay {
				return fmt.Errorf("%q is not allowed: oneway stands alone", value)
			}
			return nil
		},
	}
}

// parseFault reads a fault as people write it:
//
//	kind:key=value,key=value
//
// Whether there is such a site, and what goes together, is for sim.Config to
// check, which knows the rest of the run.
func parseFault(text string) (f sim.Fault, err error) {
	word, rest, _ := strings.Cut(text, ":")
	f.Kind = sim.FaultKind(word)
	if kinds := sim.FaultKinds(); !slices.Contains(kinds, f.Kind) {
		return f, fmt.Errorf("there is no kind %q; allowed are %s", word, strings.ReplaceAll(strings.Trim(fmt.Sprint(kinds), "[]"), " ", ", "))
	}
	keys, seen := faultKeys(&f), map[string]bool{}
	for part := range strings.SplitSeq(rest, ",") {
		key, value, given := strings.Cut(part, "=")
		if key == "at" {
			key = "from"
		}
		switch set := keys[key]; {
		case set == nil:
			return f, fmt.Errorf("there is no key %q; allowed are at, %s", key, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		case !given && key != "oneway":
			return f, fmt.Errorf("%s has no value; write %s=…", key, key)
		case seen[key] || key == "site" && seen["node"] || key == "node" && seen["site"]: // which names its site
			return f, fmt.Errorf("%s is said twice", key)
		default:
			if err := set(value); err != nil {
				return f, fmt.Errorf("%s: %w", key, err)
			}
		}
		seen[key] = true
	}
	return f, nil
}
