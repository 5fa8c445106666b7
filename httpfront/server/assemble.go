package server

import (
	"context"
	"maps"
	"time"

	"github.com/ropeline/ropeline/httpfront/gate/crawler"
	"github.com/ropeline/ropeline/httpfront/observe/profiles"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/adminserver"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/httpfront/operator/manage"
	"github.com/ropeline/ropeline/httpfront/operator/overview"
	"github.com/ropeline/ropeline/httpfront/operator/status"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

// assemble puts the parts together, given what open has opened. Nothing runs yet.
func (s *Server) assemble(rooms []room.Settings) (err error) {
	cfg := &s.cfg
	follower := &follower{lists: cfg.Front.Lists, log: s.log, hosts: cfg.Front.hosts}
	if s.node, err = s.newNode(rooms, follower.cataloging(len(rooms))); err != nil {
		return err
	}
	answers := calls{methodSecrets: s.secrets.announce}
	if s.mesh, err = s.newMesh(answers); err != nil {
		return err
	}
	crawlers, err := crawler.New(crawler.Config{})
	if err != nil {
		return err
	}
	if err = s.observe(); err != nil {
		return err
	}
	if s.front, err = s.newFront(rooms, crawlers); err != nil {
		return err
	}
	s.front.SetMesh(s.node.Mesh())
	follower.front, follower.node = s.front, s.node
	if err = follower.begin(cfg.Limits.Rules, len(rooms)); err != nil {
		return err
	}
	if s.verdicts, err = s.newVerdicts(); err != nil {
		return err
	}
	others := askerOf(s.mesh)
	m := &managed{lameDuck: s.lame(), front: s.front, secrets: s.secrets, mesh: others, stop: s.life.drain}
	s.seen = s.newOverview()
	m.seen = s.seen
	maps.Copy(answers, m.answers())
	if err = s.addAdmin(m, follower); err != nil {
		return err
	}
	s.beside = append(s.beside, s.visitors.runs(s.front, s.log)...)
	s.beside = append(s.beside,
		endless(crawlers.Run),
		looksAt(s.secrets.path, func(ctx context.Context) error { return s.secrets.run(ctx, others) }, s.log),
		func(ctx context.Context) error { return obey(ctx, s.node, cfg.Rights, s.log) },
		s.awaitReady,
		s.seen.Run)
	if s.identity.watch != nil {
		s.beside = append(s.beside, looksAt(cfg.Mesh.CertFile, func(ctx context.Context) error { return s.identity.run(ctx, &cfg.Mesh, s.log) }, s.log))
	}
	return nil
}

// addAdmin makes the listener for operators.
func (s *Server) addAdmin(m *managed, follower *follower) error {
	plain := status.New(status.Config{
		Status: m.Status, Alive: s.node.Alive, Ready: s.lame().ready, NoTickets: s.node.NoTickets, Origins: s.front.Origins, Certificates: s.visitors.status, Secrets: func() any { return m.Keys() },
		Page: s.front.Page, Logger: s.log,
	})
	previews := &status.Previews{Logger: s.log}
	routes, schemas := manage.Routes(m, s.node.Now)
	streams, more := manage.Streams()
	maps.Copy(schemas, more)
	api, err := admin.New(admin.Config{Mesh: meshAPI{s.node, follower, previews}, Now: s.node.Now, Version: s.cfg.Version, Routes: routes, Others: streams, Schemas: schemas})
	if err != nil {
		return err
	}
	parts := []adminserver.Part{
		adminserver.API{API: api},
		adminserver.NewPaths(s.measures, map[string]adminserver.Scope{"/metrics": adminserver.Read}),
		adminserver.NewPaths(previews, map[string]adminserver.Scope{status.PreviewsPath: adminserver.Nothing}),
	}
	if s.cfg.Admin.Profiles {
		parts = append(parts, adminserver.NewPaths(profiles.New(), map[string]adminserver.Scope{profiles.Path: adminserver.Write}))
	}
	s.admin, err = newOperators(&s.cfg.Admin, s.ports.admin, s.bounds.Admin, m.seen, plain, parts, s.life.stopping, s.log)
	return err
}

// newOverview returns what the dashboard looks at.
func (s *Server) newOverview() *overview.Overview {
	oc := overview.Config{Local: s.lame(), Method: methodReport, Origins: s.origins, Logger: s.log}
	if s.mesh != nil {
		oc.Peers, oc.Address = s.mesh, s.mesh.Advertised().String()
	}
	return overview.New(oc)
}

// origins returns what the dashboard shows of the origins of this node.
func (s *Server) origins() (all []dashboard.Origin) {
	for _, g := range s.front.Origins() {
		down := !g.IsHealthy()
		for i := range g.Origins {
			o := &g.Origins[i]
			all = append(all, dashboard.Origin{
				Room: g.Name, URL: o.URL, State: o.State, SiteDown: down, Active: o.Active,
				Requests: o.RecentRequests, ErrorRate: o.ErrorRate, P50: o.P50, P99: o.P99, LastFailure: (*dashboard.OriginFailure)(o.LastFailure),
			})
		}
	}
	return all
}

// joinPatience is how long a node that shall join others, or has met some before, waits
// for the first of them. A whole mesh that starts at once is ready when it has passed.
const joinPatience = 5 * time.Second

func (s *Server) newNode(rooms []room.Settings, follow *node.Cataloging) (*node.Node, error) {
	cfg := &s.cfg
	secret := s.secrets.order()[0]
	var await, known time.Duration
	if len(cfg.Mesh.Join) > 0 {
		await = joinPatience
	}
	if cfg.Mesh.Listen != "" {
		known = joinPatience
	}
	return node.New(node.Config{
		Data:     s.dir,
		Name:     cfg.Name,
		Site:     cfg.Site,
		Version:  cfg.Version,
		Rooms:    rooms,
		OwnerKey: secret.Lasting("visitor owner", 32),

		Catalog: follow,

		Limits:      limitRules(cfg.Limits.Rules),
		LimitMemory: int(cfg.Limits.Memory),

		AwaitPeers: await,
		AwaitKnown: known,
		Bootstrap:  &node.Bootstrap{Names: cfg.Rights.Bootstrap, Alone: cfg.Mesh.Listen == "", Joined: s.joined},
		Clock:      cfg.Seams.Clock,
		Logger:     s.log,
	})
}

// joined has all parts go by the mesh that this node is of from now on.
func (s *Server) joined(id bootstrap.MeshID) {
	s.mesh.SetMesh(transport.MeshID(id))
	s.front.SetMesh(id)
}

// identityFromSecrets makes an identity that follows the secrets of the mesh.
func (s *Server) identityFromSecrets() (err error) {
	cfg := &s.cfg
	made, err := transport.IdentityFromSecret(s.secrets.order()[0], s.dir.Key(), cfg.Name, cfg.Site, time.Now())
	if err != nil {
		return err
	}
	s.identity.Identity = made
	return s.secrets.follow(func(order []transport.Secret) error { return made.Use(order, time.Now()) })
}

func (s *Server) newMesh(answers calls) (*transport.Mesh, error) {
	cfg := &s.cfg.Mesh
	if cfg.Listen == "" {
		return nil, nil
	}
	self := s.dir.Self()
	t := transport.LAN()
	t.ID, t.Boot = transport.PeerID(self.Node), self.Boot
	t.Name, t.Site = s.cfg.Name, s.cfg.Site
	t.Mesh, t.Pending = transport.MeshID(s.node.Mesh()), s.node.Mesh().IsZero()
	t.Known = !t.Pending && self.Boot > 1
	t.Listen, t.Advertise, t.Seeds = cfg.Listen, cfg.Advertise, cfg.Join
	var err error
	if t.DataDir, err = s.dir.Sub("mesh"); err != nil {
		return nil, err
	}
	t.Identity, t.Logger, t.Clock = s.identity.Identity, s.log, s.node.Now
	t.OnMessage, t.OnEvent, t.OnCall = s.node.OnMessage, s.node.OnEvent, answers.onCall
	mesh, err := transport.New(t)
	if err != nil {
		return nil, withRemedy(err, "mesh")
	}
	return mesh, nil
}
