// Package replay runs small meshes of whole shipped nodes through histories: a few things
// that operators do, at exact moments, and a few deviations of network, disk and machine
// from what is usual. The same history always runs the same way, so one that breaks a
// promise can be run again from its text.
//
// A crowd asks at all nodes, so that every right that exists is used. What is true is
// counted from the passes that visitors hold and from the limits that operators set, never
// from what nodes say. All of it runs in virtual time, in one goroutine.
package replay

import (
	"fmt"
	"slices"
	"strings"
)

// Act is what an operator does.
type Act string

// The acts. Each is at a node; Dead also names the node that is told.
const (
	Raise   Act = "raise"   // the limit, by the first one
	Lower   Act = "lower"   // the limit, to half
	Leave   Act = "leave"   // for good, with an heir
	Kill    Act = "kill"    // the process, which is started again when the history is over
	Restart Act = "restart" // kills the process and starts it again a second later
	Dead    Act = "dead"    // the disk is lost, and another node is told so for good
	Remake  Act = "remake"  // deletes the room, and makes another one in its place
	Policy  Act = "policy"  // switches the policy to counter, and back
)

var acts = []Act{Raise, Lower, Leave, Kill, Restart, Dead, Remake, Policy}

// Moment is when an act comes, counted from the one before it.
type Moment string

// The moments.
const (
	Now     Moment = ""  // together with it
	Minted  Moment = "m" // a node has written that it made or burnt rights
	Taken   Moment = "t" // a node has written that it took over, or recovered, another's rights
	Soon    Moment = "1" // a second later
	Settled Moment = "s" // five seconds later
)

var moments = []Moment{Now, Minted, Taken, Soon, Settled}

// Step is one act of a history.
type Step struct {
	When Moment
	Act  Act
	Node int // from 0
	Told int // of Dead: the node that is told
}

// steps returns every act at every node, at every moment.
func steps(nodes int) (all []Step) {
	for _, a := range acts {
		for n := range nodes {
			for told := range nodes {
				if a == Dead && told == n || a != Dead && told > 0 {
					continue
				}
				for _, when := range moments {
					all = append(all, Step{when, a, n, told})
				}
			}
		}
	}
	return all
}

// Deviation is what may go wrong besides what operators do.
type Deviation string

// The deviations.
const (
	Lost   Deviation = "lost"   // a message does not arrive
	Twice  Deviation = "twice"  // it arrives again 1.5 s later
	Late   Deviation = "late"   // it arrives 3 s late
	Before Deviation = "before" // a node crashes before a write is on its disk, and starts a second later
	After  Deviation = "after"  // the same, with the write on its disk
	Cut    Deviation = "cut"    // a node is cut off from all others for 4 s
)

// Beside messages there are writes of a node, and its links, which have an occasion with each step.
const (
	write = "write"
	links = "links"
)

// kinds are the messages that rights and what the mesh is told of them go with, by their
// numbers on the wire. A deviation is tried with these alone.
var kinds = map[uint8]string{
	1: "facts", 16: "transfer-ack", 15: "transfer", 18: "handover", 19: "offer", 20: "agreed", 23: "known", 24: "kept", 25: "inquiry", 26: "receipts",
}

// deviations returns what may go wrong with messages of a kind, writes, or links.
func deviations(kind string) []Deviation {
	switch kind {
	case write:
		return []Deviation{Before, After}
	case links:
		return []Deviation{Cut}
	}
	for _, k := range kinds {
		if k == kind {
			return []Deviation{Lost, Twice, Late}
		}
	}
	return nil
}

// History is a mesh and what happens to it.
type History struct {
	Rate   bool   // new users within a minute are what is limited, and not places
	Layout string // the site of each node, a letter each
	IDs    string // the order of the ids of the nodes, a digit each: node 1 of "312" has the greatest
	Steps  []Step

	// Twists are deviations: what goes wrong, with which kind of message of whom to whom, and with which
	// of those since the first act, from 1. So it is of writes and links, which are of one node.
	Twists []string
}

// byRate is what the text of a history begins with in which the rate is limited.
const byRate = "rate "

// String returns the text that Parse reads: abc/123: raise@2, m leave@1, t kill@1 | lost transfer 1>2 #1
func (h History) String() string {
	var b strings.Builder
	if h.Rate {
		b.WriteString(byRate)
	}
	fmt.Fprintf(&b, "%s/%s: ", h.Layout, h.IDs)
	for i, s := range h.Steps {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s.String())
	}
	if len(h.Twists) > 0 {
		b.WriteString(" | " + strings.Join(h.Twists, "; "))
	}
	return b.String()
}

func (s Step) String() string {
	text := fmt.Sprintf("%s@%d", s.Act, s.Node+1)
	if s.Act == Dead {
		text += fmt.Sprintf(">%d", s.Told+1)
	}
	if s.When != Now {
		text = string(s.When) + " " + text
	}
	return text
}

// Parse reads the text of a history.
func Parse(text string) (h History, err error) {
	head, rest, _ := strings.Cut(text, ":")
	head, h.Rate = strings.CutPrefix(head, byRate)
	h.Layout, h.IDs, _ = strings.Cut(head, "/")
	ids := []byte(h.IDs)
	slices.Sort(ids)
	if n := len(h.Layout); n < 2 || n > 9 || string(ids) != "123456789"[:n] {
		return h, fmt.Errorf("history %q: want it to begin with sites and the order of ids, as in abc/123", text)
	}
	steps, twists, twisted := strings.Cut(rest, "|")
	if h.Steps, err = parsed(steps, ",", h.parseStep); err == nil && twisted {
		h.Twists, err = parsed(twists, ";", h.parseTwist)
	}
	return h, err
}

func parsed[T any](text, by string, parse func(string) (T, error)) (all []T, err error) {
	for part := range strings.SplitSeq(text, by) {
		x, err := parse(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

func (h History) parseStep(text string) (Step, error) {
	for _, s := range steps(len(h.Layout)) {
		if s.String() == text {
			return s, nil
		}
	}
	return Step{}, fmt.Errorf("step %q: want an act at a node, as in m leave@1", text)
}

func (h History) parseTwist(text string) (string, error) {
	words, nodes := strings.Fields(text), "123456789"[:len(h.Layout)]
	if len(words) == 4 && slices.Contains(deviations(words[1]), Deviation(words[0])) {
		who, nth := strings.Trim(words[2], nodes), strings.TrimLeft(words[3], "#0123456789")
		if (who == "" || who == ">") && nth == "" {
			return strings.Join(words, " "), nil
		}
	}
	return "", fmt.Errorf("deviation %q: want lost, twice or late with a message, as in lost transfer 1>2 #1; before or after write 1 #1; cut links 1 #1", text)
}
