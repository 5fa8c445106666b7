package boot

import (
	"fmt"
	"strconv"
	"strings"
)

// Orders returns every order of the ids of n hosts.
func Orders(n int) []string {
	if n == 0 {
		return []string{""}
	}
	var all []string
	for _, o := range Orders(n - 1) {
		for i := range n {
			all = append(all, o[:i]+strconv.Itoa(n)+o[i:])
		}
	}
	return all
}

// Worlds returns what is searched. Small ones are searched under every order of ids, with those of
// disks that come later above and below all others; of large ones only two are, as nothing that
// a machine decides depends on it.
func Worlds() (all []Config) {
	for _, c := range []Config{
		{Named: 2, Restarts: 2, Losses: 2},
		{Named: 2, Losses: 3},
		{Named: 2, Joins: true, Restarts: 1},
		{Named: 3, Restarts: 2},
		{Named: 3, Losses: 1},
	} {
		for _, order := range Orders(c.hosts()) {
			for _, falling := range []bool{false, true} {
				c.Order, c.Falling = order, falling
				all = append(all, c)
			}
		}
	}
	for _, c := range []Config{
		{Named: 2, Losses: 4},
		{Named: 1, Joins: true, Losses: 2},
		{Named: 2, Joins: true, Losses: 1},
		{Named: 3, Restarts: 1, Losses: 1},
		{Named: 3, Losses: 2},
	} {
		up, down := "1234"[:c.hosts()], "4321"[4-c.hosts():]
		all = append(all, c, c)
		all[len(all)-2].Order = up
		all[len(all)-1].Order, all[len(all)-1].Falling = down, true
	}
	return all
}

func (c Config) hosts() int {
	if c.Joins {
		return c.Named + 1
	}
	return c.Named
}

// Budget returns it as the table of docs/limit.md has it.
func (c Config) Budget() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{c.Restarts, "stop and start"}, {c.Losses, "lost disk"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// String returns what Replay reads, up to the events.
func (c Config) String() string {
	s := "boot " + strconv.Itoa(c.Named)
	if c.Joins {
		s += "+x"
	}
	if s += "/" + c.Order; c.Falling {
		s += "/falling"
	}
	return s
}

// History returns what Replay reads.
func (c Config) History(trace []string) string { return c.String() + ": " + strings.Join(trace, "; ") }

// IsHistory reports whether a text is for Replay.
func IsHistory(text string) bool { return strings.HasPrefix(text, "boot ") }

// Replay has a history happen, as History wrote it, and returns what is broken by it, also when
// all has come to rest; "": nothing.
func Replay(text string, fault Fault) (broken string, err error) {
	head, events, _ := strings.Cut(text, ": ")
	parts := strings.Split(strings.TrimPrefix(head, "boot "), "/")
	cfg := Config{Restarts: 255, Losses: 255, Fault: fault, Falling: len(parts) == 3 && parts[2] == "falling"}
	named, joins := strings.CutSuffix(parts[0], "+x")
	cfg.Joins = joins
	if cfg.Named, err = strconv.Atoi(named); err != nil || cfg.Named < 1 || cfg.hosts() > most || len(parts) < 2 || len(parts) == 3 && !cfg.Falling || len(parts) > 3 {
		return "", fmt.Errorf("history %q: want it to begin as %q does", text, Config{Named: 2, Joins: true, Order: "123"})
	}
	cfg.Order = parts[1]
	m, err := newModel(cfg)
	if err != nil {
		return "", err
	}
	w := m.root()
	for event := range strings.SplitSeq(events, "; ") {
		happened := false
		err := m.each(w, func(e move, next world, is string) bool {
			if happened = m.text(e) == event; happened {
				w, broken = next, is
			}
			return !happened
		})
		if err != nil || broken != "" {
			return broken, err
		}
		if !happened {
			return "", fmt.Errorf("history %q: %q cannot happen there, or changes nothing", text, event)
		}
	}
	return m.unsettled(w)
}
