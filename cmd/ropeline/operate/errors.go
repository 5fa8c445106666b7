package operate

// NotReached says that no node has answered.
type NotReached struct{ Err error }

// Error implements error.
func (e NotReached) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e NotReached) Unwrap() error { return e.Err }

// Refused says that a node has answered, and does not do it.
type Refused struct {
	Status int    // of HTTP
	Text   string // each mistake on a line of its own
}

// Error implements error.
func (e Refused) Error() string { return e.Text }
