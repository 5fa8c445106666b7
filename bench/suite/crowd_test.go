package suite

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestCrowdsComeInNumbers(t *testing.T) {
	var came atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "visitor", Value: fmt.Sprint(came.Add(1)), Path: "/"})
		fmt.Fprint(w, "wait")
	}))
	defer site.Close()
	address := strings.TrimPrefix(site.URL, "http://")
	for _, c := range []struct{ count, keep int }{{0, 0}, {1, 1}, {100, 7}, {1234, 1234}} {
		came.Store(0)
		cookies, err := newcomers(t.Context(), address, "*/*", "", c.count, c.keep)
		if err != nil {
			t.Fatal(err)
		}
		different := map[string]bool{}
		for _, cookie := range cookies {
			different[cookie] = strings.HasPrefix(cookie, "visitor=")
		}
		if int(came.Load()) != c.count || len(different) != c.keep {
			t.Errorf("of %d with %d cookies came %d with %d", c.count, c.keep, came.Load(), len(different))
		}
	}
}

func TestAnswersThatVisitorsCannotUse(t *testing.T) {
	for _, c := range []struct {
		code   int
		cookie string
		state  string
		want   string
	}{{200, "a=1; Path=/", "waiting", ""}, {429, "a=1", "waiting", "is 429"}, {200, "", "waiting", "no cookie"}, {200, "a=1", "", "state"}} {
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Ropeline-State", c.state)
			if c.cookie != "" {
				w.Header().Set("Set-Cookie", c.cookie)
			}
			w.WriteHeader(c.code)
		}))
		got, err := newcomers(t.Context(), strings.TrimPrefix(site.URL, "http://"), "*/*", "waiting", 1, 1)
		if c.want == "" && (err != nil || got[0] != "a=1") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: got %v, %v", c, got, err)
		}
		site.Close()
	}
}

func TestTextsForNginx(t *testing.T) {
	if got, want := nginxText(`a "b" \ $c`), `"a \"b\" \\ ${dollar}c"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
