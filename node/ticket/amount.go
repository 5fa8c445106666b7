package ticket

import "math/bits"

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

// scaled returns ⌊held · limit / minted⌋, at most held; all of it where no more is
// minted than the limit says.
func scaled(held, limit, minted int64) int64 {
	if held <= 0 || minted <= limit {
		return held
	}
	hi, lo := bits.Mul64(uint64(held), uint64(max(0, limit)))
	if hi >= uint64(minted) {
		return held
	}
	q, _ := bits.Div64(hi, lo, uint64(minted))
	return min(held, int64(q))
}
