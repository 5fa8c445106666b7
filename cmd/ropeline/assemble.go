package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/accesslog"
	"github.com/ropeline/ropeline/httpfront/admin"
	"github.com/ropeline/ropeline/httpfront/adminserver"
	"github.com/ropeline/ropeline/httpfront/crawler"
	"github.com/ropeline/ropeline/httpfront/manage"
	"github.com/ropeline/ropeline/httpfront/overview"
	"github.com/ropeline/ropeline/httpfront/profiles"
	"github.com/ropeline/ropeline/httpfront/tracing"
	"github.com/ropeline/ropeline/httpfront/verdict"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
	"github.com/ropeline/ropeline/transport"
)

// assembly is all the parts of a process, and what they are made of.
type assembly struct {
	rooms    []room.Settings
	dir      *node.DataDir
	secrets  *secrets
	identity *transport.Identity // nil: there is no mesh
	log      *slog.Logger

	older    bootstrap.MeshID // of nodes whose version knows of none
	node     *node.Node
	lame     lameDuck
	measures *measures
	access   *accesslog.Log  // nil: there is none
	tracer   *tracing.Tracer // nil: nothing is traced
	mesh     *transport.Mesh // nil: a single node
	visitors visitorTLS
	front    *httpfront.Front
	verdicts *verdict.Server // nil: nobody asks
	admin    *operators
	seen     *overview.Overview
	beside   []func(context.Context) error // what runs while visitors are served
	after    []func(context.Context) error // what runs until the last of them was

	stop   context.CancelFunc // as a signal does
	leaves *atomic.Bool       // when it stops, whatever the configuration says
}

// joined has all parts go by the mesh that this node is of from now on.
func (a *assembly) joined(id bootstrap.MeshID) {
	a.mesh.SetMesh(transport.MeshID(id))
	a.front.SetMesh(passMesh(id, a.older))
}

// drain has the process stop in order; with leave, its rights go to another node.
func (a *assembly) drain(leave bool) {
	if leave {
		a.leaves.Store(true)
	}
	a.stop()
}

// assemble puts the parts together, given what they are made of. Nothing runs yet. The
// visitors' TLS is to be closed, unless there is an error.
func assemble(ctx context.Context, cfg config, a assembly) (_ *assembly, err error) {
	defer func() {
		if err != nil {
			a.visitors.Close()
		}
	}()
	follower := &follower{lists: cfg.Front.Lists, log: a.log, hosts: cfg.Front.hosts}
	secret := a.secrets.order()[0]
	a.older = olderMesh(secret)
	joined := func(id bootstrap.MeshID) { a.joined(id) }
	if a.node, err = newNode(cfg, a.rooms, a.dir, secret, follower.cataloging(len(a.rooms)), joined, a.log); err != nil {
		return nil, err
	}
	answers := calls{methodSecrets: a.secrets.announce}
	if a.mesh, err = newMesh(cfg, a.identity, a.older, a.dir, a.node, answers, a.log); err != nil {
		return nil, err
	}
	if a.visitors, err = newVisitorTLS(ctx, cfg, a.dir, a.log); err != nil {
		return nil, err
	}
	crawlers, err := crawler.New(crawler.Config{})
	if err != nil {
		return nil, err
	}
	if err = a.observe(ctx, cfg); err != nil {
		return nil, err
	}
	if a.front, err = newFront(cfg, a.rooms, a.secrets, a.node, &a.visitors, crawlers, a.watch, a.log); err != nil {
		return nil, err
	}
	a.front.SetMesh(passMesh(a.node.Mesh(), a.older))
	follower.front, follower.node = a.front, a.node
	if err = follower.begin(cfg, len(a.rooms)); err != nil {
		return nil, err
	}
	a.lame = lameDuck{ctx, a.node}
	if a.verdicts, err = newVerdicts(cfg, a.front, a.lame.ready, a.log); err != nil {
		return nil, err
	}
	others := askerOf(a.mesh)
	m := &managed{lameDuck: a.lame, front: a.front, secrets: a.secrets, mesh: others, stop: a.drain}
	a.seen = newOverview(a.lame, a.mesh, m.history, a.log)
	m.seen = a.seen
	maps.Copy(answers, m.answers())
	if err := a.addAdmin(cfg, m, follower); err != nil {
		return nil, err
	}
	a.beside = append(a.visitors.runs(a.front),
		func(ctx context.Context) error { crawlers.Run(ctx); return nil },
		func(ctx context.Context) error { return a.secrets.run(ctx, others) },
		func(ctx context.Context) error { return notifyReady(ctx, a.lame.ready, a.log) },
		func(ctx context.Context) error { return giveBack(ctx, a.log) },
		a.seen.Run)
	a.rooms = nil // the parts have taken them over, and there may be thousands
	return &a, nil
}

// addAdmin makes the listener for operators.
func (a *assembly) addAdmin(cfg config, m *managed, follower *follower) error {
	plain, err := httpfront.NewAdmin(httpfront.AdminConfig{
		Status: m.Status, Alive: a.node.Alive, Origins: a.front.Origins, Certificates: a.visitors.status, Secrets: func() any { return m.Keys() },
		Page: a.front.Page, Logger: a.log,
	})
	if err != nil {
		return err
	}
	previews := &httpfront.Previews{Logger: a.log}
	routes, schemas := manage.Routes(m, a.node.Now)
	streams, more := manage.Streams()
	maps.Copy(schemas, more)
	api, err := admin.New(admin.Config{Mesh: meshAPI{a.node, follower, previews}, Now: a.node.Now, Version: versionText(), Routes: routes, Others: streams, Schemas: schemas})
	if err != nil {
		return err
	}
	parts := []adminserver.Part{
		adminserver.API{API: api},
		adminserver.NewPaths(a.measures, map[string]adminserver.Scope{"/metrics": adminserver.Read}),
		adminserver.Below{Path: httpfront.PreviewsPath, Scope: adminserver.Nothing, Handler: previews},
	}
	if cfg.Admin.Profiles {
		parts = append(parts, adminserver.Below{Path: profiles.Path, Scope: adminserver.Write, Handler: profiles.New()})
	}
	a.admin, err = newOperators(&cfg.Admin, m.seen, plain.Handler(), parts, a.log)
	return err
}

// pastOf returns how a room was, over the whole mesh.
type pastOf = func(ctx context.Context, id crdt.RoomID, from, to time.Time) (history.Series, error)

// newOverview returns what the dashboard looks at.
func newOverview(lame lameDuck, mesh *transport.Mesh, past pastOf, log *slog.Logger) *overview.Overview {
	oc := overview.Config{Local: lame, Method: methodReport, History: past, Logger: log}
	if mesh != nil {
		oc.Peers, oc.Address = mesh, mesh.Advertised().String()
	}
	return overview.New(oc)
}

// run runs the parts until signals ends, and Config.DrainDelay after that, or until one
// of them fails. The front goes first, with what runs beside it, so that its visitors' last
// notes still reach the mesh; then the operator's listener, which tells of it meanwhile; the
// mesh last. It reports whether the node has left for good.
func (a *assembly) run(signals context.Context, cfg config) (left bool, err error) {
	n, mesh := a.node, a.mesh
	ctx, fail := context.WithCancelCause(context.WithoutCancel(signals))
	defer fail(nil)
	errs := make([]error, 6+len(a.beside)+len(a.after))
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
		start(&outer, 2, ctx, remedied("listen", a.front.Run))
	}
	if a.verdicts != nil {
		start(&outer, 5, ctx, remedied("verdict-listen", a.verdicts.Run))
	}
	start(&watch, 3, watchCtx, remedied("admin", a.admin.run))
	start(&outer, 4, ctx, func(ctx context.Context) error { return obey(ctx, n, cfg.Rights, a.log) })
	for i, run := range a.beside {
		start(&outer, 6+i, ctx, run)
	}
	for i, run := range a.after {
		start(&watch, 6+len(a.beside)+i, watchCtx, run)
	}
	awaitStop(signals, ctx, cfg.Proxy.DrainDelay, a.log)
	fail(nil)
	outer.Wait()
	stopWatch(nil)
	watch.Wait()
	left = (cfg.Rights.OnStop == stopLeaves || a.leaves.Load()) && n.Ready() == nil && leave(innerCtx, n, a.log)
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
		log.Error("a part of the node has failed, so that it has to stop")
	}
	signal.Reset(stopSignals()...)
	if delay > 0 {
		log.Info("stopping: /readyz says so, and visitors are served until drain-delay has passed; a second signal stops at once", "drain_delay", settings.Span(delay))
		select {
		case <-time.After(delay):
		case <-running.Done():
		}
	}
	log.Info("stopping: requests under way may end; a second signal stops at once")
}
