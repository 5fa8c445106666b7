package httpfront

import (
	"errors"
	"log/slog"
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

// waitingIn is a room in which all wait, while the named event is near.
func waitingIn(event *string) *fakeRoom {
	view := &room.View{}
	r := newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		v := never(p, known, now)
		view := *view
		view.Event.Name = *event
		v.View = &view
		return v
	})
	settings := r.settings
	view.Settings = &settings
	return r
}

func TestARoomIsAnsweredAsItsSettingsSay(t *testing.T) {
	event := ""
	r := waitingIn(&event)
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
		event = tt.event
		got := f.get("/", "Accept", tt.accept, "Accept-Language", tt.language)
		if !strings.Contains(got.body, tt.want) {
			t.Errorf("%+v: got\n%.400s", tt, got.body)
		}
		if csp := got.Header.Get("Content-Security-Policy"); tt.accept == "text/html" && !strings.HasSuffix(csp, "frame-ancestors 'self' https://partner.example") {
			t.Errorf("%+v: policy %q", tt, csp)
		}
	}

	r.settings.Front = room.Front{NoJSON: true}
	r.settings.Events = nil
	configure(t, f.front, r.settings)
	event = "sale"
	got := f.get("/", "Accept", "application/json", "Accept-Language", "")
	if got.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(got.body, `<html lang="en-US"`) || strings.Contains(got.body, "sold out") ||
		!strings.HasSuffix(got.Header.Get("Content-Security-Policy"), "frame-ancestors 'self'") {
		t.Errorf("new settings without JSON: %v\n%.400s", got.Header, got.body)
	}
}

func TestRoomsThatWereNotConfiguredHaveTheBuiltInPage(t *testing.T) {
	r := newRoom(never)
	f := configured(t, r)
	other := newRoom(never)
	other.settings.Name, other.settings.Front.Message = "other", "Not mine"
	configure(t, f.front, other.settings)
	if got := f.get("/"); !strings.Contains(got.body, "<main") || strings.Contains(got.body, "Not mine") {
		t.Errorf("got %s", got.body)
	}
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
	err := f.front.Configure(bad)
	for field, want := range map[string]string{
		"rules[1].expression":        "line 2, column 3: there is no field http.request.path; did you mean http.request.uri.path?\n\t  http.request.path eq \"/\"\n\t  ^",
		"rules[2].expression":        "line 1, column 11: there is no list $offices, nor any other",
		"custom-page-html":           "template: line 2: {{> other}}: templates cannot include others",
		"events[1].custom-page-html": "template: ",
		"default-template-language":  `"tlh-KX" is not allowed: want one of ar-EG, bg-BG,`,
		"message":                    "control character",
		"frame-ancestors":            "'none' stands alone",
	} {
		if got := reasonOf(err, field); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
	if n := len(fieldErrors(err)); n != 7 {
		t.Errorf("%d mistakes are told, want 7: %v", n, err)
	}
	if got := f.get("/"); !strings.Contains(got.body, "Before") {
		t.Errorf("settings that were refused have changed something: %s", got.body)
	}
	if CheckRoom(&bad, nil) == nil || CheckRoom(&r.settings, nil) != nil {
		t.Error("CheckRoom does not agree with Configure")
	}
}

// fieldErrors returns the parts of an error.
func fieldErrors(err error) (all []*room.FieldError) {
	if e, ok := err.(*room.FieldError); ok {
		return []*room.FieldError{e}
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			all = append(all, fieldErrors(part)...)
		}
	case interface{ Unwrap() error }:
		all = fieldErrors(e.Unwrap())
	}
	return all
}

func reasonOf(err error, field string) string {
	for _, e := range fieldErrors(err) {
		if e.Field == field {
			return e.Reason()
		}
	}
	return ""
}

func TestUnknownVariablesAreLoggedOnce(t *testing.T) {
	var log lockedLog
	r := newRoom(never)
	ofEvent := "{{waitTime}}\n{{positon}}"
	r.settings.Front.CustomPage = "{{shop}}"
	r.settings.Events = []room.Event{{Name: "sale", CustomPage: &ofEvent}}
	f := configured(t, r, func(c *Config) { c.Logger = log.logger() })
	for range 3 {
		f.get("/")
	}
	const text = "a template names something that is not known"
	if n := strings.Count(log.text(), text); n != 2 {
		t.Errorf("%d warnings, want 2:\n%s", n, log.text())
	}
	for _, want := range []string{
		"level=" + slog.LevelWarn.String(),
		"room=shop setting=custom-page-html line=1 name=shop",
		"room=shop setting=events[0].custom-page-html line=2 name=positon did_you_mean=position",
	} {
		if !log.has(want) {
			t.Errorf("the log has no %q:\n%s", want, log.text())
		}
	}
}

func TestPagesByName(t *testing.T) {
	r := newRoom(never)
	page := "a page"
	r.settings.Events = []room.Event{{Name: "sale", CustomPage: &page}, {Name: "quiet"}}
	f := judges(t, fakeRooms{})
	if _, err := f.Page("shop", ""); err == nil || !strings.Contains(err.Error(), "there are none") {
		t.Errorf("without rooms: %v", err)
	}
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
		if _, err := f.Page(tt.room, tt.event); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("page of %+v: %v", tt, err)
		}
	}
}
