package transport

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var oldID, newID = SecretID{1}, SecretID{2}

const (
	testSettle = 5 * time.Minute
	testLinger = time.Hour
)

// rotating is nodes that rotate, and who has heard whom.
type rotating struct {
	now   time.Time
	nodes []*Rotation
}

func newRotating(n int) *rotating {
	c := &rotating{now: time.Unix(1_800_000_000, 0)}
	for range n {
		c.nodes = append(c.nodes, NewRotation([]SecretID{oldID}, SecretID{}, testSettle, testLinger, c.now))
	}
	return c
}

// others are the members as node i sees them.
func (c *rotating) others(i int) (ids []PeerID) {
	for j := range c.nodes {
		if j != i {
			ids = append(ids, testID(j+1))
		}
	}
	return ids
}

// ask has node i hear node j, and decide.
func (c *rotating) ask(i, j int) {
	if i != j {
		c.nodes[i].Heard(testID(j+1), c.nodes[j].Announce(c.now))
	}
	c.nodes[i].Decide(c.others(i), c.now)
}

func (c *rotating) askAll() {
	for i := range c.nodes {
		for j := range c.nodes {
			c.ask(i, j)
		}
	}
}

// check is what rotation is for: what any node uses, all accept.
func (c *rotating) check(t interface{ Fatalf(string, ...any) }) {
	for i, a := range c.nodes {
		for j, b := range c.nodes {
			if !slices.Contains(b.Accepts(), a.Uses()) {
				t.Fatalf("node %d uses %v, and node %d accepts %v alone", i, a.Uses(), j, b.Accepts())
			}
		}
	}
}

// TestRotationInAnyOrder has nodes be told, hear of one another, be restarted and
// decide in every order that chance brings.
func TestRotationInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "nodes")
		c := newRotating(n)
		file := make([][]SecretID, n)
		for i := range file {
			file[i] = []SecretID{oldID}
		}
		steps := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 200).Draw(t, "steps")
		for _, step := range steps {
			i := rapid.IntRange(0, n-1).Draw(t, "node")
			switch step {
			case 0: // announced; whether the old one is left in is up to the operator
				file[i] = rapid.SampledFrom([][]SecretID{{newID, oldID}, {newID}}).Draw(t, "file")
				c.nodes[i].Give(file[i], c.now)
			case 1, 2:
				c.ask(i, rapid.IntRange(0, n-1).Draw(t, "peer"))
			case 3:
				c.now = c.now.Add(time.Duration(rapid.Int64Range(1, int64(2*testSettle)).Draw(t, "time")))
			case 4: // restarted, with what it had accepted still in the file
				if len(file[i]) == len(c.nodes[i].Accepts()) {
					c.nodes[i] = NewRotation(file[i], c.nodes[i].Uses(), testSettle, testLinger, c.now)
				}
			}
			c.check(t)
		}
		// Once all are told, all come to use it, and the old one goes.
		for i := range n {
			c.nodes[i].Give([]SecretID{newID}, c.now)
		}
		for range 3 {
			c.now = c.now.Add(testSettle)
			c.askAll()
			c.check(t)
		}
		for i, r := range c.nodes {
			if r.Uses() != newID || r.Waits() {
				t.Fatalf("node %d goes on with %v", i, r.Uses())
			}
		}
		c.now = c.now.Add(testLinger)
		c.askAll()
		c.check(t)
		for i, r := range c.nodes {
			if r.Retires() || slices.Contains(r.Accepts(), oldID) {
				t.Fatalf("node %d still accepts %v", i, r.Accepts())
			}
		}
	})
}

// TestRotationWaitsForAll: nobody uses what one member has not had for long enough, be
// it silent or out of reach.
func TestRotationWaitsForAll(t *testing.T) {
	c := newRotating(3)
	both := []SecretID{newID, oldID}
	c.nodes[0].Give(both, c.now)
	c.nodes[1].Give(both, c.now)
	c.now = c.now.Add(24 * time.Hour)
	c.askAll()
	if got := c.nodes[0].Missing(c.others(0)); len(got) != 1 || got[0] != testID(3) {
		t.Fatalf("missing are %v, want the third", got)
	}
	c.nodes[2].Give(both, c.now)
	for _, step := range []struct {
		after time.Duration
		uses  SecretID
	}{{0, oldID}, {testSettle - time.Second, oldID}, {time.Second, newID}} {
		c.now = c.now.Add(step.after)
		c.askAll()
		for i, r := range c.nodes {
			if r.Uses() != step.uses {
				t.Errorf("%v later node %d uses %v, want %v", step.after, i, r.Uses(), step.uses)
			}
		}
	}
}

func TestWhatWasUsedBeforeARestart(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		given      []SecretID
		used, want SecretID
	}{
		{[]SecretID{newID, oldID}, SecretID{}, oldID},
		{[]SecretID{newID, oldID}, newID, newID},
		{[]SecretID{newID, oldID}, oldID, oldID},
		{[]SecretID{newID}, oldID, newID},
		{[]SecretID{oldID}, SecretID{}, oldID},
	} {
		if got := NewRotation(c.given, c.used, testSettle, testLinger, now).Uses(); got != c.want {
			t.Errorf("given %v, used %v before: uses %v, want %v", c.given, c.used, got, c.want)
		}
	}
}

func FuzzParseAnnouncement(f *testing.F) {
	f.Add(AppendAnnouncement(nil, Announcement{Uses: oldID}))
	f.Add(AppendAnnouncement(nil, Announcement{Uses: newID, Has: []HeldSecret{{newID, time.Minute}, {oldID, 3 * time.Hour}}}))
	f.Add([]byte{announcementVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseAnnouncement(b)
		if err == nil && !bytes.Equal(AppendAnnouncement(nil, a), b) {
			t.Errorf("%x is read as %+v", b, a)
		}
		if len(a.Has) > 2*MaxSecrets {
			t.Errorf("%d secrets", len(a.Has))
		}
	})
}
