package httpfront

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

func TestNoReloadWhereNobodyIsLetIn(t *testing.T) {
	r := newRoom(func(node.Pass, bool, time.Time) node.Verdict { return node.Verdict{} })
	r.settings.QueueingMethod = room.Reject
	f := serve(t, fakeRooms{room: r}, nil)
	for _, accept := range []string{"text/html", "application/json"} {
		got := f.get("/", "Accept", accept).is(t, 200, stateField+": waiting\r\n")
		lacks(t, accept, got.text(), "\r\nRefresh: ", "\r\nRetry-After: ", "\r\nSet-Cookie: ")
	}
	f.get("/", "Accept", "application/json").is(t, 200, `"refreshIntervalSeconds":0,`)
}

// TestWhatHoldsIsWhatWasDecidedFrom: an event may begin between asking for the
// settings and deciding.
func TestWhatHoldsIsWhatWasDecidedFrom(t *testing.T) {
	settings := newRoom(nil).settings
	settings.QueueingMethod = room.Random
	r := waitingBy(&room.View{Settings: &settings})
	serve(t, fakeRooms{room: r}, nil).get("/", "Accept", "application/json").is(t, 200, `"queueingMethod":"random"`)
}

// TestQueueAnswersAreNobodyElses: nothing may keep an answer for another visitor.
func TestQueueAnswersAreNobodyElses(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(never)}, http.NotFoundHandler())
	for _, accept := range []string{"text/html", "application/json"} {
		got := f.get("/x.css", "Accept", accept)
		for name, want := range map[string]string{
			"Cache-Control": "private, no-store", "Vary": "Cookie, Accept, Accept-Language",
			"Content-Language": "en-US", "Refresh": "20", "Retry-After": "20",
			"Etag": "", "Last-Modified": "", "Expires": "", "X-Content-Type-Options": "nosniff",
		} {
			equal(t, accept+": "+name, strings.Join(got.Header.Values(name), "|"), want)
		}
	}
}

// TestOnlyOurLanguageIsTold: a template is in whatever language its author writes.
func TestOnlyOurLanguageIsTold(t *testing.T) {
	const tmpl = "<h1>You are in line</h1>"
	for _, tt := range []struct {
		template     string
		noJSON       bool
		accept, want string
	}{
		{"", false, "text/html", "de-DE"},
		{"", false, "application/json", "de-DE"},
		{tmpl, false, "text/html", ""},
		{tmpl, false, "application/json", "de-DE"}, // our texts
		{tmpl, true, "application/json", ""},
	} {
		r := newRoom(never)
		r.settings.Front.CustomPage, r.settings.Front.NoJSON = tt.template, tt.noJSON
		f := configured(t, r)
		got := f.get("/", "Accept", tt.accept, "Accept-Language", "de")
		equal(t, fmt.Sprint(tt), strings.Join(got.Header.Values("Content-Language"), "|"), tt.want)
	}
}

func newPage(t *testing.T, cfg page.Config) *page.Page {
	t.Helper()
	cfg.Logger = testLogger(t)
	p, err := page.New(cfg)
	noError(t, err)
	return p
}
