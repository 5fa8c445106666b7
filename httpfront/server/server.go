package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/integrations/verdict"
	"github.com/ropeline/ropeline/httpfront/observe/accesslog"
	"github.com/ropeline/ropeline/httpfront/observe/tracing"
	"github.com/ropeline/ropeline/httpfront/operator/overview"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/transport"
)

// Server is one node with all that it serves. Make it with New, then call Run once, or Close.
type Server struct {
	cfg      Config // complete, without rooms
	log      *slog.Logger
	dir      *node.DataDir
	secrets  *secrets
	identity meshIdentity

	ports    ports
	node     *node.Node
	mesh     *transport.Mesh // nil: a single node
	visitors visitorTLS
	front    *httpfront.Front
	verdicts *verdict.Server // nil: nobody asks
	admin    *operators
	seen     *overview.Overview
	observers

	beside []part // what runs while visitors are served
	after  []part // what runs until the last of them was

	bounds Bounds
	rooms  int // that the configuration has
	life   *life
}

// observers are told of requests.
type observers struct {
	measures *measures
	access   *accesslog.Log  // nil: there is none
	tracer   *tracing.Tracer // nil: nothing is traced
}

// part is something that runs until its context ends.
type part func(context.Context) error

// life is how far a server is.
type life struct {
	began    atomic.Bool   // by Run or Close
	ready    chan struct{} // closed when visitors are taken
	stopping chan struct{} // closed when it is to stop
	stop     func()        // closes stopping
	leaves   atomic.Bool   // when it stops, whatever the configuration says
}

func newLife() *life {
	l := &life{ready: make(chan struct{}), stopping: make(chan struct{})}
	l.stop = sync.OnceFunc(func() { close(l.stopping) })
	return l
}

// drain has the server stop in order; with leave, its rights go to another node.
func (l *life) drain(leave bool) {
	if leave {
		l.leaves.Store(true)
	}
	l.stop()
}

// New checks cfg and opens what a node needs: certificates, the data directory, and the
// addresses on which it listens, which are known from then on. Nothing is answered before Run.
// What is wrong with cfg itself is a *SettingError.
func New(cfg Config) (_ *Server, err error) {
	cfg = cfg.withDefaults()
	if cfg.DataDir == "" {
		err = at("data-dir", "--data-dir is missing: a directory for this node's identity and counts")
	}
	if err := errors.Join(err, cfg.Check()); err != nil {
		return nil, err
	}
	rooms, err := cfg.ServedRooms()
	if err != nil {
		return nil, err
	}
	cfg.Rooms = nil // there may be thousands
	s := &Server{cfg: cfg, log: cfg.Logger, rooms: len(rooms), life: newLife()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if err := s.keepWithin(); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	if err := s.assemble(rooms); err != nil {
		return nil, err
	}
	return s, nil
}

// open opens what is outside of the process.
func (s *Server) open() (err error) {
	if s.identity, err = identityFromFiles(&s.cfg.Mesh); err != nil {
		return err
	}
	if s.dir, err = node.OpenDataDir(s.cfg.DataDir, s.identity.nodeID()); err != nil {
		return err
	}
	if s.secrets, err = openSecrets(s.cfg.Mesh.SecretFile, s.cfg.DataDir, time.Now, s.log); err != nil {
		return err
	}
	if s.identity.Identity == nil && s.cfg.Mesh.Listen != "" {
		if err = s.identityFromSecrets(); err != nil {
			return err
		}
	}
	if s.ports, err = openPorts(&s.cfg); err != nil {
		return err
	}
	s.visitors, err = newVisitorTLS(&s.cfg, &s.ports, s.dir, s.log)
	return err
}

// release gives back what New has opened, where nothing ran.
func (s *Server) release() error {
	var errs []error
	ended, end := context.WithCancel(context.Background())
	end()
	for _, run := range s.after {
		errs = append(errs, run(ended)) // which closes what it has
	}
	s.visitors.Close()
	s.ports.close()
	if s.mesh != nil {
		errs = append(errs, s.mesh.Close())
	}
	if s.node != nil {
		errs = append(errs, s.node.Close())
	}
	if s.dir != nil {
		errs = append(errs, s.dir.Close())
	}
	return errors.Join(errs...)
}

// Close gives back what New has opened, if Run is not to be called. After Run it does nothing.
func (s *Server) Close() error {
	if s.life.began.Swap(true) {
		return nil
	}
	return s.release()
}

// Ready is closed once the node takes visitors, which may be when it has found others.
func (s *Server) Ready() <-chan struct{} { return s.life.ready }

// Stopping is closed once the node is to stop: the context of Run has ended, an operator has
// said so, or a part of it has failed. Run returns when the last visitor was served.
func (s *Server) Stopping() <-chan struct{} { return s.life.stopping }

// Status is what the node tells of itself at /status, but for what it has from other nodes.
func (s *Server) Status() node.Status { return s.lame().Status() }

// lame returns the node as those see it who ask whether it is ready.
func (s *Server) lame() lameDuck { return lameDuck{s.life.stopping, s.node} }

// ReopenAccessLog has the file of the access log opened by its name again, as after a
// rotation. It reports whether there is one.
func (s *Server) ReopenAccessLog() bool {
	if s.access == nil {
		return false
	}
	s.access.Reopen()
	return true
}

// lameDuck tells balancers that this node is being stopped, from the moment on in which that is
// known: they shall send nobody any more while it still serves.
type lameDuck struct {
	stopping <-chan struct{}
	*node.Node
}

var errStopping = errors.New("this node is being stopped")

func (l lameDuck) ready() error {
	select {
	case <-l.stopping:
		return errStopping
	default:
		return cmp.Or(l.Outvoted(), l.Ready())
	}
}

// Status is that of the node, which is not ready any more.
func (l lameDuck) Status() node.Status {
	s := l.Node.Status()
	if err := l.ready(); err != nil && s.Ready {
		s.Ready, s.Reason = false, err.Error()
	}
	return s
}

// serves says in the log what this node is for.
func (c *Config) serves(at Addresses) slog.Attr {
	var attrs []any
	if at.Visitors != "" {
		attrs = append(attrs, slog.String("listen", at.Visitors), slog.String("origin", originsText(c.Proxy.Origins.Servers)))
	}
	if at.Verdicts != "" {
		attrs = append(attrs, slog.String("verdict_listen", at.Verdicts))
	}
	return slog.Group("", attrs...)
}
