package small

import "github.com/ropeline/ropeline/node/ticket"

// Worlds returns the worlds that are searched, each with the minter's id at every place in
// the order of ids: who is named, takes over and recovers follows from these. Two nodes do
// what is due at any time; three do it after each event, or there would be too many states. All
// are without some rules.
func Worlds(leaveOut ticket.Rules) (all []Config) {
	for _, b := range []Budget{
		{Limits: 1, Leaves: 1, Crowds: 1},
		{Limits: 2, Crowds: 1},
		{Stops: 1, Gifts: 1, Crowds: 2, Ends: 1},
		{Leaves: 1, Gifts: 1, Crowds: 2, Ends: 1},
		{Losses: 1, Limits: 1, Crowds: 2, Ends: 1},
		{Losses: 1, Gifts: 1, Crowds: 2, Ends: 1},
		{Limits: 1, Leaves: 1, Stops: 1},
	} {
		for minter := range 2 {
			all = append(all, Config{Nodes: 2, Minter: minter, Budget: b})
		}
	}
	for _, b := range []Budget{
		{Limits: 1, Leaves: 1},
		{Leaves: 2},
		{Leaves: 1, Gifts: 1, Crowds: 1},
		{Losses: 1, Leaves: 1},
		{Losses: 1, Limits: 1},
		{Losses: 1, Crowds: 2, Ends: 1},
		{Losses: 1, Leaves: 1, Limits: 1},
	} {
		for minter := range 3 {
			all = append(all, Config{Nodes: 3, Minter: minter, Budget: b, Coarse: true})
		}
	}
	for _, b := range []Budget{{Losses: 2, Leaves: 1}, {Losses: 1, Leaves: 1, Gifts: 1}} {
		for minter := range 3 {
			all = append(all, Config{Nodes: 3, Minter: minter, Budget: b, Coarse: true, Halfway: true})
		}
	}
	for i := range all {
		all[i].LeaveOut = leaveOut
	}
	return all
}
