package differential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/server"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/room"
)

// way is how requests come to a site: through a node, or through something that asks one.
type way struct {
	name    string
	example string // in docs/examples; empty: the node's own proxy
	// quiet is how long a visitor waits after an answer before ending its half of the connection: most break off what
	// they are at when it ends, and nothing would be tried. A node goes on.
	quiet time.Duration
	known []exception
}

// direct is through the node's own proxy.
var direct = way{name: "direct"}

// ways are all ways.
func ways() []way {
	const quiet = 10 * time.Millisecond
	return []way{
		direct,
		{name: "nginx", example: "nginx.conf", quiet: quiet, known: []exception{oldest}},
		{name: "HAProxy", example: "haproxy.cfg", quiet: quiet},
		{name: "Caddy", example: "Caddyfile", quiet: quiet},
		{name: "net/http middleware", example: "nethttp.go", quiet: quiet},
		{name: "fasthttp middleware", example: "fasthttp.go", quiet: quiet},
	}
}

var oldest = exception{
	reason: "nginx answers HTTP/0.9, whose requests have no fields and whose answers have no head; it asks about them as about others",
	is: func(q *request, l line) bool {
		first, _, _ := strings.Cut(string(q.raw), "\r\n")
		return !strings.Contains(first, " HTTP/") && !strings.HasPrefix(l.id, "q") && l.page != "tickets"
	},
}

// examples is where they are, for tests.
const examples = "../../docs/examples"

// open puts what a way is made of before the site, until stop is called. Requests go that way then.
func (s *site) open(ctx context.Context, w way) (stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var errs []error
		for _, one := range slices.Backward(stops) {
			errs = append(errs, one())
		}
		return errors.Join(errs...)
	}
	err = rig.Try(func() {
		dir := rig.Got(os.MkdirTemp(s.dir, "way"))
		if s.way, s.proxy = w, nil; w.example == "" {
			at, stopNode, err := startNode(ctx, dir, s.addr, nobody)
			rig.Must(err)
			s.front, stops = at.Visitors, append(stops, stopNode)
			return
		}
		s.front = rig.Got(rig.Free())
		e := rig.Example{Folder: examples, Name: w.example, Listen: s.front, Site: s.addr}
		if missing := rig.Missing(e.Program()); len(missing) > 0 {
			rig.Must(fmt.Errorf("%s: %w: %s", w.name, errMissing, missing[0]))
		}
		at, stopNode, err := startNode(ctx, dir, "", nobody)
		rig.Must(err)
		stops = append(stops, stopNode)
		e.Verdicts = at.Verdicts
		s.proxy = rig.Got(e.Start(ctx, rig.Got(e.Write(dir)), ""))
		stops = append(stops, s.proxy.Stop)
	})
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// nobody is a room that lets nobody in.
var nobody = room.Settings{Name: "tickets", Host: protectedHost, Path: protectedPath, TotalActiveUsers: 1, NewUsersPerMinute: 1, QueueingMethod: room.Reject}

const checkedHost = "checked.example"

// startNode starts a node with a room, as a proxy before a site or, if that is empty, for those that ask for verdicts.
func startNode(ctx context.Context, dir, site string, r room.Settings) (at server.Addresses, stop func() error, err error) {
	c := server.Config{DataDir: filepath.Join(dir, "node"), Logger: slog.New(slog.DiscardHandler), Rooms: []room.Settings{r}}
	if site == "" {
		c.Clients.VerdictListen, c.Clients.TrustedProxies = "127.0.0.1:0", []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	} else {
		origin, err := upstream.ParseOrigin("http://" + site)
		if err != nil {
			return at, nil, err
		}
		// What the node asks by itself is for a host of its own, so that it is known from what came of a request.
		check := upstream.Check{Path: "/", Host: checkedHost, Status: []upstream.StatusRange{{First: 200, Last: 599}}}
		c.Proxy.Origins = httpfront.Origins{Servers: []upstream.Origin{origin}, Check: &check}
	}
	node, err := server.New(c)
	if err != nil {
		return at, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	stop = func() error { cancel(); return <-ended }
	select {
	case <-node.Ready():
		return node.Addresses(), stop, nil
	case <-node.Stopping():
		return at, nil, errors.Join(errors.New("the node stopped before it was ready"), stop())
	}
}
