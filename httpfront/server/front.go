package server

import (
	"slices"
	"strings"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/gate/crawler"
	"github.com/ropeline/ropeline/httpfront/gate/proof"
	"github.com/ropeline/ropeline/httpfront/integrations/verdict"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

// newFront makes the front, which knows what the rooms say of it, with keys that follow
// the secrets of the mesh.
func (s *Server) newFront(rooms []room.Settings, crawlers *crawler.Checker) (*httpfront.Front, error) {
	keys, err := passKeys(s.secrets.order(), s.secrets.older())
	if err != nil {
		return nil, err
	}
	signer, err := s.cfg.Proof.signer(s.secrets.order())
	if err != nil {
		return nil, err
	}
	fc, err := s.cfg.front()
	if err != nil {
		return nil, err
	}
	fc.Listener = s.ports.visitors
	fc.Rooms, fc.Hosts, fc.Crawlers = s.asked(), s.cfg.Front.hosts(rooms), crawlers
	fc.Keys, fc.Proof, fc.LimitBound = keys, signer, s.node.LimitBound
	fc.Ready, fc.Clock = s.node.Ready, s.node.Now
	s.visitors.apply(&fc)
	s.watch(&fc)
	front, err := httpfront.New(fc)
	if err != nil {
		return nil, err
	}
	s.cfg.Front.warnOfHosts(rooms, s.log)
	byName := slices.Clone(rooms)
	for i := range byName {
		byName[i].ID = crdt.RoomID{} // it has another once the room was retired and is made again
	}
	if err := front.Configure(byName...); err != nil {
		return nil, err
	}
	return front, s.secrets.follow(func(order []transport.Secret) error {
		keys, err := passKeys(order, s.secrets.older())
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
func (s *Server) newVerdicts() (*verdict.Server, error) {
	if s.ports.verdicts == nil {
		return nil, nil
	}
	return verdict.New(verdict.Config{
		Listener:       s.ports.verdicts,
		Judge:          s.front,
		TrustedProxies: s.cfg.Clients.TrustedProxies,
		Ready:          s.lame().ready,
		Stopping:       s.life.stopping,
		Conns:          s.bounds.Verdicts,
		Logger:         s.log,
	})
}

// asked returns the rooms that the front asks.
func (s *Server) asked() httpfront.Rooms {
	rooms := httpfront.Rooms(nodeRooms{s.node})
	if between := s.cfg.Seams.Rooms; between != nil {
		rooms = between(rooms, s.node.Now)
	}
	return rooms
}

// nodeRooms gives the front a node's rooms.
type nodeRooms struct{ n *node.Node }

func (r nodeRooms) Route(host, path string) httpfront.Room {
	if found := r.n.Route(host, path); found != nil {
		return found
	}
	return nil
}

// front returns what of c is the front's.
func (c *Config) front() (to httpfront.Config, err error) {
	p, f := &c.Proxy, &c.Front
	to = httpfront.Config{
		Connections: httpfront.Connections{Edge: c.Clients.Edge},
		Upstreams:   p.Upstreams,
		RuleFacts:   httpfront.RuleFacts{Lists: f.Lists, CountryHeader: f.CountryHeader, VerdictCountryHeader: f.VerdictCountryHeader},
		Methods:     p.Methods, Limits: p.Limits, Timeouts: p.Timeouts,
		TrustedProxies: c.Clients.TrustedProxies,
		ProofHeader:    c.Proof.Header, Logger: c.Logger,
	}
	to.OriginTLS, err = c.originTLS()
	return to, err
}

// signer returns what signs proofs; nil if there shall be none. All nodes that share the
// secrets sign with the same key, which comes from the first.
func (c *Proof) signer(order []transport.Secret) (*proof.Signer, error) {
	if !c.On {
		return nil, nil
	}
	return proof.New(proof.Config{Issuer: c.Issuer, Keys: proofKeys(order)})
}

// originsText names origins, for the log.
func originsText(servers []upstream.Origin) string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Text())
	}
	return strings.Join(all, ", ")
}
