package measurement

// Broken is what a run adds at its end, once: how much did not hold in all rows. Tables leave it out.
func (r *Run) Broken(n int) { r.Add("all", Values{InAll.Name: float64(n)}) }

// InAll is the unit of [Run.Broken], and NothingBroken its bound, for entries whose rows hold or not.
var (
	InAll         = Unit{Name: "broken-in-all", Meaning: "what did not hold, in all rows", Better: "lower", Exact: true, Aside: true}
	NothingBroken = Bound{Row: "all", Unit: InAll.Name, Most: NoneAtAll, Text: "what did not hold"}
)
