package ticket

// Amount is a number of rights: places for active visitors, and rights to let in
// one new visitor in any 60 s. The two move side by side. The zero value is none.
type Amount struct {
	Places, Rate int64
}

// Add returns both together.
func (a Amount) Add(b Amount) Amount { return Amount{a.Places + b.Places, a.Rate + b.Rate} }

// Sub returns a without b; either number may become negative.
func (a Amount) Sub(b Amount) Amount { return Amount{a.Places - b.Places, a.Rate - b.Rate} }

// Min returns the smaller number of each kind.
func (a Amount) Min(b Amount) Amount {
	return Amount{min(a.Places, b.Places), min(a.Rate, b.Rate)}
}

// Max returns the larger number of each kind.
func (a Amount) Max(b Amount) Amount {
	return Amount{max(a.Places, b.Places), max(a.Rate, b.Rate)}
}

// IsZero reports whether there are none of either kind.
func (a Amount) IsZero() bool { return a == Amount{} }
