package expr

// maxSteps bounds what an expression costs: steps for each byte that the head of a request may have. Matching a regular
// expression takes up to as many steps as it has, with its repetitions written out, for each byte of its value, and making text
// takes one. A visitor chooses the bytes, and a short source can ask for millions of steps.
const maxSteps = 2000

const (
	headBytes = 16 << 10 // of the head of a request; no value of a request is longer

	// As many elements as a head has room for. There are 100 fields at most; others take two bytes.
	maxFields = 100
	maxOthers = headBytes / 2
)

// cost is steps times bytes.
type cost int

// steps returns the cost for each byte of a head.
func (c cost) steps() int { return int((c + headBytes - 1) / headBytes) }

// length is how many bytes text has at most.
type length struct {
	elements int // what comes from elements, of all turns of a loop together
	apart    int // the rest, of each turn
}

func (l length) plus(m length) length { return length{l.elements + m.elements, l.apart + m.apart} }

// spend counts steps for each byte of some text, and refuses what is too much together.
func (c *checker) spend(at, steps int, of length) error {
	c.cost += cost(steps * of.elements)
	apart := &c.cost
	if c.loop != nil {
		apart = &c.loop.apart
	}
	*apart += cost(steps * of.apart)
	if n := max(c.cost, *apart).steps(); n > maxSteps {
		return c.errorf(at, "up to here the expression may take %d steps for each byte of a request: its regular expressions with their repetitions written out, times the values that concat joins, "+
			"and times all elements where any or all asks about more than [*]; %d are allowed: repeat less, join less, or ask outside of any and all", n, maxSteps)
	}
	return nil
}

// spendInLoop counts a step for each byte of what is not the element: looking once at what came is cheap, but not for each element.
func (c *checker) spendInLoop(at int, of length) error {
	if c.loop == nil {
		return nil
	}
	return c.spend(at, 1, length{apart: of.apart})
}

// looksFor counts what it takes to find a value among others.
func (c *checker) looksFor(t *typed) error {
	if t.shape == each {
		return c.spend(t.at, 1, t.length)
	}
	return c.spendInLoop(t.at, t.length)
}

// passes returns how often f goes over the text that it makes.
func (f *function) passes() int { return max(f.repeats, 1) }

// most returns how many elements an array may have.
func (t *typed) most() int {
	if t.ofFields {
		return maxFields
	}
	return maxOthers
}
