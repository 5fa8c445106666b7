package httpfront

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ropeline/ropeline/httpfront/edge"
	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/gate/visitor"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// Front is the public side: it serves HTTP/1.1 on one listener, in front of the
// origins of a site.
type Front struct {
	cfg   Config
	sites *sites
	plain *roomFront // of rooms that were not configured
	self  string     // what the node calls itself towards itself; see loop.go

	keys   keys
	rooms  atomic.Pointer[map[roomKey]*roomFront] // replaced as a whole
	limits atomic.Pointer[[]*rateLimit]           // that requests are held against, in their order; replaced as a whole

	limitedAnswers *limitedAnswers
	hosts          atomic.Pointer[[]string] // that are served; none: all are

	reserved reserved
	trust    visitor.Trust // about requests
	asked    visitor.Trust // about questions

	crowd   *crowd   // of new visitors
	sharing *sharing // of passes

	failures failures
	tunnels  tunnels

	inFlight atomic.Int64 // requests that are being answered, where somebody counts them
	edge     atomic.Pointer[edge.Listener]

	draining atomic.Bool // it takes no more connections
	stopping atomic.Bool // it will soon
}

// New checks cfg and returns a Front that Run will serve. It opens nothing.
func New(cfg Config) (*Front, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	sites, err := newSites(&cfg)
	if err != nil {
		return nil, fmt.Errorf("http front: %w", err)
	}
	if err := lang.Load(); err != nil {
		return nil, fmt.Errorf("http front: %w", err)
	}
	builtin, err := page.New(page.Config{Logger: cfg.Logger})
	if err != nil {
		return nil, fmt.Errorf("http front: waiting page: %w", err)
	}
	country := strings.ToLower(cfg.CountryHeader)
	f := &Front{
		cfg: cfg, sites: sites, plain: &roomFront{page: builtin}, self: newSelf(),
		trust: visitor.Trust{Proxies: cfg.TrustedProxies, Field: cfg.Edge.ClientIPHeader, Country: country},
		asked: visitor.Trust{Proxies: cfg.TrustedProxies, Field: visitor.FieldForwardedFor, Country: strings.ToLower(cfg.VerdictCountryHeader)},
		crowd: newCrowd(), sharing: newSharing(), limitedAnswers: newLimitedAnswers(),
	}
	told := fieldNames{cfg.Edge.ClientIPHeader, country}
	f.reserved = reserved{told: told, proofName: cfg.ProofHeader, withheld: append(fieldNames{cfg.ProofHeader}, told...), traces: cfg.Tracer != nil}
	f.keys.Store(cfg.Keys)
	f.rooms.Store(&map[roomKey]*roomFront{})
	f.limits.Store(new([]*rateLimit))
	f.SetHosts(cfg.Hosts)
	return f, nil
}

// SetKeys has passes opened and sealed with other keys from now on. It may be called while
// requests run.
func (f *Front) SetKeys(ring *pass.Keyring) { f.keys.replace(ring) }

// SetMesh says of which mesh sessions are from now on: those of others are none.
func (f *Front) SetMesh(id [16]byte) { f.keys.bind(id) }

// keys are those with which passes are opened and sealed.
type keys struct {
	atomic.Pointer[pass.Keyring]

	mu   sync.Mutex // held while they are replaced; guards mesh
	mesh [16]byte
}

func (k *keys) replace(ring *pass.Keyring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.Store(ring.Of(k.mesh))
}

// bind has passes be of a mesh.
func (k *keys) bind(mesh [16]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mesh = mesh
	k.Store(k.Load().Of(mesh))
}

// SetHosts has requests for these hosts served from now on, and others refused; none: all
// are served. It may be called while requests run.
func (f *Front) SetHosts(hosts []string) { f.hosts.Store(&hosts) }

// Run serves until ctx ends. Then it takes no more connections, lets requests
// under way end for up to Timeouts.Drain, closes what is left and returns nil.
// It returns an error if it could not serve. It is to be called once.
func (f *Front) Run(ctx context.Context) error {
	if len(f.sites.groups) == 0 {
		return errors.New("http front: no origin to serve")
	}
	l := edge.New(f.cfg.Listener, f.edgeConfig(f.tlsConfig()), func(e *edge.Conn) {
		f.serve(&client{Conn: e, records: true}, f.handle)
	})
	f.edge.Store(l)
	origins, stopOrigins := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	for _, g := range f.sites.groups {
		wg.Go(func() { g.Run(origins) })
	}
	err := l.Serve(ctx, func() {
		f.drain(l)
		for _, g := range f.sites.groups {
			g.Close()
		}
	})
	stopOrigins()
	wg.Wait()
	if err != nil {
		return fmt.Errorf("http front: %w", err)
	}
	return nil
}

// tlsConfig returns how TLS is spoken with visitors; nil if it is not.
func (f *Front) tlsConfig() *tls.Config {
	if f.cfg.TLS == nil {
		return nil
	}
	c := f.cfg.TLS.Clone()
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	protocols := []string{"http/1.1"}
	if slices.Contains(c.NextProtos, edge.ACMEProtocol) {
		protocols = append(protocols, edge.ACMEProtocol)
	}
	c.NextProtos = protocols
	return c
}

// Origins returns what is known of the origins now, those of all other requests
// first. It may be called at any time.
func (f *Front) Origins() []upstream.Status {
	all := make([]upstream.Status, len(f.sites.groups))
	for i, g := range f.sites.groups {
		all[i] = g.Status()
	}
	return all
}

// Load returns how many connections of clients are open now, and how many requests are
// being answered, which is known where Config.Requests or AccessLog is set. Any goroutine may
// call it.
func (f *Front) Load() (connections, requests int) {
	if l := f.edge.Load(); l != nil {
		connections = l.Serving()
	}
	return connections, int(f.inFlight.Load())
}

// Stopping says that Run is to end soon, so that each answer from now on is the last of its connection: a client that keeps one
// could send something at the moment at which it is closed, and would not know what became of that.
func (f *Front) Stopping() { f.stopping.Store(true) }

// drain lets requests end, and then cuts the rest off.
func (f *Front) drain(l *edge.Listener) {
	f.draining.Store(true)
	f.Stopping()
	ctx, cancel := context.WithTimeout(context.Background(), f.cfg.Timeouts.Drain)
	defer cancel()
	var ending sync.WaitGroup
	ending.Go(func() { f.tunnels.end(ctx, f.cfg.Timeouts.Drain) })
	if err := l.Quiesce(ctx); err != nil {
		f.cfg.Logger.Warn("requests did not end in time", "error", err)
	}
	ending.Wait()
	if n := l.Abort(); n > 0 {
		f.cfg.Logger.Info("closed connections", "count", n)
	}
}
