package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// faultKeys are what each kind of fault may be told. "at" is another word for
// "from", and "node" names the site as well.
func faultKeys(kind sim.FaultKind) []string {
	switch kind {
	case sim.Partition:
		return []string{"site", "node", "peer", "from", "at", "for", "oneway"}
	case sim.Skew:
		return []string{"site", "node", "from", "at", "for", "by"}
	case sim.Link:
		return []string{"site", "peer", "from", "at", "for", "by", "loss", "oneway"}
	case sim.DiskSlow:
		return []string{"site", "node", "from", "at", "for", "by"}
	case sim.Join, sim.Declare:
		return []string{"site", "node", "from", "at"}
	case sim.Limits:
		return []string{"site", "node", "from", "at", "active", "rate", "session"}
	case sim.Policy:
		return []string{"site", "node", "from", "at", "for", "to"}
	default:
		return []string{"site", "node", "from", "at", "for"}
	}
}

// parseFault reads a fault as people write it:
//
//	kind:key=value,key=value
//
// Whether there is such a site, and what goes together, is for sim.Config to
// check, which knows the rest of the run.
func parseFault(text string) (sim.Fault, error) {
	word, keys, _ := strings.Cut(text, ":")
	f := sim.Fault{Kind: sim.FaultKind(word)}
	if kinds := sim.FaultKinds(); !slices.Contains(kinds, f.Kind) {
		return f, fmt.Errorf("there is no kind %q; allowed are %s", word, wordList(kinds))
	}
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(keys, ",") {
		key, value, given := strings.Cut(part, "=")
		if !slices.Contains(faultKeys(f.Kind), key) {
			return f, fmt.Errorf("%s has no key %q; allowed are %s", f.Kind, key, strings.Join(faultKeys(f.Kind), ", "))
		}
		if !given && key != "oneway" {
			return f, fmt.Errorf("%s has no value; write %s=…", key, key)
		}
		if key == "at" {
			key = "from"
		}
		if seen[key] || key == "site" && seen["node"] || key == "node" && seen["site"] {
			return f, fmt.Errorf("%s is said twice", key)
		}
		seen[key] = true
		if err := setFault(&f, key, value); err != nil {
			return f, fmt.Errorf("%s: %w", key, err)
		}
	}
	return f, nil
}

func wordList[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

func setFault(f *sim.Fault, key, value string) (err error) {
	switch key {
	case "site":
		f.Site, err = faultNumber(value, sim.MaxSites)
	case "peer":
		f.Peer, err = faultNumber(value, sim.MaxSites)
	case "node":
		site, node, ok := strings.Cut(value, ".")
		if !ok {
			return fmt.Errorf("%q is not allowed: site and node, both counted from 1, such as 1.2", value)
		}
		if f.Site, err = faultNumber(site, sim.MaxSites); err == nil {
			f.Node, err = faultNumber(node, sim.MaxNodes)
		}
	case "from":
		f.From, err = faultTime(value, 0)
	case "for":
		f.For, err = faultTime(value, time.Millisecond)
	case "by":
		f.By, err = faultTime(value, -24*time.Hour)
	case "loss":
		err = settings.Float(0, 1).At(&f.Loss).Set(value)
	case "active":
		f.Active, err = faultLimit("total-active-users", value)
	case "to":
		f.To = room.Policy(value)
	case "rate":
		f.Rate, err = faultLimit("new-users-per-minute", value)
	case "session":
		f.Session, err = faultTime(value, time.Second)
	case "oneway":
		if value != "" && value != "true" && value != "yes" {
			return fmt.Errorf("%q is not allowed: oneway stands alone", value)
		}
		f.OneWay = true
	default:
		return errors.New("nobody reads this key") // faultKeys lists more than this switch
	}
	return err
}

func faultNumber(s string, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%q is not allowed: a whole number from 1 to %d", s, most)
	}
	return n, nil
}

// faultLimit reads one of the two limits of a room.
func faultLimit(name, s string) (int, error) {
	var to room.Settings
	err := room.Fields(nil).Pick(name)[0].Of(&to).Set(s)
	return max(to.TotalActiveUsers, to.NewUsersPerMinute), err
}

func faultTime(s string, least time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > longestSimulated {
		return 0, fmt.Errorf("%q is not allowed: a duration such as 90s or 10m, from %s to %s", s, settings.Span(least), settings.Span(longestSimulated))
	}
	return d, nil
}
