package page

import (
	"net/url"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
)

// preview is what a page with all defaults shows of a template for a query.
func preview(tmpl *Template, query string) (string, error) {
	got, err := newPage(Config{}).Preview(tmpl, must.Do(url.ParseQuery(query)), noon)
	return string(got), err
}

func TestPreview(t *testing.T) {
	const src = "{{queueingMethod}} known={{waitTimeKnown}} {{waitTime}} full={{queueIsFull}} all={{queueAll}} " +
		"event={{isEventActive}}/{{isEventPrequeueing}} in={{timeUntilEventStart}} end={{timeUntilEventEnd}} shuffle={{shuffleAtEventStart}} {{refreshIntervalSeconds}} {{language}}"
	tmpl := compiled(src)
	for _, tt := range []struct{ query, want string }{
		{"", "fifo known=true 10 full=false all=false event=false/false in=0 end=0 shuffle=false 20 en-US"},
		{"queueing_method=random&waitTime=3", "random known=true 3 full=false all=false event=false/false in=0 end=0 shuffle=false 20 en-US"},
		{"queueing_method=reject", "reject known=false 0 full=false all=false event=false/false in=0 end=0 shuffle=false 0 en-US"},
		{"queueing_method=reject&event=prequeueing", "reject known=false 0 full=false all=false event=true/true in=10 end=120 shuffle=false 20 en-US"},
		{"queueing_method=passthrough", "passthrough known=true 10 full=false all=false event=false/false in=0 end=0 shuffle=false 20 en-US"},
		{"force_queue=true", "fifo known=false 0 full=false all=true event=false/false in=0 end=0 shuffle=false 20 en-US"},
		{"force_queue=false&queue_is_full=true", "fifo known=true 1441 full=true all=false event=false/false in=0 end=0 shuffle=false 20 en-US"},
		{"event=none", "fifo known=true 10 full=false all=false event=false/false in=0 end=0 shuffle=false 20 en-US"},
		{"event=prequeueing&waitTime=7", "fifo known=false 0 full=false all=false event=true/true in=7 end=120 shuffle=false 20 en-US"},
		{"event=prequeueing&shuffle_at_event_start=true", "fifo known=false 0 full=false all=false event=true/true in=10 end=120 shuffle=true 20 en-US"},
		{"event=started&shuffle_at_event_start=true&queueing_method=random", "random known=true 10 full=false all=false event=true/false in=0 end=120 shuffle=true 20 en-US"},
		{"language=en-US", "fifo known=true 10 full=false all=false event=false/false in=0 end=0 shuffle=false 20 en-US"},
	} {
		if got, err := preview(tmpl, tt.query); err != nil || got != tt.want {
			t.Errorf("%s: got\n\t%s, %v, want\n\t%s", tt.query, got, err, tt.want)
		}
	}
}

func TestPreviewRefuses(t *testing.T) {
	for _, tt := range []struct{ query, want string }{
		{"event=soon", `event="soon": want none, prequeueing, started`},
		{"queueing_method=lifo", `queueing_method="lifo": want fifo, random, passthrough, reject`},
		{"force_queue=yes", `force_queue="yes": want false, true`},
		{"queue_is_full=", `queue_is_full="": want false, true`},
		{"shuffle_at_event_start=1&event=started", `shuffle_at_event_start="1": want false, true`},
		{"shuffle_at_event_start=true", "shuffle_at_event_start=true: want an event: event=prequeueing or event=started"},
		{"waitTime=0", `waitTime="0": want minutes from 1 to 10080`},
		{"waitTime=10081", "want minutes from 1 to 10080"},
		{"waitTime=ten", "want minutes from 1 to 10080"},
		{"waitTime=1&waitTime=2", "waitTime is given 2 times: want it once"},
		{"room=" + strings.Repeat("a", 65), "want at most 64 characters"},
		{"language=tlh", `language="tlh": want`},
		{"wait_time=10", `unknown parameter "wait_time": allowed are event, event_name, force_queue, language, queue_is_full, queueing_method, room, shuffle_at_event_start, waitTime`},
		{"event=soon&waitTime=-1", "event=\"soon\": want none, prequeueing, started\nwaitTime=\"-1\": want minutes"},
	} {
		got, err := preview(nil, tt.query)
		if err == nil || !strings.Contains(err.Error(), tt.want) || got != "" {
			t.Errorf("%s: got %v, want an error with\n\t%s", tt.query, err, tt.want)
		}
	}
}

// TestPreviewStaysStill: a preview asks nobody whether it may go in.
func TestPreviewStaysStill(t *testing.T) {
	page, err := preview(nil, "")
	if err != nil || !strings.Contains(page, `data-ask="0"`) || strings.Contains(page, "http-equiv") || !strings.Contains(page, "10 minutes") {
		t.Errorf("got %s, %v", page, err)
	}
}

// TestPreviewIsOfThePage: what the room says holds in previews of it, and another
// template can be tried there.
func TestPreviewIsOfThePage(t *testing.T) {
	const src = "{{room}} {{language}} {{operatorMessage}} {{positionText}}"
	own := newPage(Config{Template: compiled(src), Language: "de-DE", Message: "Sold <out>"})
	plain := newPage(Config{Message: "Sold <out>"})
	for _, tt := range []struct {
		page  *Page
		tmpl  *Template
		query url.Values
		want  string
	}{
		{own, nil, nil, "preview de-DE Sold &lt;out&gt; 201"},
		{own, nil, url.Values{"room": {"tickets"}, "language": {"fr-FR"}, "waitTime": {"60"}}, "tickets fr-FR Sold &lt;out&gt; 1\u202f201"},
		{own, compiled("other {{operatorMessage}}"), url.Values{"event_name": {"sale"}}, "other Sold &lt;out&gt;"},
		{plain, compiled("other {{language}}"), nil, "other en-US"},
	} {
		got, err := tt.page.Preview(tt.tmpl, tt.query, noon)
		if err != nil || string(got) != tt.want {
			t.Errorf("%v: got %q, %v, want %q", tt.query, got, err, tt.want)
		}
	}
	if got, err := plain.Preview(nil, nil, noon); err != nil || !strings.Contains(string(got), "Sold &lt;out&gt;") {
		t.Errorf("the built-in page lacks the message: %v\n%s", err, got)
	}
}

// TestPreviewOfAPrequeue tells of a place where the start brings an order.
func TestPreviewOfAPrequeue(t *testing.T) {
	tmpl := compiled("{{position}} {{message}}")
	for query, want := range map[string]string{
		"":                            "201 At the start, people are admitted in the order",
		"queueing_method=reject":      "201 At the start, people are admitted in the order",
		"queueing_method=random":      "0 Many people want to come in right now. The order in which they are admitted is random",
		"shuffle_at_event_start=true": "0 At the start, all who are here get their places in line at random.",
		"queueing_method=passthrough": "0 Many people want to come in right now. You will be let in",
		"force_queue=true":            "201 Nobody is let in at the moment.",
	} {
		if got, err := preview(tmpl, query+"&event=prequeueing"); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, %v, want it to begin with %q", query, got, err, want)
		}
	}
}
