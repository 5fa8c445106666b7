package suite

// tail is how long the slowest requests take, and what collecting garbage takes.
func tail() benchmark {
	const highest, half = "as many as can be", "at half of that"
	admitted, site := "ropeline, admitted", "the site, asked directly"
	return benchmark{
		name: "tail", site: true,
		question: "How long do the slowest requests take at half of the highest rate, and how much of the processor goes into collecting garbage?",
		method: "In each round the highest rate of admitted requests is found first, with 64 connections that each wait for their answer. Then half of that is due each second, " +
			"evenly, whether or not answers come, and latency runs from when a request was due. The site is asked as often, without a proxy, and so is nginx in front of it. " +
			"Collections are what Go says of them, beside the processor time of the whole node.",
		entries: []entry{
			{server: "ropeline", what: "admitted, " + highest, start: startAdmitted},
			{server: "ropeline", what: "admitted, " + half, halfOf: admitted + ", " + highest, start: startAdmitted},
			{server: site, what: half, halfOf: admitted + ", " + highest, start: func(p *place) *subject {
				return &subject{address: p.site, heads: [][]byte{head(strangerCookie)}, probe: isSite}
			}},
			{server: "nginx", what: half, halfOf: admitted + ", " + highest, needs: []string{"nginx"}, start: startNginx},
			{server: "ropeline", what: "waiting, " + highest, start: func(p *place) *subject { return startWaiting(p, asPage, 1000) }},
		},
		checks: []check{
			{
				text: "p99.9 of an admitted request at half of the highest rate, beyond the site [ms]", most: 2, rows: []string{admitted + ", " + half, site + ", " + half},
				of: func(s []sample) float64 { return 1e3 * (s[0][p999] - s[1][p999]) },
			},
			{text: "part of the processor time that collecting takes, admitted, at half of the highest rate", most: 0.1, rows: []string{admitted + ", " + half}, of: collected},
			{text: "the same at the highest rate", most: 0.1, rows: []string{admitted + ", " + highest}, of: collected},
			{text: "the same of visitors who wait, at the highest rate", most: 0.1, rows: []string{"ropeline, waiting, " + highest}, of: collected},
		},
	}
}

func collected(s []sample) float64 { return s[0][garbage] / 100 }
