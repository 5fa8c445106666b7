package room

import (
	"fmt"
	"slices"
	"strconv"
)

// Front is what the front of a node needs to know of a room, and the rules of the
// queue do not. The zero value is the built-in page in English, no rules, and JSON for
// programs. Validate looks at its form; what its texts mean, such as expressions and
// templates, is known to the front alone.
type Front struct {
	// Rules say which requests the room has nothing to do with; at most MaxRules.
	Rules []Rule

	CustomPage     string   // Mustache; empty: the built-in page
	Language       string   // of whom no other suits, a tag such as "de-DE"; empty: "en-US"
	Message        string   // what the operator has to say to all who wait; plain text
	NoJSON         bool     // programs get the page, as browsers do
	FrameAncestors []string // who may show the page in a frame; nil: its own origin

	Cookie  CookieAttributes // of the pass
	Binding Binding          // from where a pass may be shown

	CrawlerBypass bool // crawlers of search engines pass as if there were no room

	NewVisitors NewVisitors // how many may join the line of a node
	Sharing     Sharing     // by how many addresses a pass may be used
}

// MaxRules is how many rules a room may have. Each costs every request that none
// before it is true of.
const MaxRules = 100

// Rule says what becomes of the requests that an expression is true of.
type Rule struct {
	Expression  string // httpfront/gate/expr has the language
	Description string // for the operator; at most 500 characters
	Disabled    bool   // as if it were not there
	Action      RuleAction
}

// RuleAction is what becomes of a request.
type RuleAction string

// Bypass lets a request pass to the origin as if there were no room: it is not
// counted, and its visitor gets no pass.
const Bypass RuleAction = "bypass"

// clone returns a copy that shares nothing that can be changed.
func (f Front) clone() Front {
	f.Rules = slices.Clone(f.Rules)
	f.FrameAncestors = slices.Clone(f.FrameAncestors)
	return f
}

const maxDescription = 500 // characters, as of elsewhere

func (c *checks) front(f *Front) {
	c.cookie(&f.Cookie)
	c.sharing(&f.Sharing)
	if n := len(f.Rules); n > MaxRules {
		c.add("rules", strconv.Itoa(n), fmt.Sprintf("at most %d rules", MaxRules))
	}
	for i := range f.Rules {
		judge(c, fmt.Sprintf("rules[%d].", i), RuleFields, &f.Rules[i])
	}
}
