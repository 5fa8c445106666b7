package page

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"
)

// TestMinified: what is embedded was made out of what people read. After a change
// of the style or the script, -update makes it again.
func TestMinified(t *testing.T) {
	m := minify.New()
	m.AddFunc("css", css.Minify)
	m.AddFunc("js", js.Minify)
	for _, kind := range []string{"css", "js"} {
		src, err := os.ReadFile("builtin." + kind)
		if err != nil {
			t.Fatal(err)
		}
		small, err := m.Bytes(kind, src)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "builtin.min."+kind, small)
	}
}

// TestPageOfEverySituation: what a browser shows, without the script.
func TestPageOfEverySituation(t *testing.T) {
	p := newPage(t, Config{})
	const (
		ordered = "Your position | 1,235 | People ahead of you | 1,234 | Estimated wait | "
		stay    = " | Please do not close this page."
		inLine  = "You are in line | Many people want to come in right now. You will be let in automatically when it is your turn. Reloading this page does not move you forward or back. | "
		random  = "You are waiting to come in | Many people want to come in right now. The order in which they are admitted is random: nothing is gained by coming earlier or by reloading this page. | "
		closed  = "Nobody is let in right now | Nobody can queue at the moment either, and this page does not reload by itself. Please come back later. | Last updated | 12:00:00 UTC"
	)
	tests := map[string]string{ // the page's text from the top on
		"fifo":                       inLine + ordered + "1 hour and 1 minute" + stay,
		"fifo without an estimate":   inLine + "Your position | 3 | People ahead of you | 2 | Estimated wait | not known yet" + stay,
		"fifo for more than a day":   "The line is very long | So many people are waiting that it may take more than a day. You can stay in line, or come back at another time. | Your position | 9 | People ahead of you | 8 | Estimated wait | more than a day" + stay,
		"random":                     random + "Estimated wait | 5 minutes – 1 hour and 12 minutes" + stay,
		"random without an estimate": random + "Estimated wait | not known yet" + stay,
		"passthrough":                inLine + "Estimated wait | not known yet" + stay,
		"pre-queue that shuffles": "It has not started yet | At the start, all who are here get their places in line at random. There is no need to hurry, and nothing is gained by reloading this page. | " +
			"Starts in | 11 minutes" + stay,
		"pre-queue in order": "It has not started yet | At the start, people are admitted in the order in which they came. You have your place, and reloading this page does not change it. | " +
			"Starts in | 11 minutes | Your position | 41 | People ahead of you | 40" + stay,
		"pre-queue but came before": inLine + ordered + "1 hour and 1 minute" + stay,
		"event":                     inLine + ordered + "1 hour and 1 minute" + stay,
		"event at random":           random + "Estimated wait | 5 minutes – 1 hour and 12 minutes" + stay,
		"queue all": "You are in line | Nobody is let in at the moment. Your place is kept, and you will be let in automatically when the line moves and it is your turn. | " +
			ordered + "not known yet" + stay,
		"reject":             closed,
		"reject in an event": closed,
	}
	for name, in := range situations() {
		t.Run(name, func(t *testing.T) {
			want, ok := tests[name]
			if !ok {
				t.Fatal("this situation has no test")
			}
			s := fill(p, in)
			page := p.AppendHTML(nil, s)
			if got := shownText(t, page); !strings.HasPrefix(got, want) {
				t.Errorf("the page shows\n\t%s\nwant it to begin with\n\t%s", got, want)
			}
			reloads := bytes.Contains(page, []byte(`<noscript><meta http-equiv="refresh" content="20"></noscript>`))
			if want := in.Settings.QueueingMethod != "reject"; reloads != want {
				t.Errorf("reloads without a script: %v, want %v", reloads, want)
			}
			if bytes.Contains(page, []byte("{{")) {
				t.Error("the page has a placeholder left")
			}
			if title := fmt.Sprintf("<title>%s</title>", s.appendTab(nil)); !bytes.Contains(page, []byte(title)) {
				t.Errorf("the page lacks %s", title)
			}
		})
	}
}
