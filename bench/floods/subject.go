//go:build linux

package floods

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rate"
	"github.com/ropeline/ropeline/bench/rig"
)

const (
	perSecond   = 200                    // requests of the visitor
	visitorUses = 8                      // connections, as browsers do
	calmWindows = 3                      // before a flood, and after it
	afterwards  = 5 * time.Second        // until a flood that has ended is forgotten
	openedOver  = 30 * time.Second       // connections: as long as a node keeps one that does nothing
	looks       = 250 * time.Millisecond // between two samples of memory
	settle      = 2 * time.Minute        // until who is in line is as many as will be
	spare       = 64                     // connections that floods leave to the visitor
	full        = 1 << 30                // places of a room that has some for everybody
	collections = "go_gc_duration_seconds_count"
	token       = "0123456789abcdef0123456789abcdef" // of operators, where they need one
)

// subject is a node with a site and a visitor inside.
type subject struct {
	dir        string
	site, node *rig.Process
	at         map[string]string // its listeners, by their settings
	asked      string            // where the visitor's requests go
	request    []byte            // of the visitor
}

// startSubject starts a node as a kind of load wants it.
func startSubject(ctx context.Context, r *measurement.Run, k kind, conns int) *subject {
	s := &subject{dir: rig.Got(os.MkdirTemp("", "ropeline-floods"))}
	err := rig.Try(func() { s.start(ctx, r.Binary, k.state, conns) })
	if err != nil {
		s.end()
	}
	rig.Must(err)
	return s
}

func (s *subject) start(ctx context.Context, binary string, state nodeState, conns int) {
	s.at = map[string]string{}
	for _, listener := range []string{"listen", "admin", "verdict-listen", "redirect-listen"} {
		s.at[listener] = rig.Got(rig.Free())
	}
	site := rig.Got(rig.Free())
	s.site = rig.Got(rig.StartNginx(ctx, rig.OfLoad, filepath.Join(s.dir, "site"), siteAt(site)))
	rig.Must(s.site.Await(ctx, "http://"+site+"/"))
	places := 1
	if state.open {
		places = full
	}
	config := fmt.Sprintf("total-active-users: %d\nnew-users-per-minute: %d\nsession-duration: 24h\nmax-requests-per-connection: 1048576\nmax-connections: %d\n%s", places, full, conns, state.config)
	if state.tokens {
		file := filepath.Join(s.dir, "admin.tokens")
		rig.Must(os.WriteFile(file, []byte("write "+token+"\n"), 0o600))
		config += "admin-token-file: " + file + "\n"
	}
	ask := headWith
	s.asked = s.at["listen"]
	if state.proxy {
		ask = func(fields string) []byte { return headFor("/forward", forwarded+fields) }
		s.asked = s.at["verdict-listen"]
		cert := filepath.Join(s.dir, "cert.pem")
		rig.Got(exec.CommandContext(ctx, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=shop.example", "-keyout", cert, "-out", cert).Output())
		config += fmt.Sprintf("tls-cert-file: %s\ntls-key-file: %[1]s\nverdict-listen: %[2]s\nredirect-listen: %[3]s\n", cert, s.asked, s.at["redirect-listen"])
	}
	s.node = rig.Got(rig.StartNode(ctx, rig.NodeConfig{Binary: binary, Listen: s.at["listen"], Admin: s.at["admin"], Site: site, Dir: s.dir, Config: config}))
	rig.Must(s.node.Await(ctx, "http://"+s.at["admin"]+"/readyz"))
	rig.Must(s.node.AwaitFunc(ctx, "lets the visitor in", func(ctx context.Context) bool {
		cookie, err := comeIn(ctx, s.asked, ask(""))
		s.request = ask("Cookie: " + cookie + "\r\n")
		return err == nil
	}))
}

// forwarded is what a proxy tells of the visitor.
const forwarded = "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /\r\nX-Forwarded-Host: shop.example\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 192.0.2.7\r\n"

// metric returns one of the node's own figures. Its connection ends with that: kept open, it would be one more than there may be at "admin", and
// those of a flood would take each other's places for as long as the tool looks, and no longer.
func (s *subject) metric(ctx context.Context, name string) (n int) {
	req := rig.Got(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.at["admin"]+"/metrics", nil))
	req.Header.Set("Authorization", "Bearer "+token)
	req.Close = true
	resp := rig.Got(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	_, value, _ := bytes.Cut(rig.Got(io.ReadAll(resp.Body)), []byte("\n"+name+" "))
	rig.Got(fmt.Fscan(bytes.NewReader(value), &n))
	return n
}

// siteAt is a site that answers at once, but for forms: it reads these first.
func siteAt(listen string) rig.NginxConfig {
	return rig.NginxConfig{HTTP: fmt.Sprintf(`server { listen %s; keepalive_requests 1000000000; client_max_body_size 0; client_body_timeout 1h;
location / { return 200 "hello\n"; }
location = %s { proxy_pass http://%[1]s/; } }`, listen, formPath)}
}

// comeIn has somebody new come to a node, with a request, and returns the pass, NAME=VALUE. It is an error if they are not let in.
func comeIn(ctx context.Context, address string, request []byte) (pass string, err error) {
	return pass, load.Newcomers(ctx, address, 1, func(int) []byte { return request }, func(_ int, r *fasthttp.Response) error {
		for _, header := range r.Header.Cookies() {
			pass, _, _ = strings.Cut(string(header), ";")
		}
		if state := r.Header.Peek("Ropeline-State"); state != nil || pass == "" {
			return fmt.Errorf("the answer is %d, with Ropeline-State %q", r.StatusCode(), state)
		}
		return nil
	})
}

func (s *subject) end() {
	for _, p := range []*rig.Process{s.node, s.site} {
		if p != nil {
			_ = p.Kill() // it has nothing to lose
		}
	}
	_ = os.RemoveAll(s.dir)
}

// windows measures the visitor's requests so many times.
func (s *subject) windows(ctx context.Context, n int, lasts time.Duration) (all []seen) {
	for range n {
		used, begun := rig.Got(s.node.Usage()), time.Now()
		r, err := rate.Run(ctx, rate.Config{Address: s.asked, Requests: [][]byte{s.request}, Conns: visitorUses, Rate: perSecond, Lasts: lasts})
		rig.Must(err)
		used = rig.Got(s.node.Usage()).Sub(used)
		passed := time.Since(begun).Seconds()
		all = append(all, seen{
			p99: time.Duration(r.Latency.P99 * float64(time.Microsecond)), bad: r.Due - r.Status[http.StatusOK],
			busy: used.CPU.Seconds() / passed, waited: used.Waited.Seconds() / passed,
		})
	}
	return all
}

// memory is what a node has of its own.
func (s *subject) memory() (float64, error) {
	m, err := s.node.Memory()
	return float64(m.Anon), err
}

// atRest is the most memory that a node has between two garbage collections without a flood, which its own garbage would be
// taken for otherwise: while it does little, that takes minutes to become what it will be.
func (s *subject) atRest(ctx context.Context) (most float64) {
	for end := s.metric(ctx, collections) + 2; s.metric(ctx, collections) < end; {
		most = max(most, rig.Got(s.memory()))
		rig.Must(s.node.Sleep(ctx, 10*time.Millisecond)) // operators may not ask more often
	}
	return most
}

// watching takes samples of a node's memory.
type watching struct {
	end  func()
	runs sync.WaitGroup

	mu  sync.Mutex // guards the following
	all []float64
	err error
}

// watch takes samples until stop is called.
func (s *subject) watch(ctx context.Context) *watching {
	ctx, end := context.WithCancel(ctx)
	w := &watching{end: end}
	w.runs.Go(func() {
		for rig.Sleep(ctx, looks) == nil {
			m, err := s.memory()
			w.mu.Lock()
			w.all, w.err = append(w.all, m), errors.Join(w.err, err)
			w.mu.Unlock()
		}
	})
	return w
}

// taken is how many samples there are, and the newest.
func (w *watching) taken() (n int, newest float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n = len(w.all); n > 0 {
		newest = w.all[n-1]
	}
	return n, newest
}

// stop returns all samples.
func (w *watching) stop() []float64 {
	w.end()
	w.runs.Wait()
	rig.Must(w.err)
	return w.all
}

// running is a flood in a process of its own.
type running struct {
	*rig.Process
	k    kind
	want int // connections, or answers
}

// startFlood starts a flood at a low priority. At the lowest one, on a machine that does something else as well, it would stand
// still for so long that the node ends its connections.
func startFlood(ctx context.Context, self string, k kind, s *subject, c config) *running {
	address, f := s.at[cmp.Or(k.to, "listen")], &running{k: k}
	args := []string{"-n", "10", self, "flood", "--kind", k.name, "--address", address}
	if k.open != nil {
		f.want = k.open(c.most)
		args = append(args, "--connections", strconv.Itoa(f.want), "--over", min(openedOver, c.lasts).String())
	} else {
		f.want = min(k.requests, c.sent)
	}
	f.Process = rig.Got(rig.Start(ctx, rig.Command{Core: rig.OfLoad, Env: []string{"GOMAXPROCS=1", "GOGC=400"}, Name: "nice", Args: args}))
	return f
}

// last is what the flood told last.
func (f *running) last() (p progress) {
	lines := strings.Split(strings.TrimSpace(f.Log()), "\n")
	_ = json.Unmarshal([]byte(lines[len(lines)-1]), &p) // nothing yet, or half a line
	return p
}

// count is how much of what is charged for there is.
func (f *running) count() int {
	if f.k.open != nil {
		return int(f.last().Held)
	}
	return int(f.last().Answered)
}

// longestRise is how long a flood may take to come to its bound and settle there.
const longestRise = 15 * time.Minute

// littleGarbage is how long no collection comes while little garbage is made. Go collects it every two minutes then.
const littleGarbage = 100 * time.Second

// await returns when the flood is at its bound, and what comes and goes there is as it will be: who is in line, which takes time, and the heap,
// which takes collections. Each sets up to where the heap grows until the next by what is alive, and pages become resident when it first grows into
// them. The first one at the bound finds all of the flood, the second ends the growth up to there, in the third cycle what stacks gave back is filled,
// and a later one can still bring a step (docs/measurements.md). Where little garbage is made the heap does not grow into what it may.
func (f *running) await(ctx context.Context, s *subject, c config, told func()) {
	begun, first, is, since := time.Now(), -1, 0, time.Time{}
	for next := begun.Add(10 * time.Second); ; {
		rig.Must(errors.Join(f.Sleep(ctx, time.Second), s.node.Sleep(ctx, 0)))
		if f.count() >= f.want*98/100 { // of connections, some are always being made
			now := s.metric(ctx, collections)
			if first < 0 {
				first = now
			}
			if now != is {
				is, since = now, time.Now()
			}
			if (now >= first+c.cycles || time.Since(since) >= littleGarbage) && time.Since(begun) >= min(settle, c.lasts) {
				return
			}
		}
		if time.Since(begun) > longestRise {
			rig.Must(fmt.Errorf("it did not settle at its bound within %v: %v, and %d are wanted, with %d collections then", longestRise, f.last(), f.want, c.cycles))
		}
		if time.Now().After(next) {
			next = next.Add(10 * time.Second)
			told()
		}
	}
}
