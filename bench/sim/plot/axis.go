package plot

// clock is the unit in which the time of a run is written.
type clock struct {
	seconds float64 // of one unit
	name    string
}

// clockFor returns minutes for runs up to some hours, and hours beyond.
func clockFor(seconds float64) clock {
	if seconds > 4*3600 {
		return clock{3600, "hours"}
	}
	return clock{60, "minutes"}
}
