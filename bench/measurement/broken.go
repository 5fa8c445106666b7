package measurement

import "errors"

// errBroken says that a promise was broken; which one stands below the table.
var errBroken = errors.New("not everything held")

// Broken is what a run adds at its end, once: how much did not hold in all rows. Tables leave it out. Unless that is nothing,
// it is an error.
func (r *Run) Broken(n int) error {
	r.Add("all", Values{InAll.Name: float64(n)})
	if n > 0 {
		return errBroken
	}
	return nil
}

// InAll is the unit of [Run.Broken], and NothingBroken its bound, for entries whose rows hold or not.
var (
	InAll         = Unit{Name: "broken-in-all", Meaning: "what did not hold, in all rows", Better: "lower", Exact: true, Aside: true}
	NothingBroken = Bound{Row: "all", Unit: InAll.Name, Most: NoneAtAll, Text: "what did not hold"}
)
