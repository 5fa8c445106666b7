package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/crawler"
	"github.com/ropeline/ropeline/httpfront/verdict"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

func newRunCommand() *cobra.Command {
	cfg := defaultConfig()
	var file string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a node",
		Long: `Runs a node in front of a site. With --origin alone it is a working single
node; nodes that are given the same secret and each other's addresses are a mesh.

Every flag may stand in a YAML file under its own name; flags win. Several rooms
stand there under "rooms", each with the flags of a room as its fields.`,
		Example: `  ropeline run --origin http://127.0.0.1:3000 --total-active-users 500

  ropeline keygen --out secret.key
  ropeline run --origin http://10.0.0.5 --name a1 --site a --mesh :7946 --secret-file secret.key
  ropeline run --origin http://10.0.0.5 --name a2 --site a --mesh :7946 --secret-file secret.key --join a1.internal:7946`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.load(file, cmd.Flags()); err != nil {
				return usageError{err}
			}
			log, err := newLogger(cmd.ErrOrStderr(), cfg.LogFormat, cfg.LogLevel)
			if err != nil {
				return usageError{err}
			}
			cfg.logPassedOver(log)
			return runNode(cmd.Context(), cfg, log)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML `file` with any of these flags")
	nodeFlags(cmd.Flags(), &cfg)
	roomFlags(cmd.Flags(), &cfg.Room)
	cmd.Flags().SortFlags = false
	return cmd
}

func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return slog.New(slog.NewTextHandler(w, opts)), nil
}

// stateDir is where a node keeps its state when nothing else is said: below
// what systemd hands over, or the user's state directory.
func stateDir(name string) (string, error) {
	if dir := os.Getenv("STATE_DIRECTORY"); dir != "" {
		return dir, nil
	}
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no directory for the node's state: %w; give one with --data-dir", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "ropeline", name), nil
}

// runNode puts a node together, runs it and takes it down again.
func runNode(ctx context.Context, cfg config, log *slog.Logger) (err error) {
	rooms, err := cfg.rooms()
	if err != nil {
		return usageError{err}
	}
	if err := cfg.faults.open(); err != nil {
		return err
	}
	path := cfg.DataDir
	if path == "" {
		if path, err = stateDir(cfg.Name); err != nil {
			return err
		}
	}
	fromFiles, err := identityFromFiles(cfg)
	if err != nil {
		return err
	}
	identity := fromFiles.Identity
	var want crdt.NodeID
	if identity != nil {
		want = crdt.NodeID(identity.ID())
	}
	dir, err := node.OpenDataDir(path, want)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	shared, err := openSecrets(cfg, path, time.Now, log)
	if err != nil {
		return err
	}
	if identity == nil && cfg.Mesh != "" {
		if identity, err = identityFromSecrets(cfg, shared, dir); err != nil {
			return err
		}
	}
	follower := &follower{lists: cfg.Front.Lists, log: log, hosts: cfg.Front.hosts}
	n, err := newNode(cfg, rooms, dir, shared.order()[0], follower.cataloging(len(rooms)), log)
	if err != nil {
		return err
	}
	mesh, err := newMesh(cfg, identity, dir, n, shared, log)
	if err != nil {
		return err
	}
	visitors, err := newVisitorTLS(ctx, cfg, dir, log)
	if err != nil {
		return err
	}
	defer visitors.Close()
	crawlers, err := crawler.New(crawler.Config{})
	if err != nil {
		return err
	}
	front, err := newFront(cfg, rooms, shared, n, &visitors, crawlers, log)
	if err != nil {
		return err
	}
	follower.front = front
	lame := lameDuck{ctx, n}
	verdicts, err := newVerdicts(cfg, front, lame.ready, log)
	if err != nil {
		return err
	}
	admin, err := httpfront.NewAdmin(httpfront.AdminConfig{Listen: cfg.Admin, Status: lame.status, Origins: front.Origins, Certificates: visitors.status, Secrets: shared.status, Page: front.Page, Logger: log})
	if err != nil {
		return err
	}
	log.Info("starting", cfg.serves(), "admin", cfg.Admin,
		"rooms", len(rooms), "data_dir", path, "version", versionText())
	beside := visitors.runs(front)
	if fromFiles.watch != nil {
		beside = append(beside, func(ctx context.Context) error { return fromFiles.run(ctx, cfg, log) })
	}
	beside = append(beside, func(ctx context.Context) error { crawlers.Run(ctx); return nil })
	others := askerOf(mesh)
	beside = append(beside, func(ctx context.Context) error { return shared.run(ctx, others) })
	left, err := runAll(ctx, cfg, log, n, mesh, front, verdicts, admin, beside)
	if left && cfg.CertFile == "" {
		err = errors.Join(err, dir.Abandon())
	}
	log.Info("stopped")
	return refuseCopied(dir, err)
}

// refuseCopied has no start use the directory again if this one ended because others
// know better.
func refuseCopied(dir *node.DataDir, err error) error {
	if errors.Is(err, transport.ErrSuperseded) {
		err = fmt.Errorf("%w: %w", err, node.ErrCopied)
		err = errors.Join(err, dir.Refuse(err))
	}
	return err
}

// joinPatience is how long a node that shall join others, or has met some before, waits
// for the first of them. A whole mesh that starts at once is ready when it has passed.
const joinPatience = 5 * time.Second

func newNode(cfg config, rooms []room.Settings, dir *node.DataDir, secret transport.Secret, follow *node.Cataloging, log *slog.Logger) (*node.Node, error) {
	var await, known time.Duration
	if len(cfg.Join) > 0 {
		await = joinPatience
	}
	if cfg.Mesh != "" {
		known = joinPatience
	}
	nc := node.Config{
		Data:     dir,
		Name:     cfg.Name,
		Site:     cfg.Site,
		Version:  versionText(),
		Rooms:    rooms,
		OwnerKey: secret.Lasting("visitor owner", 32),

		Catalog: follow,

		AwaitPeers: await,
		AwaitKnown: known,
		Found:      cfg.founds(),
		Logger:     log,
	}
	cfg.faults.apply(&nc)
	return node.New(nc)
}

// identityFromSecrets makes an identity that follows the secrets of the mesh.
func identityFromSecrets(cfg config, shared *secrets, dir *node.DataDir) (*transport.Identity, error) {
	identity, err := transport.IdentityFromSecret(shared.order()[0], transport.PeerID(dir.Self().Node), cfg.Name, cfg.Site, time.Now())
	if err != nil {
		return nil, err
	}
	return identity, shared.follow(func(order []transport.Secret) error { return identity.Use(order, time.Now()) })
}

func newMesh(cfg config, identity *transport.Identity, dir *node.DataDir, n *node.Node, shared *secrets, log *slog.Logger) (*transport.Mesh, error) {
	if cfg.Mesh == "" {
		return nil, nil
	}
	self := dir.Self()
	t := transport.LAN()
	t.ID, t.Boot = transport.PeerID(self.Node), self.Boot
	t.Name, t.Site = cfg.Name, cfg.Site
	t.Listen, t.Advertise, t.Seeds = cfg.Mesh, cfg.Advertise, cfg.Join
	var err error
	if t.DataDir, err = dir.Sub("mesh"); err != nil {
		return nil, err
	}
	t.Identity, t.Logger, t.Clock = identity, log, n.Now
	t.OnMessage, t.OnEvent, t.OnCall = n.OnMessage, n.OnEvent, shared.onCall
	return transport.New(t)
}

// newFront makes the front, which knows what the rooms say of it, with keys that follow
// the secrets of the mesh.
func newFront(cfg config, rooms []room.Settings, shared *secrets, n *node.Node, visitors *visitorTLS, crawlers *crawler.Checker, log *slog.Logger) (*httpfront.Front, error) {
	keys, err := passKeys(shared.order(), shared.older())
	if err != nil {
		return nil, err
	}
	signer, err := cfg.Proof.signer(shared.order())
	if err != nil {
		return nil, err
	}
	front, err := httpfront.New(visitors.apply(cfg.Proxy.front(httpfront.Config{
		Listen:         cfg.Listen,
		Rooms:          cfg.faults.rooms(nodeRooms{n}, n.Now),
		Keys:           keys,
		TrustedProxies: cfg.TrustedProxies,
		Edge:           cfg.Edge.front,
		Hosts:          cfg.Front.hosts(rooms),
		Lists:          cfg.Front.Lists,
		Crawlers:       crawlers,
		CountryHeader:  cfg.Front.CountryHeader,

		VerdictCountryHeader: cfg.Front.VerdictCountryHeader,

		Proof:       signer,
		ProofHeader: cfg.Proof.Header,
		Ready:       n.Ready,
		Clock:       n.Now,
		Logger:      log,
	})))
	if err != nil {
		return nil, err
	}
	cfg.Front.warnOfHosts(rooms, log)
	for _, s := range rooms {
		s.ID = crdt.RoomID{} // it has another once the room was retired and is made again
		if err := front.Configure(s); err != nil {
			return nil, err
		}
	}
	return front, shared.follow(func(order []transport.Secret) error {
		keys, err := passKeys(order, shared.older())
		if err != nil {
			return err
		}
		front.SetKeys(keys)
		if signer == nil {
			return nil
		}
		return signer.Rotate(proofKeys(order))
	})
}

// newVerdicts returns the server for other proxies; nil if there shall be none.
func newVerdicts(cfg config, front *httpfront.Front, ready func() error, log *slog.Logger) (*verdict.Server, error) {
	if cfg.VerdictListen == "" {
		return nil, nil
	}
	return verdict.New(verdict.Config{
		Listen:         cfg.VerdictListen,
		Judge:          front,
		TrustedProxies: cfg.TrustedProxies,
		Ready:          ready,
		Logger:         log,
	})
}

// nodeRooms gives the front a node's rooms.
type nodeRooms struct{ n *node.Node }

func (r nodeRooms) Route(host, path string) httpfront.Room {
	if found := r.n.Route(host, path); found != nil {
		return found
	}
	return nil
}

// lameDuck tells balancers that this node is being stopped, from the moment on in which
// its context ends: they shall send nobody any more while it still serves.
type lameDuck struct {
	stop context.Context
	*node.Node
}

var errStopping = errors.New("this node is being stopped")

func (l lameDuck) ready() error {
	if l.stop.Err() != nil {
		return errStopping
	}
	return l.Ready()
}

func (l lameDuck) status() node.Status {
	s := l.Status()
	if err := l.ready(); err != nil && s.Ready {
		s.Ready, s.Reason = false, err.Error()
	}
	return s
}

// runAll runs the parts until signals ends, and Config.DrainDelay after that, or until one
// of them fails. The front goes first, with what runs beside it, so that its visitors' last
// notes still reach the mesh; then the operator's listener, which tells of it meanwhile; the
// mesh last. It reports whether the node has left for good.
func runAll(signals context.Context, cfg config, log *slog.Logger, n *node.Node, mesh *transport.Mesh, front *httpfront.Front, verdicts *verdict.Server, admin *httpfront.Admin, beside []func(context.Context) error) (left bool, err error) {
	ctx, fail := context.WithCancelCause(context.WithoutCancel(signals))
	defer fail(nil)
	errs := make([]error, 6+len(beside))
	var outer, watch, inner sync.WaitGroup
	innerCtx, stopInner := context.WithCancelCause(context.WithoutCancel(ctx))
	watchCtx, stopWatch := context.WithCancelCause(context.WithoutCancel(ctx))
	start := func(wg *sync.WaitGroup, i int, ctx context.Context, run func(context.Context) error) {
		wg.Go(func() {
			if errs[i] = run(ctx); errs[i] != nil {
				fail(errs[i])
			}
		})
	}
	if mesh != nil {
		start(&inner, 0, innerCtx, mesh.Run)
		start(&inner, 1, innerCtx, func(ctx context.Context) error { return n.Run(ctx, cfg.faults.links(mesh)) })
	} else {
		start(&inner, 1, innerCtx, func(ctx context.Context) error { return n.Run(ctx, nil) })
	}
	if len(cfg.Proxy.Origins.Servers) > 0 {
		start(&outer, 2, ctx, front.Run)
	}
	if verdicts != nil {
		start(&outer, 5, ctx, verdicts.Run)
	}
	start(&watch, 3, watchCtx, admin.Run)
	start(&outer, 4, ctx, func(ctx context.Context) error { return obey(ctx, n, cfg.Rights, log) })
	for i, run := range beside {
		start(&outer, 6+i, ctx, run)
	}
	awaitStop(signals, ctx, cfg.Proxy.DrainDelay, log)
	fail(nil)
	outer.Wait()
	stopWatch(nil)
	watch.Wait()
	left = cfg.Rights.OnStop == stopLeaves && n.Ready() == nil && leave(innerCtx, n, log)
	stopInner(nil)
	inner.Wait()
	return left, errors.Join(errs...)
}

// awaitStop returns when the node shall stop: delay after the signal, or when a part has
// failed, which ends running.
func awaitStop(signals, running context.Context, delay time.Duration, log *slog.Logger) {
	select {
	case <-signals.Done():
	case <-running.Done():
		delay = 0
	}
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	if delay > 0 {
		log.Info("stopping: /readyz says so, and visitors are served until drain-delay has passed; a second signal stops at once", "drain_delay", shortDuration(delay))
		select {
		case <-time.After(delay):
		case <-running.Done():
		}
	}
	log.Info("stopping: requests under way may end; a second signal stops at once")
}
