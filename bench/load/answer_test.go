package load

import (
	"net/http"
	"testing"
	"time"
)

func TestHeadRead(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	arrival := time.Date(2026, 1, 2, 3, 0, 0, 250_000_000, time.UTC)
	for _, tc := range []struct {
		name string
		head head
		want answer
	}{
		{"page", head{status: 200}, answer{verdict: admitted}},
		{"not found is the site's answer", head{status: 404}, answer{verdict: admitted}},
		{"redirect", head{status: 302}, answer{verdict: admitted}},
		{"header", head{status: 200, state: "waiting", refresh: "20"}, answer{verdict: waiting, pause: 20 * time.Second}},
		{"refresh with address", head{status: 200, state: "waiting", refresh: "7; url=/x"}, answer{verdict: waiting, pause: 7 * time.Second}},
		{"status 429 in the queue", head{status: 429, state: "waiting", retryAfter: "3"}, answer{verdict: waiting, pause: 3 * time.Second}},
		{"status 429 elsewhere", head{status: 429, retryAfter: "3"}, answer{verdict: refused}},
		{
			"retry at a date",
			head{status: 202, state: "waiting", retryAfter: now.Add(90 * time.Second).Format(http.TimeFormat)},
			answer{verdict: waiting, pause: 90 * time.Second},
		},
		{"nothing told", head{status: 200, state: "waiting"}, answer{verdict: waiting}},
		{
			"json goes first",
			head{status: 200, refresh: "20", body: []byte(
				`{"cfWaitingRoom":{"inWaitingRoom":true,"refreshIntervalSeconds":5,"arrival":"2026-01-02T03:00:00.25Z"}}`)},
			answer{verdict: waiting, pause: 5 * time.Second, place: arrival},
		},
		{
			"unreadable arrival",
			head{status: 200, body: []byte(`{"cfWaitingRoom":{"inWaitingRoom":true,"arrival":"soon"}}`)},
			answer{verdict: waiting},
		},
		{"json of the site", head{status: 200, body: []byte(`{"cfWaitingRoom":{"inWaitingRoom":false}}`)}, answer{verdict: admitted}},
		{"other json", head{status: 200, body: []byte(`[1,2]`)}, answer{verdict: admitted}},
		{"broken json", head{status: 200, body: []byte(`{"cfWaitingRoom":`)}, answer{verdict: admitted}},
		{"too soon", head{status: 200, state: "waiting", refresh: "0.001"}, answer{verdict: waiting, pause: minPause}},
		{"too late", head{status: 200, state: "waiting", refresh: "1e300"}, answer{verdict: waiting, pause: maxPause}},
		{"no number", head{status: 200, state: "waiting", refresh: "NaN"}, answer{verdict: waiting}},
		{"in the past", head{status: 200, state: "waiting", refresh: "-5"}, answer{verdict: waiting}},
		{"not ready", head{status: 503, retryAfter: "2"}, answer{verdict: unready, pause: 2 * time.Second}},
		{"origin down", head{status: 502}, answer{verdict: refused}},
		{"bad request", head{status: 400}, answer{verdict: refused}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.status = tc.head.status
			got := tc.head.read(now)
			if !got.place.Equal(tc.want.place) {
				t.Errorf("got place %v, want %v", got.place, tc.want.place)
			}
			got.place, tc.want.place = time.Time{}, time.Time{}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestJar(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		name string
		set  []string
		want string
	}{
		{"none", nil, ""},
		{"one", []string{"a=1; Path=/; HttpOnly"}, "Cookie: a=1\r\n"},
		{"two", []string{"a=1", "__Host-b=2; Secure; Path=/"}, "Cookie: a=1; __Host-b=2\r\n"},
		{"newer wins", []string{"a=1", "b=2", "a=3"}, "Cookie: a=3; b=2\r\n"},
		{"still alive", []string{"a=1; Max-Age=61"}, "Cookie: a=1\r\n"},
		{"too old", []string{"a=1; Max-Age=59", "b=2"}, "Cookie: b=2\r\n"},
		{"expired", []string{"a=1; Expires=Fri, 02 Jan 2026 03:04:30 GMT"}, ""},
		{"age beats date", []string{"a=1; Expires=Fri, 02 Jan 2026 03:04:30 GMT; Max-Age=3600"}, "Cookie: a=1\r\n"},
		{"taken back", []string{"a=1", "a=; Max-Age=0"}, ""},
		{"taken back by date", []string{"a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"}, ""},
		{"rubbish", []string{"", ";", "=", "\x00"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var j jar
			for _, h := range tc.set {
				j.set(h, now)
			}
			if got := string(j.appendHeader(nil, now.Add(time.Minute))); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestJarIsBounded(t *testing.T) {
	var j jar
	now := time.Now()
	for i := range 1000 {
		j.set("c"+string(rune('a'+i%26))+string(rune('a'+i/26))+"=1", now)
	}
	if len(j.cookies) != maxCookies {
		t.Errorf("got %d cookies, want %d", len(j.cookies), maxCookies)
	}
}
