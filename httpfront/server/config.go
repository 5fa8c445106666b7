package server

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/httpfront/gate/proof"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// Config says what a node is and what it serves. DataDir and Rooms are required, and one of
// Proxy.Origins and Clients.VerdictListen. The zero value of everything else is a single node that
// listens on loopback, at ports that are free.
type Config struct {
	Name    string // unique in the mesh. Default "node"
	Site    string // the data centre. Default "default"
	Version string // as status shows it. Default "devel"
	DataDir string // identity, rights and counts; of one server at a time

	// Rooms are served, at least one. Whose ID is zero gets that of its name, which is the
	// same on every node. What else is zero means its default.
	Rooms []room.Settings

	Logger *slog.Logger // default slog.Default()
	// Descriptors is how many the process may have, which bounds connections where they are fewer than Bounds asks for.
	// 0: nobody knows. It is for a process of one server.
	Descriptors int
	// LogDropped is how many lines of Logger were dropped so far; nil: none are.
	LogDropped func() uint64

	Clients Clients // where visitors and proxies come in
	TLS     TLS     // with visitors. Zero: none
	Proxy   Proxy   // the way to the site
	Front   Front   // what rules go by
	Proof   Proof   // that visitors were let in. Zero: none
	Admin   Admin   // the listener for operators
	Mesh    Mesh    // other nodes. Zero: there are none
	Rights  Rights  // whose capacity is whose
	Limits  Limits  // rate limits. Zero: none in the file of the node
	Signals Signals // the access log and the traces. Zero: neither

	Seams Seams // for tests
}

// Clients says where visitors connect, and the proxies that they come through or that ask for them.
type Clients struct {
	Listen         string         // TCP address for visitors. Default "127.0.0.1:0"; unused without origins
	VerdictListen  string         // TCP address for proxies that ask for verdicts; "": nobody asks
	TrustedProxies []netip.Prefix // whose forwarding fields are believed, and who may ask for verdicts
	Edge           httpfront.Edge
}

// TLS says how TLS is spoken with visitors. The zero value is not at all.
type TLS struct {
	CertFiles, KeyFiles []string // one key for each certificate
	RedirectListen      string   // TCP address for visitors without TLS; "": none
	RedirectPort        int      // where they are sent. 0: where visitors connect
	ACME                ACME
}

// ACME says how certificates are obtained; nothing is without Domains.
type ACME struct {
	Domains   []string
	Email     string
	Directory string // of the authority. Default acme.LetsEncrypt
	CAFile    string // of the authorities that Directory's own certificate is of; "": the system's
	Agree     bool   // to the authority's terms
	Storage   string // "": in the data directory
}

// Proxy says how requests get to the site and back, queues aside.
type Proxy struct {
	// Without servers among Origins, no visitors are served. Routes are one for each room, in their
	// order, or none.
	httpfront.Upstreams
	OriginTLS OriginTLS

	Methods  []string           // none: all but CONNECT and TRACE
	Limits   httpfront.Limits   // zero fields: their defaults
	Timeouts httpfront.Timeouts // the same

	// DrainDelay is for how long a server that is told to stop still takes visitors, while
	// /readyz says 503.
	DrainDelay time.Duration
}

// OriginTLS is how origins with https prove who they are.
type OriginTLS struct {
	CAFile     string // of the authorities that count; "": the system's
	ServerName string // that their certificates are for; "": that of each address
}

// Front is what rules of all rooms go by.
type Front struct {
	Lists                expr.Lists
	CountryHeader        string // in which trusted proxies tell the country; "": nobody does
	VerdictCountryHeader string // the same for those that ask for verdicts
	UnknownHosts         string // HostsPass, the default, or HostsRefuse
}

// What becomes of requests for hosts that no room is for.
const (
	HostsPass   = "pass"
	HostsRefuse = "refuse"
)

// Proof says how the site is told that a visitor was let in.
type Proof struct {
	On     bool
	Header string // default proof.Header
	Issuer string // default "ropeline"
}

// Admin says where operators connect, and who may.
type Admin struct {
	Listen    string // TCP address. Default "127.0.0.1:0"
	TokenFile string
	Token     string // one more that may write; "": none
	CertFile  string
	KeyFile   string
	Profiles  bool // show where time and memory of the process go
}

// Mesh says where other nodes are, and how they know each other.
type Mesh struct {
	Listen     string   // UDP address; "": a single node
	Advertise  string   // under which others reach it, where it differs
	Join       []string // addresses of other nodes
	SecretFile string   // "": a single node makes its own
	CertFile   string   // the node's own certificate; "": derived from the secret
	KeyFile    string
	CAFile     string
}

// Rights says which nodes make the capacity of a mesh together, and what becomes of the
// rights of a node that stops or is gone.
type Rights struct {
	Bootstrap   []string // names of nodes
	OnStop      string   // StopKeeps, the default, or StopLeaves
	DeclareDead []crdt.NodeID
	RetireRooms []crdt.RoomID
}

// What a node does with its rights when it is stopped.
const (
	StopKeeps  = "keep"  // they wait for its next start
	StopLeaves = "leave" // another node has them from then on
)

// Limits are the rate limits that the node brings along.
type Limits struct {
	Memory int64 // bytes. Default node.DefaultLimitMemory
	Rules  []limit.Rule
}

// Signals says which requests the access log and the traces have.
type Signals struct {
	AccessLog   string  // a file, or accesslog.Stdout; "": there is none
	OTLP        string  // the address of a collector of traces
	OTLPFromEnv bool    // the collector is the one that the environment names, if OTLP is empty
	OTLPSample  float64 // the part of requests that are traced, from 0 to 1
}

// Seams are where tests stand between the parts of a node. Nil is nothing.
type Seams struct {
	Clock func() time.Time // the wall clock of the node

	// Rooms returns what the front asks in place of the node's rooms; now is the node's clock.
	Rooms func(of httpfront.Rooms, now func() time.Time) httpfront.Rooms
	// Links returns what the node sends through in place of the mesh, where there is one.
	Links func(of node.Mesh) node.Mesh
}

// anyPort is a port on loopback that is free.
const anyPort = "127.0.0.1:0"

// withDefaults fills in what is zero and not left to the parts that are given it.
func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "node")
	c.Site = cmp.Or(c.Site, "default")
	c.Version = cmp.Or(c.Version, "devel")
	c.Clients.Listen = cmp.Or(c.Clients.Listen, anyPort)
	c.Admin.Listen = cmp.Or(c.Admin.Listen, anyPort)
	c.Proof.Header = cmp.Or(c.Proof.Header, proof.Header)
	c.Proof.Issuer = cmp.Or(c.Proof.Issuer, "ropeline")
	c.Front.UnknownHosts = cmp.Or(c.Front.UnknownHosts, HostsPass)
	c.Rights.OnStop = cmp.Or(c.Rights.OnStop, StopKeeps)
	c.Limits.Memory = cmp.Or(c.Limits.Memory, node.DefaultLimitMemory)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}
