package limit

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// ID names a rule. It is random; the zero value names none.
type ID [16]byte

// String returns the id as 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads the form that String writes.
func ParseID(s string) (id ID, err error) {
	if len(s) != 2*len(id) {
		return id, fmt.Errorf("id %q: want %d hexadecimal digits", s, 2*len(id))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("id %q: %w", s, err)
	}
	return id, nil
}

// Rule is a limit on how many requests of a kind may come within a period. See
// WithDefaults for what may be left at zero.
type Rule struct {
	ID          ID
	Name        string // unique; in headers, metrics and logs
	Description string // for the operator; at most 500 characters
	Disabled    bool   // as if it were not there

	// Expression says which requests are limited; httpfront/gate/expr has the language.
	Expression string

	// Characteristics say which requests count together: those for which all of them
	// have the same values. A field that a request does not have and one that is empty
	// are two values. None: all requests count together. Each is VisitorID or a field of
	// the language with one value, such as ip.src or http.request.headers["x-api-key"].
	Characteristics []string

	// IPv4Prefix and IPv6Prefix are how many bits of ip.src count as a characteristic.
	IPv4Prefix, IPv6Prefix int

	Period            time.Duration // whole seconds
	RequestsPerPeriod int

	// MitigationTimeout is for how long requests are limited once there were too many:
	// whole seconds. 0, or less than it takes: until there would be few enough again.
	MitigationTimeout time.Duration

	// CountingExpression says which of the requests of Expression are counted; empty:
	// all that were not limited. It may ask about the response as well.
	CountingExpression string

	Action   Action
	Response Response // of Block
	Scope    Scope
}

// VisitorID is the characteristic that is the id in a visitor's pass, and for those who
// have none their address.
const VisitorID = "ropeline.visitor_id"

// Source is the characteristic that is the address of who asks, or its network.
const Source = "ip.src"

// Action is what becomes of a request that is limited.
type Action string

const (
	// Block answers the request.
	Block Action = "block"
	// Queue answers it with the page of its room: who has no pass of the room waits from
	// then on, like everybody; who has one keeps it. Where there is no room it is as Block.
	Queue Action = "queue"
	// Log lets it pass, and is in log and metrics.
	Log Action = "log"
)

// Scope is how far requests are counted together.
type Scope string

const (
	Mesh Scope = "mesh" // over all sites
	Site Scope = "site" // each site for itself
)

// Response is the answer to a request that is blocked.
type Response struct {
	StatusCode  int    // 400 to 499
	Content     string // the body; empty: a short page in the visitor's language
	ContentType string // of Content
}

// ContentTypes are what Response.ContentType may be.
var ContentTypes = []string{"text/plain", "text/html", "application/json", "text/xml"}

// What a rule may say.
const (
	MaxRules           = 100
	MaxName            = 64 // characters
	MaxCharacteristics = 8
	MaxCharacteristic  = 256 // bytes of one, so that a rule fits into one value of the catalog
	MinPeriod          = time.Second
	MaxPeriod          = 24 * time.Hour
	MaxRequests        = 1_000_000_000 // in one period
	MaxMitigation      = 24 * time.Hour
	MaxContent         = 30 << 10 // bytes

	maxDescription = 500 // characters, as of rooms
)

// WithDefaults returns a copy in which what may be left out has its default.
func (r Rule) WithDefaults() Rule {
	Fields.Fill(&r)
	return r
}

// Clone returns a copy that shares nothing with r that can be changed.
func (r Rule) Clone() Rule {
	r.Characteristics = slices.Clone(r.Characteristics)
	return r
}

// IsName reports whether a rule may have that name.
func IsName(name string) bool {
	return 0 < len(name) && len(name) <= MaxName &&
		strings.Trim(name, "-_.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// Validate returns what of a rule cannot be used, but for what its expressions say and
// which fields its characteristics name. Nil: nothing.
func (r *Rule) Validate() (errs []*room.FieldError) {
	fail := func(field, value, allowed string) {
		errs = append(errs, &room.FieldError{Field: field, Value: value, Allowed: allowed})
	}
	for _, f := range Fields.Refused(r) {
		fail(f.Name, f.Given, f.Allowed)
	}
	r.checkCharacteristics(fail)
	return errs
}

func (r *Rule) checkCharacteristics(fail func(field, value, allowed string)) {
	const field = "characteristics"
	if n := len(r.Characteristics); n > MaxCharacteristics {
		fail(field, strconv.Itoa(n), fmt.Sprintf("at most %d", MaxCharacteristics))
	}
	for i, c := range r.Characteristics {
		switch {
		case c == "":
			fail(fmt.Sprintf("%s[%d]", field, i), "", "a field such as "+Source)
		case len(c) > MaxCharacteristic:
			fail(fmt.Sprintf("%s[%d]", field, i), strconv.Itoa(len(c))+" bytes", fmt.Sprintf("a field of at most %d bytes", MaxCharacteristic))
		case slices.Contains(r.Characteristics[:i], c):
			fail(fmt.Sprintf("%s[%d]", field, i), c, "each field once")
		case c == VisitorID && slices.Contains(r.Characteristics, Source):
			fail(fmt.Sprintf("%s[%d]", field, i), c, fmt.Sprintf("either %s or %s: who has no pass counts by address already", VisitorID, Source))
		}
	}
}

// Counting identifies what a rule counts: while it stays the same, so do the counters.
// Another limit or action does not change it.
func (r *Rule) Counting() Rule {
	return Rule{
		ID: r.ID, Expression: r.Expression, Characteristics: r.Characteristics, IPv4Prefix: r.IPv4Prefix, IPv6Prefix: r.IPv6Prefix,
		Period: r.Period, CountingExpression: r.CountingExpression, Scope: r.Scope,
	}
}
