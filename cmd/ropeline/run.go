package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/crawler"
	"github.com/ropeline/ropeline/httpfront/verdict"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

func newRunCommand() *cobra.Command {
	cfg := defaultConfig()
	var file string
	var helpAll bool
	var showAll func(*cobra.Command, []string)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a node",
		Long: `Runs a node in front of a site. With --origin alone it is a working single
node; nodes that are given the same secret and each other's addresses are a mesh.

These are the flags of a first start; --help-all lists all. Each may stand in a
YAML file under its own name; flags win. Several rooms stand there under "rooms".`,
		Example: `  ropeline run --origin http://127.0.0.1:3000 --total-active-users 500

  ropeline keygen --out secret.key
  ropeline run --origin http://10.0.0.5 --name a1 --site a --mesh :7946 --secret-file secret.key \
    --join a1.internal:7946,a2.internal:7946 --bootstrap-nodes a1,a2     # at a2 the same with --name a2`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if helpAll {
				showAll(cmd, nil)
				return nil
			}
			if err := cfg.load(file, cmd.Flags()); err != nil {
				return usageError{err}
			}
			log, err := newLogger(cmd.ErrOrStderr(), cfg.LogFormat, cfg.LogLevel)
			if err != nil {
				return usageError{err}
			}
			cfg.logPassedOver(log)
			rooms, err := cfg.rooms()
			if err != nil {
				return usageError{err}
			}
			cfg.Rooms, cfg.file = nil, fileLines{} // there may be thousands, and flags hold cfg for good
			return runNode(cmd.Context(), cfg, rooms, log)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML `file` with any of these flags")
	nodeFlags(cmd.Flags(), &cfg)
	roomFlags(cmd.Flags(), &cfg.Room)
	cmd.Flags().BoolVar(&helpAll, "help-all", false, "show all flags")
	cmd.Flags().SortFlags = false
	showAll = shortHelp(cmd)
	return cmd
}

func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: l}
	if format == "json" {
		opts.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration { // a number of nanoseconds, by default
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			return a
		}
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
func runNode(ctx context.Context, cfg config, rooms []room.Settings, log *slog.Logger) (err error) {
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
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	parts, err := assemble(ctx, cfg, assembly{rooms: rooms, dir: dir, secrets: shared, identity: identity, log: log, stop: stop, leaves: new(atomic.Bool)})
	if err != nil {
		return err
	}
	defer parts.visitors.Close()
	if fromFiles.watch != nil {
		parts.beside = append(parts.beside, func(ctx context.Context) error { return fromFiles.run(ctx, cfg, log) })
	}
	log.Info("starting", cfg.serves(), "admin", cfg.Admin.Listen,
		"rooms", len(rooms), "data_dir", path, "version", versionText())
	left, err := parts.run(ctx, cfg)
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

func newNode(cfg config, rooms []room.Settings, dir *node.DataDir, secret transport.Secret, follow *node.Cataloging, joined func(bootstrap.MeshID), log *slog.Logger) (*node.Node, error) {
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

		Limits:      limitRules(cfg.Limits.Rules),
		LimitMemory: int(cfg.Limits.Memory),

		AwaitPeers: await,
		AwaitKnown: known,
		Bootstrap:  &node.Bootstrap{Names: cfg.Rights.Bootstrap, Alone: cfg.Mesh == "", Older: olderMesh(secret), Joined: joined},
		Logger:     log,
	}
	cfg.faults.apply(&nc)
	return node.New(nc)
}

// olderMesh returns the mesh that nodes are of that ran a version which knew of none: all of
// those that share a secret.
func olderMesh(secret transport.Secret) (id bootstrap.MeshID) {
	copy(id[:], secret.Lasting("mesh id", len(id)))
	return id
}

// passMesh returns by which mesh passes are told apart: those of a mesh of nodes that knew of
// none are as those nodes know them.
func passMesh(id, older bootstrap.MeshID) [16]byte {
	if id == older {
		return [16]byte{}
	}
	return id
}

// identityFromSecrets makes an identity that follows the secrets of the mesh.
func identityFromSecrets(cfg config, shared *secrets, dir *node.DataDir) (*transport.Identity, error) {
	identity, err := transport.IdentityFromSecret(shared.order()[0], transport.PeerID(dir.Self().Node), cfg.Name, cfg.Site, time.Now())
	if err != nil {
		return nil, err
	}
	return identity, shared.follow(func(order []transport.Secret) error { return identity.Use(order, time.Now()) })
}

func newMesh(cfg config, identity *transport.Identity, older bootstrap.MeshID, dir *node.DataDir, n *node.Node, answers calls, log *slog.Logger) (*transport.Mesh, error) {
	if cfg.Mesh == "" {
		return nil, nil
	}
	self := dir.Self()
	t := transport.LAN()
	t.ID, t.Boot = transport.PeerID(self.Node), self.Boot
	t.Name, t.Site = cfg.Name, cfg.Site
	t.Mesh, t.OlderMesh = transport.MeshID(n.Mesh()), transport.MeshID(older)
	t.Pending = n.Mesh().IsZero()
	t.Listen, t.Advertise, t.Seeds = cfg.Mesh, cfg.Advertise, cfg.Join
	var err error
	if t.DataDir, err = dir.Sub("mesh"); err != nil {
		return nil, err
	}
	t.Identity, t.Logger, t.Clock = identity, log, n.Now
	t.OnMessage, t.OnEvent, t.OnCall = n.OnMessage, n.OnEvent, answers.onCall
	mesh, err := transport.New(t)
	if err != nil {
		return nil, withRemedy(err, "mesh")
	}
	return mesh, nil
}

// newFront makes the front, which knows what the rooms say of it, with keys that follow
// the secrets of the mesh.
func newFront(cfg config, rooms []room.Settings, shared *secrets, n *node.Node, visitors *visitorTLS, crawlers *crawler.Checker, watch func(*httpfront.Config), log *slog.Logger) (*httpfront.Front, error) {
	keys, err := passKeys(shared.order(), shared.older())
	if err != nil {
		return nil, err
	}
	signer, err := cfg.Proof.signer(shared.order())
	if err != nil {
		return nil, err
	}
	fc := visitors.apply(cfg.Proxy.front(httpfront.Config{
		Listen:         cfg.Listen,
		Rooms:          cfg.faults.rooms(nodeRooms{n}, n.Now),
		Keys:           keys,
		TrustedProxies: cfg.TrustedProxies,
		Edge:           cfg.Edge.front,
		Hosts:          cfg.Front.hosts(rooms),
		Lists:          cfg.Front.Lists,
		LimitBound:     n.LimitBound,
		Crawlers:       crawlers,
		CountryHeader:  cfg.Front.CountryHeader,

		VerdictCountryHeader: cfg.Front.VerdictCountryHeader,

		Proof:       signer,
		ProofHeader: cfg.Proof.Header,
		Ready:       n.Ready,
		Clock:       n.Now,
		Logger:      log,
	}))
	watch(&fc)
	front, err := httpfront.New(fc)
	if err != nil {
		return nil, err
	}
	cfg.Front.warnOfHosts(rooms, log)
	byName := slices.Clone(rooms)
	for i := range byName {
		byName[i].ID = crdt.RoomID{} // it has another once the room was retired and is made again
	}
	if err := front.Configure(byName...); err != nil {
		return nil, err
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

// Status is that of the node, which is not ready any more.
func (l lameDuck) Status() node.Status {
	s := l.Node.Status()
	if err := l.ready(); err != nil && s.Ready {
		s.Ready, s.Reason = false, err.Error()
	}
	return s
}
