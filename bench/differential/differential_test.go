package differential

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

var (
	lasts = flag.Duration("differential-for", 0, "how long requests are sent to each site; 0: a fixed number of them")
	seed  = flag.Uint64("differential-seed", 1, "what requests are drawn from")
	all   = flag.Bool("differential-all", false, "fail for each kind of server that is not installed")
)

const (
	count = 500 // of requests to each site by a node's own proxy, where no time is given
	some  = 60  // of them by each other way
	most  = 10  // findings that are told
)

// start starts a site of a kind; nil where something of it is not installed.
func start(t testing.TB, k kind) *site {
	t.Helper()
	s, err := startSite(t.Context(), k, t.TempDir())
	if errors.Is(err, errMissing) && !*all {
		t.Log(err)
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	for path, page := range map[string]string{protectedPath: "tickets", protectedPath + "/1": "tickets", "/": "open"} {
		if err := s.asked(t.Context(), path, page); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// enter opens a way to a site, and reports whether all of it is installed.
func enter(t testing.TB, s *site, w way) bool {
	t.Helper()
	stop, err := s.open(t.Context(), w)
	if errors.Is(err, errMissing) && !*all {
		t.Log(err)
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return true
}

// TestServersReadWhatTheNodeReads: by no way does a site serve the page that nobody may see, read a request that nobody
// sent, or another body than the visitor's.
func TestServersReadWhatTheNodeReads(t *testing.T) {
	for i, k := range kinds() {
		t.Run(name(k.name), func(t *testing.T) {
			if testing.Short() && len(k.needs) > 0 {
				t.Skip("needs programs that are not ours")
			}
			t.Parallel()
			s := start(t, k)
			if s == nil {
				t.SkipNow()
			}
			for j, w := range ways() {
				t.Run(name(w.name), func(t *testing.T) {
					if testing.Short() && w.example != "" {
						t.Skip("needs programs that are not ours, or builds some")
					}
					if !enter(t, s, w) {
						t.SkipNow()
					}
					tryMany(t, s, rand.New(rand.NewPCG(*seed, uint64(i+100*j))))
				})
			}
		})
	}
}

func name(text string) string { return strings.ReplaceAll(text, "/", " ") }

// tryMany sends requests by the way that is open: those that were of note before, and others that are drawn from r.
func tryMany(t *testing.T, s *site, r *rand.Rand) {
	t.Helper()
	rest, end := some, time.Now().Add(*lasts/time.Duration(len(ways())))
	if s.way.example == "" {
		rest = count
	}
	before, seen, listed, found := &request{}, map[outcome]int{}, map[string]int{}, 0
	for n := 0; *lasts > 0 && time.Now().Before(end) || *lasts == 0 && n < rest; n++ {
		q := &request{}
		if n < len(remembered) {
			q.raw = []byte(remembered[n])
		} else {
			q = generate(r)
		}
		o, wrong, known, err := s.try(t.Context(), q)
		if err != nil {
			t.Fatalf("request %d, %q: %v", n, q.raw, err)
		}
		if len(wrong) > 0 && s.proxy != nil && !s.proxy.Running() {
			t.Fatalf("%s by %s, request %d, %q, after %q: the proxy has ended: %s; it said last:\n%s", s.kind.name, s.way.name, n, q.raw, before.raw, s.proxy.State(), s.proxy.Tail(50))
		}
		seen[o]++
		for _, reason := range known {
			listed[reason]++
		}
		for _, w := range wrong {
			if found++; found <= most {
				t.Errorf("%s by %s, request %d, %q, after %.300q: %s", s.kind.name, s.way.name, n, q.raw, before.raw, w)
			}
		}
		before = q
	}
	t.Logf("%v; findings %d; listed %v", seen, found, listed)
	for _, o := range []outcome{served, queued, refused} {
		if seen[o] == 0 {
			t.Errorf("no request was %s: nothing was tried", o)
		}
	}
}

// TestANaiveFrontIsFound: a front that compares addresses as they are written lets visitors through, and each kind of
// what is wrong is seen.
func TestANaiveFrontIsFound(t *testing.T) {
	s, err := startSite(t.Context(), kinds()[1], t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.addr})
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	addr, stop, err := rig.Serve(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == protectedHost && strings.HasPrefix(r.RequestURI, protectedPath) {
			w.Header().Set("Ropeline-State", "waiting")
			return
		}
		proxy.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context()))) // half of the connection is closed
	})}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	s.front = addr
	r, found := rand.New(rand.NewPCG(1, 1)), 0
	for range 500 {
		_, wrong, _, err := s.try(t.Context(), generate(r))
		if err != nil {
			t.Fatal(err)
		}
		found += len(wrong)
	}
	if t.Logf("found %d", found); found == 0 {
		t.Error("nothing was found")
	}
}

// TestVerdict holds what is wrong, and what is not.
func TestVerdict(t *testing.T) {
	q := &request{raw: []byte("GET /TICKETS"), body: "a", whole: true}
	is := func(l line) line {
		if l.id == "" {
			l.id = "q1"
		}
		if l.body == "" {
			l.body = "61"
		}
		return l
	}
	for name, c := range map[string]struct {
		lines         []line
		answers       int
		known         []exception
		wrong, listed int
	}{
		"in order":           {[]line{is(line{page: "open"})}, 1, nil, 0, 0},
		"refused":            {nil, 1, nil, 0, 0},
		"the body untold":    {[]line{is(line{page: "open", body: "-"})}, 1, nil, 0, 0},
		"two that were two":  {[]line{is(line{page: "open"}), is(line{page: "open", id: "q1s"})}, 2, nil, 0, 0},
		"protected":          {[]line{is(line{page: "tickets"})}, 1, nil, 1, 0},
		"listed":             {[]line{is(line{page: "tickets"})}, 1, []exception{anyCase}, 0, 1},
		"another body":       {[]line{is(line{page: "open", body: "62"})}, 1, nil, 1, 0},
		"nobody's":           {[]line{is(line{page: "open", id: "q2"})}, 1, nil, 1, 0},
		"hidden":             {[]line{is(line{page: "open"}), is(line{page: "open", id: "q1s"})}, 1, nil, 1, 0},
		"late":               {[]line{is(line{page: "open", id: "q0", late: true}), is(line{page: "open"})}, 1, nil, 0, 0},
		"late and protected": {[]line{is(line{page: "tickets", id: "q0", late: true})}, 1, nil, 1, 0},
	} {
		if wrong, listed := verdict(q, "q1", c.lines, c.answers, c.known); len(wrong) != c.wrong || len(listed) != c.listed {
			t.Errorf("%s: wrong %v, listed %v", name, wrong, listed)
		}
	}
}

// FuzzServers sends any request to each site that is here.
func FuzzServers(f *testing.F) {
	var sites []*site
	for _, k := range kinds() {
		if testing.Short() && len(k.needs) > 0 {
			continue
		}
		if s := start(f, k); s != nil && enter(f, s, direct) {
			sites = append(sites, s)
		}
	}
	f.Add("/tickets/..;/%2e", "A.example.:80", "POST", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\nGET /tickets HTTP/1.1\r\nHost: a.example\r\n\r\n")
	f.Add("/x/tickets", "a.example", "GET", "SCRIPT_NAME: /x\r\n", "")
	f.Add("//a.example/%74ickets", "b.example", "GET", "X-Original-URL: /tickets\r\n", "")
	f.Add("http://a.example/open", "a.example", "POST", "Transfer-Encoding: chunked\r\n", "3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n")
	f.Fuzz(func(t *testing.T, target, host, method, fields, body string) {
		raw := method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\nX-Id: {id}\r\n" + fields + "\r\n" + body
		if strings.Count(strings.ToLower(raw), "x-id") != 1 || finalAnswer.MatchString(raw) {
			t.Skip("it names itself, or looks like an answer")
		}
		for _, s := range sites {
			_, wrong, _, err := s.try(t.Context(), &request{raw: []byte(raw)})
			if err != nil {
				t.Fatalf("%s: %q: %v", s.kind.name, raw, err)
			}
			for _, w := range wrong {
				t.Errorf("%s: %q: %s", s.kind.name, raw, w)
			}
		}
	})
}
