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
	"cmp"
	"fmt"
	"slices"
	"strconv"
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

// Acts returns all acts.
func Acts() []Act { return []Act{Raise, Lower, Leave, Kill, Restart, Dead, Remake, Policy} }

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

// Moments returns all moments.
func Moments() []Moment { return []Moment{Now, Minted, Taken, Soon, Settled} }

// Step is one act of a history.
type Step struct {
	When Moment
	Act  Act
	Node int // from 0
	Told int // of Dead: the node that is told
}

// Twist is one deviation.
type Twist struct {
	What Deviation

	// Of a message: its kind, from whom to whom, and which of those since the first act, from
	// 1. Of a write: From is the node, and Nth counts its writes. Of a cut: From is the node
	// that is cut off from all others, and Nth the step, from 1, with which that begins.
	Kind, From, To, Nth int
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
	Cut    Deviation = "cut"    // a node is cut off for 4 s
)

// History is a mesh and what happens to it.
type History struct {
	Rate   bool   // new users within a minute are what is limited, and not places
	Layout string // the site of each node, a letter each
	IDs    string // the order of the ids of the nodes, a digit each: node 1 of "312" has the greatest
	Steps  []Step
	Twists []Twist
}

// byRate is what the text of a history begins with in which the rate is limited.
const byRate = "rate "

// String returns the text that Parse reads: abc/123: raise@2, m leave@1, t kill@1 | lost transfer 1>2 #1
func (h History) String() string {
	var b strings.Builder
	if h.Rate {
		b.WriteString(byRate)
	}
	fmt.Fprintf(&b, "%s/%s:", h.Layout, h.IDs)
	for i, s := range h.Steps {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte(' ')
		b.WriteString(s.String())
	}
	for i, t := range h.Twists {
		b.WriteString([]string{" | ", "; "}[min(i, 1)])
		b.WriteString(t.String())
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

func (t Twist) String() string {
	switch t.What {
	case Before, After:
		return fmt.Sprintf("%s write %d #%d", t.What, t.From+1, t.Nth)
	case Cut:
		return fmt.Sprintf("%s %d #%d", t.What, t.From+1, t.Nth)
	}
	return fmt.Sprintf("%s %s %d>%d #%d", t.What, kindName(t.Kind), t.From+1, t.To+1, t.Nth)
}

// compare orders histories by how much is in them.
func (h History) compare(o History) int {
	return cmp.Or(cmp.Compare(len(h.Steps)+len(h.Twists), len(o.Steps)+len(o.Twists)),
		cmp.Compare(len(h.Twists), len(o.Twists)), strings.Compare(h.String(), o.String()))
}

// Parse reads the text of a history.
func Parse(text string) (h History, err error) {
	head, rest, ok := strings.Cut(text, ":")
	head, h.Rate = strings.CutPrefix(strings.TrimSpace(head), byRate)
	h.Layout, h.IDs, _ = strings.Cut(strings.TrimSpace(head), "/")
	if !ok || !h.valid() {
		return h, fmt.Errorf("history %q: want it to begin with sites and the order of ids, as in abc/123", text)
	}
	acts, twists, _ := strings.Cut(rest, "|")
	for part := range strings.SplitSeq(acts, ",") {
		s, err := h.parseStep(strings.Fields(part))
		if err != nil {
			return h, err
		}
		h.Steps = append(h.Steps, s)
	}
	if strings.TrimSpace(twists) == "" {
		return h, nil
	}
	for part := range strings.SplitSeq(twists, ";") {
		t, err := h.parseTwist(strings.Fields(part))
		if err != nil {
			return h, err
		}
		h.Twists = append(h.Twists, t)
	}
	return h, nil
}

func (h History) valid() bool {
	if len(h.Layout) != len(h.IDs) || len(h.Layout) < 2 || len(h.Layout) > 9 {
		return false
	}
	for i := range h.IDs {
		if !strings.Contains(h.IDs, strconv.Itoa(i+1)) {
			return false
		}
	}
	return true
}

func (h History) parseStep(words []string) (s Step, err error) {
	bad := fmt.Errorf("step %q: want an act at a node, as in m leave@1", strings.Join(words, " "))
	if len(words) == 2 {
		s.When, words = Moment(words[0]), words[1:]
	}
	if len(words) != 1 || !slices.Contains(Moments(), s.When) {
		return s, bad
	}
	act, where, _ := strings.Cut(words[0], "@")
	at, told, _ := strings.Cut(where, ">")
	s.Act = Act(act)
	if s.Node, err = h.node(at); err != nil || !slices.Contains(Acts(), s.Act) {
		return s, bad
	}
	if s.Act == Dead {
		if s.Told, err = h.node(told); err != nil || s.Told == s.Node {
			return s, bad
		}
	}
	return s, nil
}

func (h History) parseTwist(words []string) (t Twist, err error) {
	bad := fmt.Errorf("deviation %q: want lost, twice or late with a message, as in lost transfer 1>2 #1; before or after write 1 #1; cut 1 #1", strings.Join(words, " "))
	if len(words) < 3 {
		return t, bad
	}
	t.What = Deviation(words[0])
	nth, of := words[len(words)-1], words[len(words)-2]
	if t.Nth, err = strconv.Atoi(strings.TrimPrefix(nth, "#")); err != nil {
		return t, bad
	}
	switch t.What {
	case Lost, Twice, Late:
		from, to, _ := strings.Cut(of, ">")
		t.Kind = kindOf(words[1])
		if t.From, err = h.node(from); err == nil {
			t.To, err = h.node(to)
		}
		if err != nil || t.Kind == 0 {
			return t, bad
		}
	case Before, After, Cut:
		if t.From, err = h.node(of); err != nil {
			return t, bad
		}
	default:
		return t, bad
	}
	return t, nil
}

func (h History) node(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(h.Layout) {
		return 0, fmt.Errorf("node %q: want 1 to %d", text, len(h.Layout))
	}
	return n - 1, nil
}

// kinds are the messages that rights and what the mesh is told of them go with, by their
// numbers on the wire. A deviation is tried with these alone.
var kinds = map[int]string{1: "facts", 16: "transfer-ack", 15: "transfer", 18: "handover", 19: "offer", 20: "agreed", 23: "known", 24: "kept", 25: "inquiry", 26: "receipts"}

func kindName(kind int) string { return kinds[kind] }

func kindOf(name string) int {
	for k, n := range kinds {
		if n == name {
			return k
		}
	}
	return 0
}
