package limit

// Terms are what counting needs of a rule.
type Terms struct {
	Slot     uint16 // which of the rules of this node it is
	Period   Millis
	Requests uint32 // in one period
	Timeout  Millis // of mitigation; at least until there would be few enough again
}

// Terms returns those of a rule that has a slot.
func (r *Rule) Terms(slot uint16) *Terms {
	return &Terms{
		Slot: slot, Period: Millis(r.Period.Milliseconds()), Requests: uint32(r.RequestsPerPeriod),
		Timeout: Millis(r.MitigationTimeout.Milliseconds()),
	}
}
