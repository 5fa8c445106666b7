package suite

import "github.com/ropeline/ropeline/bench/measurement"

// tail is how long the slowest requests take, and what collecting garbage takes.
func tail() benchmark {
	const highest, half = "as many as can be", "at half of that"
	admitted, site := "ropeline, admitted", "the site, asked directly"
	rowHalf, rowHighest, rowWaiting := admitted+", "+half, admitted+", "+highest, "ropeline, waiting, "+highest
	return benchmark{
		name: "tail", site: true, ratios: []ratio{aside("beyond-site", map[string]string{rowHalf: site + ", " + half}, func(s, site sample) float64 {
			return 1e3 * (s[p999] - site[p999])
		})},
		question: "How long do the slowest requests take at half of the highest rate, and how much of the processor goes into collecting garbage?",
		method: "In each round the highest rate of admitted requests is found first, with 64 connections that each wait for their answer. Then half of that is due each second, " +
			"evenly, whether or not answers come, and latency runs from when a request was due. The site is asked as often, without a proxy, and so is nginx in front of it. " +
			"Collections are what Go says of them, beside the processor time of the whole node.",
		entries: []entry{
			{server: "ropeline", what: "admitted, " + highest, start: startAdmitted},
			{server: "ropeline", what: "admitted, " + half, halfOf: rowHighest, start: startAdmitted},
			{server: site, what: half, halfOf: rowHighest, start: func(p *place) *subject {
				return &subject{address: p.site, heads: [][]byte{head(strangerCookie)}, probe: isSite}
			}},
			{server: "nginx", what: half, halfOf: rowHighest, needs: []string{"nginx"}, start: startNginx},
			{server: "ropeline", what: "waiting, " + highest, start: func(p *place) *subject { return startWaiting(p, asPage, 1000) }},
		},
		bounds: []measurement.Bound{
			{Row: rowHalf, Unit: "beyond-site", Most: 2, Text: "p99.9 of an admitted request at half of the highest rate, beyond the site [ms]"},
			{Row: rowHalf, Unit: garbage, Most: 10, Text: "part of the processor time that collecting takes, admitted, at half of the highest rate"},
			{Row: rowHighest, Unit: garbage, Most: 10, Text: "the same at the highest rate"},
			{Row: rowWaiting, Unit: garbage, Most: 10, Text: "the same of visitors who wait, at the highest rate"},
		},
	}
}
