package boot

import "strconv"

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
