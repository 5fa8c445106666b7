package differential

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node/room"
)

// applications are the sites that are asked in the usual ways.
func applications() []kind {
	gunicorn := func(app string) func(context.Context, *site) (*rig.Process, error) {
		return program("gunicorn", "--chdir", "{dir}", "--bind", "{listen}", "--keep-alive", "60", "--threads", "16", app)
	}
	return []kind{
		{name: "nginx", needs: []string{"nginx"}, start: func(ctx context.Context, s *site) (*rig.Process, error) {
			return rig.StartNginx(ctx, rig.Anywhere, s.dir, rig.NginxConfig{HTTP: s.filled("usual_nginx.conf")})
		}},
		{name: "Apache", needs: []string{"apache2"}, start: apache("usual_apache.conf")},
		{name: "Express", needs: []string{"node", "/usr/share/nodejs/express/package.json"}, start: program("node", "{dir}/app.js", "{port}", "{dir}")},
		{name: "Flask", needs: []string{"/usr/lib/python3/dist-packages/flask/__init__.py", "gunicorn"}, start: gunicorn("app_flask:app")},
		{name: "Django", needs: []string{"/usr/lib/python3/dist-packages/django/__init__.py", "gunicorn"}, start: gunicorn("app_django:application")},
		{name: "PHP", needs: []string{"php"}, start: program("php", "-q", "-S", "{listen}", "{dir}/app.php")},
	}
}

// difference is one that a node makes, and why that is left so. What is empty is any. docs/security.md has them.
type difference struct{ site, request, what, reason string }

var differences = []difference{
	{request: "TRACE", reason: "it is refused: it would show what proxies add"},
	{request: "h2c", reason: "of upgrades, WebSockets alone pass"},
	{request: "a preflight", what: "fields", reason: "what has passed a room without being asked about brings no page along"},
	{request: "a preflight", what: "body", reason: "what has passed a room without being asked about brings no page along"},
	{request: "a field of the connection", what: "seen fields", reason: "what Connection names is meant for the next server only"},
	{request: "an absolute address", what: "seen target", reason: "it becomes one in the form in which servers are asked"},
	{request: "odd fields", what: "seen fields", reason: "gunicorn and PHP keep blanks at the end of a value, which are none of it"},
	{site: "Django", request: "204", what: "fields", reason: "an answer with this code may have no Content-Length"},
	{site: "nginx", request: "ranges", reason: "nginx separates the parts of each answer by another number"},
	{site: "nginx", request: "205", what: "status", reason: "nginx leaves out what it does not know to be meant by a code, and a node writes it"},
	{site: "nginx", request: "418", what: "status", reason: "nginx leaves out what it does not know to be meant by a code, and a node writes it"},
	{site: "PHP", request: "kept", what: "answers", reason: "PHP's own server closes each connection, and a node keeps the visitor's"},
	{site: "PHP", request: "kept", what: "seen: ", reason: "PHP's own server closes each connection, and a node keeps the visitor's"},
}

// sameness is what has come of the comparison so far.
type sameness struct {
	sites int          // that were compared
	used  []bool       // which differences there were
	codes map[int]bool // what sites said
}

// TestASiteIsTheSameThroughANode: requests of all usual kinds get the same answers through a node as without, and the site
// sees the same of them.
func TestASiteIsTheSameThroughANode(t *testing.T) {
	if testing.Short() {
		t.Skip("needs programs that are not ours")
	}
	so := &sameness{used: make([]bool, len(differences)), codes: map[int]bool{}}
	for _, k := range applications() {
		t.Run(k.name, func(t *testing.T) { so.holds(t, k) })
	}
	t.Logf("%d kinds of requests to %d sites; codes %v", len(usuals()), so.sites, slices.Sorted(maps.Keys(so.codes)))
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	whole := so.sites == len(applications())
	for i, d := range differences {
		if whole && !so.used[i] {
			t.Errorf("%+v is no difference any more", d)
		}
		if !strings.Contains(string(page), d.reason) {
			t.Errorf("docs/security.md does not say that %s", d.reason)
		}
	}
	for _, c := range []int{101, 103, 200, 204, 206, 302, 304, 400, 404, 412, 416, 500} {
		if whole && !so.codes[c] {
			t.Errorf("no site has said %d: nothing was tried", c)
		}
	}
}

// holds compares a site of a kind with itself behind a node, where somebody asks who is in.
func (so *sameness) holds(t *testing.T, k kind) {
	t.Helper()
	s := startApplication(t, k)
	at, stop, err := startNode(t.Context(), s.dir, s.addr, room.Settings{Name: "site", Host: protectedHost, TotalActiveUsers: 100, NewUsersPerMinute: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	first, err := s.ask(t.Context(), at.Visitors, usuals()[0], "u0", "")
	if err != nil {
		t.Fatal(err)
	}
	pass, _, _ := strings.Cut(value(first.replies[0].fields, passField), ";")
	if !isPass(pass) {
		t.Fatalf("no pass, but %+v", first)
	}
	so.sites++
	for i, u := range usuals() {
		plain, err := s.ask(t.Context(), s.addr, u, fmt.Sprintf("d%d", i), "")
		if err != nil {
			t.Fatalf("%s: %v", u.name, err)
		}
		through, err := s.ask(t.Context(), at.Visitors, u, fmt.Sprintf("n%d", i), "Cookie: "+pass+"\n")
		if err != nil {
			t.Fatalf("%s through a node: %v", u.name, err)
		}
		for _, r := range plain.replies {
			so.codes[code(r.status)] = true
			so.codes[code(strings.Join(r.interim, ""))] = true
			if r.wrong != "" {
				t.Errorf("%s has no answer: %s", u.name, r.wrong)
			}
		}
		for _, d := range compare(plain, through) {
			if n := differenceOf(k, u, d); n >= 0 {
				so.used[n] = true
			} else {
				t.Errorf("%s: %s", u.name, d)
			}
		}
	}
}

// differenceOf returns which of the differences d is, that a request has brought about; -1 for none.
func differenceOf(k kind, u usual, d string) int {
	return slices.IndexFunc(differences, func(l difference) bool {
		return cmp.Or(l.site, k.name) == k.name && strings.HasPrefix(u.name, l.request) && strings.HasPrefix(d, l.what)
	})
}

// TestCompare: whatever a node could change is noticed.
func TestCompare(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nX-A: 1\r\nX-A: 2\r\nDate: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	of := func(answer string, see ...[2]string) asked {
		one := seen{Method: "GET", Target: "/a", Body: "b", Length: 1, Fields: append([][2]string{{"Host", "a"}, {"X-B", "1"}, {"X-C", "2"}}, see...)}
		return asked{[]reply{hearReply(bufio.NewReader(strings.NewReader(answer)), "GET")}, []seen{one}}
	}
	plain := of(head + "3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n")
	for name, c := range map[string]struct {
		through asked
		wrong   int
	}{
		"the same":          {plain, 0},
		"framed otherwise":  {of("HTTP/1.1 200 OK\r\nConnection: close\r\nX-A: 1\r\nX-A: 2\r\nSet-Cookie: ropeline=a\r\nDate: b\r\n\r\nabc", [2]string{"X-Real-IP", "::1"}), 1}, // the trailer is gone
		"another status":    {of(strings.Replace(head, "200", "201", 1) + "3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"), 1},
		"another order":     {of("HTTP/1.1 200 OK\r\nX-A: 2\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"), 1},
		"another body":      {of(head + "3\r\nabd\r\n0\r\nX-T: 1\r\n\r\n"), 1},
		"cut off":           {of(head + "3\r\nabc\r\n"), 2},
		"a word on the way": {of("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + head + "3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"), 1},
		"no answer":         {asked{seen: plain.seen}, 1},
		"seen twice":        {asked{plain.replies, append(plain.seen, plain.seen...)}, 1},
		"a field more":      {of(head+"3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n", [2]string{"X-D", "3"}), 1},
		"all else":          {asked{plain.replies, []seen{{}}}, 4},
	} {
		if got := compare(plain, c.through); len(got) != c.wrong {
			t.Errorf("%s: %q, want %d", name, got, c.wrong)
		}
	}
}

func startApplication(t *testing.T, k kind) *site {
	t.Helper()
	dir := t.TempDir()
	err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)) // Apache reads it as somebody else
	text := strings.Repeat("0123456789abcdef", 1<<8)
	for name, content := range map[string]string{
		"index.html": "hello", "file.txt": text, "gzip.txt": text, "large.txt": strings.Repeat(text, 3<<8), "parts.txt": `a <!--# echo var="uri" --> b`,
	} {
		file := filepath.Join(dir, name)
		// Of a new one Apache says another thing a second later.
		err = errors.Join(err, os.WriteFile(file, []byte(content), 0o644), os.Chtimes(file, time.Time{}, time.Unix(1e9, 0)))
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := startSite(t.Context(), k, dir)
	if errors.Is(err, errMissing) && !*all {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.since(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// asked is what came of a request: the answers, and what the site saw of it.
type asked struct {
	replies []reply
	seen    []seen
}

// seen is what a site has seen of a request.
type seen struct {
	Method, Target, Body string
	Length               int
	Fields               [][2]string
}

// ask has a request answered, and waits until the site has said of each what it saw. What a node answers by itself it does not see.
func (s *site) ask(ctx context.Context, addr string, u usual, id, more string) (a asked, err error) {
	if a.replies, err = talk(ctx, addr, u, id, more); err != nil {
		return a, err
	}
	want := 0
	for _, r := range a.replies {
		if r.wrong == "" && value(r.fields, "Ropeline-State") == "" {
			want++
		}
	}
	rig.Until(ctx, time.Second, time.Millisecond, func() bool {
		served, err1 := s.since(ctx)
		for _, l := range served {
			one := seen{}
			if json.Unmarshal([]byte(l.page), &one) != nil { // Apache escapes in another way
				one.Target = strings.ReplaceAll(l.page, id, "")
			}
			if l.id == id {
				a.seen = append(a.seen, one)
			}
		}
		err = err1
		return err != nil || len(a.seen) >= want
	})
	return a, err
}

// talk sends a request as often as it says, on one connection.
func talk(ctx context.Context, addr string, u usual, id, lines string) (all []reply, err error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	method, _, _ := strings.Cut(u.head, " ")
	r := bufio.NewReader(c)
	for range u.more + 1 {
		written := make(chan struct{})
		go func() {
			defer close(written)
			_, _ = c.Write(u.bytes(id, lines)) // that it is not read shows in the answer
		}()
		a := hearReply(r, method)
		if code(a.status) == http.StatusSwitchingProtocols {
			echo := make([]byte, len(u.after))
			_, err1 := c.Write([]byte(u.after))
			_, err2 := io.ReadFull(r, echo)
			if a.body = echo; errors.Join(err1, err2) != nil {
				a.wrong = errors.Join(err1, err2).Error()
			}
		}
		all = append(all, a)
		if a.wrong != "" || strings.EqualFold(value(a.fields, "Connection"), "close") {
			break
		}
		<-written
	}
	return all, nil
}

const passField = "Set-Cookie"

func isPass(cookie string) bool { return strings.HasPrefix(cookie, "ropeline=") }

// compare returns what is different through a node.
func compare(plain, through asked) (all []string) {
	note := func(what string, a, b any) {
		if x, y := fmt.Sprintf("%.2000q", a), fmt.Sprintf("%.2000q", b); x != y {
			all = append(all, fmt.Sprintf("%s: %s, through a node %s", what, x, y))
		}
	}
	note("answers", fmt.Sprint(len(plain.replies)), fmt.Sprint(len(through.replies)))
	for i := range min(len(plain.replies), len(through.replies)) {
		a, b := plain.replies[i], through.replies[i]
		_, said, _ := strings.Cut(a.status, " ") // a node says HTTP/1.1
		_, says, _ := strings.Cut(b.status, " ")
		note("status", said, says)
		note("fields", ends(a.fields), ends(b.fields))
		note("on the way", a.interim, b.interim)
		note("trailers", a.trailers, b.trailers)
		note("end", a.wrong, b.wrong)
		if !bytes.Equal(a.body, b.body) {
			note(fmt.Sprintf("body of %d and %d bytes", len(a.body), len(b.body)), a.body[:min(len(a.body), 200)], b.body[:min(len(b.body), 200)])
		}
	}
	note("seen", fmt.Sprint(len(plain.seen)), fmt.Sprint(len(through.seen)))
	for i := range min(len(plain.seen), len(through.seen)) {
		a, b := plain.seen[i], through.seen[i]
		note("seen method", a.Method, b.Method)
		note("seen target", a.Target, b.Target)
		note("seen body", fmt.Sprint(a.Length, a.Body), fmt.Sprint(b.Length, b.Body))
		note("seen fields", told(a.Fields), told(b.Fields))
	}
	return all
}

// ofConnections are fields that each connection has of its own, and Date, which may be another second.
var ofConnections = []string{"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "http2-settings", "expect", "date"}

// ends returns the fields of an answer that are meant for who has asked.
func ends(fields []string) (all []string) {
	for _, f := range fields {
		name, v, _ := strings.Cut(f, ":")
		if !slices.Contains(ofConnections, strings.ToLower(name)) && !(strings.EqualFold(name, passField) && isPass(strings.TrimSpace(v))) {
			all = append(all, name+": "+strings.TrimSpace(v))
		}
	}
	return all
}

// added are fields that a node writes.
var added = []string{"x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-real-ip", "forwarded", "ropeline-via", "x-id"}

// told returns the fields that a site has seen and that are not a node's, those of which a node chooses the place first.
func told(fields [][2]string) (all []string) {
	var first []string
	for _, f := range fields {
		name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(f[0], "HTTP_"), "_", "-"))
		switch line := name + ": " + f[1]; {
		case slices.Contains(ofConnections, name) || slices.Contains(added, name):
		case name == "host" || name == "content-length":
			first = append(first, line)
		default:
			all = append(all, line)
		}
	}
	slices.Sort(first)
	return append(first, all...)
}
