package httpfront

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

var update = flag.Bool("update", false, "write the files that answers are compared with")

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// situations are answers in every state that a room can be in, at noon, to a
// visitor who came at 11:50 and was last counted at 11:59:40.
func situations() map[string]waiting {
	base := func(method room.Method, e room.Estimate, event room.EventState) waiting {
		s := room.Settings{
			ID: crdt.RoomID{1}, Name: "shop", QueueingMethod: method,
			SessionDuration: 5 * time.Minute, PlaceKept: 5 * time.Minute, RefreshInterval: 20 * time.Second,
		}
		return waiting{
			req: &request{method: "GET"}, settings: &s, now: noon,
			verdict: node.Verdict{
				Pass:     node.Pass{Arrival: noon.Add(-10 * time.Minute), LastPoll: noon.Add(-20 * time.Second)},
				Estimate: e, Refresh: 20 * time.Second, View: &room.View{Event: event},
			},
		}
	}
	place := room.Estimate{Known: true, Minutes: 61, Position: 1235, Ahead: 1234}
	chance := room.Estimate{Known: true, Minutes: 9, P25: 5, P75: 72}
	sale := room.EventState{
		Name: "sale", PrequeueStart: noon.Add(-15 * time.Minute), Start: noon.Add(10*time.Minute + time.Second), End: noon.Add(3 * time.Hour),
	}
	before, during := sale, sale
	before.Prequeueing, before.Shuffle = true, true
	during.Active, during.Start = true, noon.Add(-time.Minute)
	inOrder := before
	inOrder.Shuffle = false
	out := map[string]waiting{
		"fifo":                       base(room.FIFO, place, room.EventState{}),
		"fifo without an estimate":   base(room.FIFO, room.Estimate{Position: 3, Ahead: 2}, room.EventState{}),
		"fifo for more than a day":   base(room.FIFO, room.Estimate{Known: true, Minutes: 1441, Position: 9, Ahead: 8}, room.EventState{}),
		"random":                     base(room.Random, chance, room.EventState{}),
		"random without an estimate": base(room.Random, room.Estimate{}, room.EventState{}),
		"pre-queue that shuffles":    base(room.FIFO, room.Estimate{}, before),
		"pre-queue in order":         base(room.FIFO, room.Estimate{Position: 41, Ahead: 40}, inOrder),
		"pre-queue but came before":  base(room.FIFO, place, before),
		"event":                      base(room.FIFO, place, during),
	}
	early := out["pre-queue but came before"]
	early.verdict.Pass.Arrival = noon.Add(-16 * time.Minute)
	out["pre-queue but came before"] = early
	held := base(room.FIFO, place, room.EventState{})
	held.settings.QueueAll = true
	out["queue all"] = held
	reject := base(room.Reject, room.Estimate{}, room.EventState{})
	reject.verdict.Refresh, reject.verdict.Pass = 0, node.Pass{}
	out["reject"] = reject
	return out
}

// TestJSONOfEverySituation compares with files under testdata/json. After a wanted
// change, write them again with -update and look at the difference.
func TestJSONOfEverySituation(t *testing.T) {
	for name, w := range situations() {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := json.Indent(&got, w.appendJSON(nil), "", "  "); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "json", strings.ReplaceAll(name, " ", "-")+".json")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s holds\n%s\nand the answer is now\n%s", path, want, got.Bytes())
			}
		})
	}
}

// TestPageOfEverySituation: what a browser shows, without the script.
func TestPageOfEverySituation(t *testing.T) {
	p, err := newPage(pageSource)
	if err != nil {
		t.Fatal(err)
	}
	const stay = "Please do not close this page."
	for name, want := range map[string]struct {
		shown  string // the page's text from the top on
		reload bool
	}{
		"fifo": {"You are in line | Many people want to come in right now. You will be let in automatically when it is your turn. Reloading this page does not move you forward or back. | " +
			"Your position | 1,235 | People ahead of you | 1,234 | Estimated wait | 1 hour and 1 minute | " + stay, true},
		"fifo without an estimate": {"You are in line | Many people", true},
		"fifo for more than a day": {"You are in line | Many people", true},
		"random": {"You are waiting to come in | Many people want to come in right now. The order in which they are admitted is random: nothing is gained by coming earlier or by reloading this page. | " +
			"Estimated wait | 5 minutes - 1 hour and 12 minutes | " + stay, true},
		"random without an estimate": {"You are waiting to come in | Many people", true},
		"pre-queue that shuffles": {"It has not started yet | At the start, all who are here get their places in line at random. There is no need to hurry, and nothing is gained by reloading this page. | " +
			"Starts in | 11 minutes | " + stay, true},
		"pre-queue in order": {"It has not started yet | At the start, people are admitted in the order in which they came. You have your place, and reloading this page does not change it. | " +
			"Your position | 41 | People ahead of you | 40 | Starts in | 11 minutes | " + stay, true},
		"pre-queue but came before": {"You are in line | Many people", true},
		"event":                     {"You are in line | Many people", true},
		"queue all": {"You are in line | Nobody is let in at the moment. Your place is kept, and you will be let in automatically when the line moves and it is your turn. | " +
			"Your position | 1,235 | People ahead of you | 1,234 | Estimated wait | not known yet | " + stay, true},
		"reject": {"Nobody is let in right now | Nobody can queue at the moment either, and this page does not reload by itself. Please come back later. | Last updated | 12:00:00 UTC", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, ok := situations()[name]
			if !ok {
				t.Fatal("there is no such situation")
			}
			page := p.append(nil, &w)
			if got := shownText(t, page); !strings.HasPrefix(got, want.shown) {
				t.Errorf("the page shows\n\t%s\nwant it to begin with\n\t%s", got, want.shown)
			}
			if got := bytes.Contains(page, []byte(`<meta http-equiv="refresh" content="20">`)); got != want.reload {
				t.Errorf("reloads without a script: %v, want %v", got, want.reload)
			}
			if bytes.Contains(page, []byte("{{")) || len(page) >= 8<<10 {
				t.Errorf("the page has a placeholder left, or its %d bytes are too many", len(page))
			}
			if title := fmt.Sprintf("<title>%s</title>", w.title()); !bytes.Contains(page, []byte(title)) {
				t.Errorf("the page lacks %s", title)
			}
		})
	}
	if len(situations()) != 11 {
		t.Error("a situation is not tried")
	}
}

// shownText returns the text of the body that is not hidden, its pieces apart, and
// checks that what is opened is closed.
func shownText(t *testing.T, page []byte) string {
	t.Helper()
	var pieces []string
	var open []atom.Atom
	hidden := 0 // how many of open, from this one on, are not seen; 0: all are
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("the page leaves %v open", open)
			}
			return strings.Join(pieces, " | ")
		case html.StartTagToken:
			tag := z.Token()
			if tag.DataAtom == atom.Meta {
				continue
			}
			open = append(open, tag.DataAtom)
			isHidden := tag.DataAtom == atom.Head || tag.DataAtom == atom.Script
			for _, a := range tag.Attr {
				isHidden = isHidden || a.Key == "hidden"
			}
			if isHidden && hidden == 0 {
				hidden = len(open)
			}
		case html.EndTagToken:
			tag := z.Token()
			if len(open) == 0 || open[len(open)-1] != tag.DataAtom {
				t.Fatalf("</%s> while %v is open", tag.Data, open)
			}
			if hidden == len(open) {
				hidden = 0
			}
			open = open[:len(open)-1]
		case html.TextToken:
			if text := strings.TrimSpace(string(z.Text())); text != "" && hidden == 0 {
				pieces = append(pieces, text)
			}
		}
	}
}

func TestNoReloadWhereNobodyIsLetIn(t *testing.T) {
	r := newRoom(func(node.Pass, bool, time.Time) node.Verdict { return node.Verdict{} })
	r.settings.QueueingMethod = room.Reject
	f := serve(t, fakeRooms{room: r}, nil)
	for _, accept := range []string{"text/html", "application/json"} {
		got := f.get("/", "Accept", accept)
		for _, name := range []string{"Refresh", "Retry-After", "Set-Cookie"} {
			if v := got.Header.Values(name); len(v) != 0 {
				t.Errorf("%s: got %s %q, want none", accept, name, v)
			}
		}
		if got.StatusCode != 200 || got.Header.Get(stateField) != "waiting" {
			t.Errorf("%s: got %d %v", accept, got.StatusCode, got.Header)
		}
	}
	if got := f.get("/", "Accept", "application/json"); !strings.Contains(got.body, `"refreshIntervalSeconds":0,`) {
		t.Errorf("got %s", got.body)
	}
}

func TestRefreshIsRoundedUp(t *testing.T) {
	w := situations()["random"]
	for d, want := range map[time.Duration]int64{
		16 * time.Second: 16, 16*time.Second + time.Millisecond: 17, time.Millisecond: 1, 0: 20,
	} {
		if w.verdict.Refresh = d; w.refresh() != want {
			t.Errorf("%v became %d s, want %d", d, w.refresh(), want)
		}
	}
}

// TestWhatHoldsIsWhatWasDecidedFrom: an event may begin between asking for the
// settings and deciding.
func TestWhatHoldsIsWhatWasDecidedFrom(t *testing.T) {
	view := &room.View{Settings: newRoom(nil).settings}
	view.Settings.QueueingMethod = room.Random
	r := newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		v := never(p, known, now)
		v.View = view
		return v
	})
	f := serve(t, fakeRooms{room: r}, nil)
	if got := f.get("/", "Accept", "application/json"); !strings.Contains(got.body, `"queueingMethod":"random"`) {
		t.Errorf("got %s", got.body)
	}
}
