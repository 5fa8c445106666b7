package httpfront

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// configured starts a front with the settings of r, and of others.
func configured(tb testing.TB, r *fakeRoom, change ...func(*Config)) *front {
	tb.Helper()
	f := serve(tb, fakeRooms{"/", r}, http.HandlerFunc(echo), change...)
	configure(tb, f.front, r.settings)
	return f
}

// waitingBy is a room in which all wait, as is decided from a view; from that of the room, unless it has settings.
func waitingBy(view *room.View) *fakeRoom {
	r := newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		v := never(p, known, now)
		from := *view
		v.View = &from
		return v
	})
	if view.Settings == nil {
		settings := r.settings
		view.Settings = &settings
	}
	return r
}

func TestARoomIsAnsweredAsItsSettingsSay(t *testing.T) {
	view := &room.View{}
	r := waitingBy(view)
	ofSale, none := "<p>Sale: {{operatorMessage}}</p>", ""
	r.settings.Front = room.Front{
		CustomPage: "<p>{{queueingMethod}} {{language}} {{operatorMessage}}</p>", Language: "de-DE", Message: "Row <A> is sold out",
		FrameAncestors: []string{"'self'", "https://partner.example"},
	}
	r.settings.Events = []room.Event{{Name: "sale", CustomPage: &ofSale}, {Name: "quiet"}, {Name: "plain", CustomPage: &none}}
	f := configured(t, r)
	for _, tt := range []struct{ event, accept, language, want string }{
		{"", "text/html", "", "<p>fifo de-DE Row &lt;A&gt; is sold out</p>"},
		{"", "text/html", "fr, en;q=0.5", "<p>fifo fr-FR Row &lt;A&gt; is sold out</p>"},
		{"", "text/html", "tlh", "<p>fifo de-DE Row &lt;A&gt; is sold out</p>"},
		{"", "application/json", "", `"operatorMessage":"Row \u003cA\u003e is sold out","language":"de-DE","direction":"ltr"`},
		{"", "application/json", "ar", `"language":"ar-EG","direction":"rtl"`},
		{"sale", "text/html", "", "<p>Sale: Row &lt;A&gt; is sold out</p>"},
		{"quiet", "text/html", "", "<p>fifo de-DE"},
		{"plain", "text/html", "", `<html lang="de-DE" dir="ltr">`},
		{"plain", "text/html", "he", `<html lang="he-IL" dir="rtl">`},
	} {
		view.Event.Name = tt.event
		got := f.get("/", "Accept", tt.accept, "Accept-Language", tt.language)
		has(t, fmt.Sprint(tt), got.body, tt.want)
		if tt.accept == "text/html" {
			has(t, fmt.Sprint(tt), got.text(), "frame-ancestors 'self' https://partner.example\r\n")
		}
	}

	r.settings.Front = room.Front{NoJSON: true}
	r.settings.Events = nil
	configure(t, f.front, r.settings)
	view.Event.Name = "sale"
	got := f.get("/", "Accept", "application/json", "Accept-Language", "")
	got.is(t, 200, "\r\nContent-Type: text/html; charset=utf-8\r\n", `<html lang="en-US"`, "frame-ancestors 'self'\r\n")
	lacks(t, "new settings without JSON", got.body, "sold out")
}

func TestRoomsThatWereNotConfiguredHaveTheBuiltInPage(t *testing.T) {
	f := configured(t, newRoom(never))
	other := newRoom(never)
	other.settings.Name, other.settings.Front.Message = "other", "Not mine"
	configure(t, f.front, other.settings)
	got := f.get("/").is(t, 200, "<main")
	lacks(t, "another room's page", got.body, "Not mine")
}

// TestWhatTheFrontCannotUse: mistakes are all told, with the field, and change
// nothing.
func TestWhatTheFrontCannotUse(t *testing.T) {
	r := newRoom(never)
	r.settings.Front.Message = "Before"
	f := configured(t, r)
	bad, broken := r.settings, "{{#a}}"
	bad.Front = room.Front{
		Rules: []room.Rule{
			{Expression: `ssl`},
			{Expression: "ssl and\n  http.request.path eq \"/\"", Disabled: true},
			{Expression: "ip.src in $offices"},
		},
		CustomPage: "<p>\n{{> other}}", Language: "tlh-KX", Message: "a\x00b", FrameAncestors: []string{"'none'", "'self'"},
	}
	bad.Events = []room.Event{{Name: "a"}, {Name: "b", CustomPage: &broken}}
	told := reasons(f.front.Configure(bad))
	for field, want := range map[string]string{
		"rules[1].expression":        "line 2, column 3: there is no field http.request.path; did you mean http.request.uri.path?\n\t  http.request.path eq \"/\"\n\t  ^",
		"rules[2].expression":        "line 1, column 11: there is no list $offices, nor any other",
		"custom-page-html":           "template: line 2: {{> other}}: templates cannot include others",
		"events[1].custom-page-html": "template: ",
		"default-template-language":  `"tlh-KX" is not allowed: want one of ar-EG, bg-BG,`,
		"message":                    "control character",
		"frame-ancestors":            "'none' stands alone",
	} {
		has(t, field, told[field], want)
	}
	equal(t, "mistakes that are told", len(told), 7)
	f.get("/").is(t, 200, "Before") // what is refused changes nothing
	if CheckRoom(&bad, nil) == nil || CheckRoom(&r.settings, nil) != nil {
		t.Error("CheckRoom does not agree with Configure")
	}
}

// reasons are the mistakes of an error, by their fields.
func reasons(err error) map[string]string {
	all := map[string]string{}
	switch e := err.(type) {
	case *room.FieldError:
		all[e.Field] = e.Reason()
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			maps.Copy(all, reasons(part))
		}
	case interface{ Unwrap() error }:
		return reasons(e.Unwrap())
	}
	return all
}

func TestUnknownVariablesAreLoggedOnce(t *testing.T) {
	var log lockedLog
	r := newRoom(never)
	ofEvent := "{{waitTime}}\n{{positon}}"
	r.settings.Front.CustomPage = "{{shop}}"
	r.settings.Events = []room.Event{{Name: "sale", CustomPage: &ofEvent}}
	f := configured(t, r, func(c *Config) { c.Logger = log.logger() })
	f.gets(3, "/", 200)
	equal(t, "warnings", strings.Count(log.text(), "a template names something that is not known"), 2)
	has(t, "the log", log.text(), "level=WARN", "room=shop setting=custom-page-html line=1 name=shop",
		"room=shop setting=events[0].custom-page-html line=2 name=positon did_you_mean=position")
}

func TestPagesByName(t *testing.T) {
	r := newRoom(never)
	page := "a page"
	r.settings.Events = []room.Event{{Name: "sale", CustomPage: &page}, {Name: "quiet"}}
	f := judges(t, fakeRooms{})
	_, err := f.Page("shop", "")
	has(t, "without rooms", fmt.Sprint(err), "there are none")
	configure(t, f, r.settings)
	ofRoom, err := f.Page("shop", "")
	ofEvent, eventErr := f.Page("shop", "sale")
	if err := errors.Join(err, eventErr); err != nil || ofRoom == ofEvent {
		t.Errorf("pages %p and %p, %v", ofRoom, ofEvent, err)
	}
	if only, err := f.Page("", ""); err != nil || only != ofRoom {
		t.Errorf("the only room, without its name: %p, %v", only, err)
	}
	other := r.settings
	other.Name = "other"
	configure(t, f, other)
	for _, tt := range []struct{ room, event, want string }{
		{"", "", "which room is missing; there are other, shop"},
		{"shoe", "", `there is no room "shoe"; there are other, shop`},
		{"shop", "quiet", `no event "quiet" with a page of its own; there are sale`},
	} {
		_, err := f.Page(tt.room, tt.event)
		has(t, fmt.Sprint(tt), fmt.Sprint(err), tt.want)
	}
}
