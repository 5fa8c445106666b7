package main

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/certs/acme"
	"github.com/ropeline/ropeline/httpfront/gate/proof"
	"github.com/ropeline/ropeline/httpfront/observe/profiles"
	"github.com/ropeline/ropeline/httpfront/server"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/settings"
)

var (
	phase    = settings.Duration(100*time.Millisecond, 24*time.Hour, 1) // of a request
	ejection = settings.Duration(time.Second, time.Hour, 1)
	upTo     = settings.Int(1, 1<<20)
)

const maxBodyMeaning = "longest body of a request, such as 10MiB; 0: no limit"

// nodeFields are all settings of a node but those of its rooms, and but those parts that only
// a file can say.
var nodeFields = settings.Table[config]{
	settings.List("origin", "the site to protect, such as http://127.0.0.1:3000; several servers of it, each perhaps with \" weight=N\"", origins, func(c *config) *[]upstream.Origin { return &c.Proxy.Origins.Servers }).Must(),
	settings.New("listen", "where visitors connect", hostPort, ":8080", func(c *config) *string { return &c.Clients.Listen }),
	settings.New("admin", "where operators connect: the dashboard, the API, status, health and metrics", hostPort, "127.0.0.1:9080", func(c *config) *string { return &c.Admin.Listen }),
	settings.New("admin-token-file", "`file` with the tokens of operators: on each line read or write, and a token (default: all programs of this machine may do everything; "+tokenVariable+" has one more for write)", anyText, "", func(c *config) *string { return &c.Admin.TokenFile }),
	settings.New("admin-tls-cert-file", "`file` with the certificate for --admin, which it needs away from loopback", anyText, "", func(c *config) *string { return &c.Admin.CertFile }),
	settings.New("admin-tls-key-file", "`file` with the key of --admin-tls-cert-file", anyText, "", func(c *config) *string { return &c.Admin.KeyFile }),
	settings.New("profiles", "show at "+profiles.Path+" of --admin where time and memory go, to those who may write, in the format of Go's pprof", truth, false, func(c *config) *bool { return &c.Admin.Profiles }),
	settings.List("trusted-proxies", "proxies in front of us whose X-Forwarded-* headers are believed", prefixes, func(c *config) *[]netip.Prefix { return &c.Clients.TrustedProxies }),
	settings.List("proxy-protocol", "balancers in front of us whose connections begin with a PROXY header (version 1 or 2)", prefixes, func(c *config) *[]netip.Prefix { return &c.Clients.Edge.ProxyProtocol }),
	settings.New("client-ip-header", "the header in which trusted proxies name the visitor: X-Forwarded-For, Forwarded, or one that holds a single address, such as X-Real-IP", headerField, "X-Forwarded-For", func(c *config) *string { return &c.Clients.Edge.ClientIPHeader }),
	settings.List("tls-cert-file", "files with certificates to speak TLS with visitors, each followed by those between it and its root", files, func(c *config) *[]string { return &c.TLS.CertFiles }),
	settings.List("tls-key-file", "files with the keys of --tls-cert-file, in the same order", files, func(c *config) *[]string { return &c.TLS.KeyFiles }),
	settings.New("redirect-listen", "where visitors without TLS are sent to --listen, and certificate authorities find their challenges, such as :80", hostPort, "", func(c *config) *string { return &c.TLS.RedirectListen }),
	settings.New("redirect-port", "the port that they are sent to, where it is not that of --listen", settings.Int(1, 65535), 0, func(c *config) *int { return &c.TLS.RedirectPort }),
	settings.List("acme-domains", "names for which certificates are obtained by ACME", domains, func(c *config) *[]string { return &c.TLS.ACME.Domains }),
	settings.New("acme-email", "where the certificate authority writes to", anyText, "", func(c *config) *string { return &c.TLS.ACME.Email }),
	settings.New("acme-directory", "the certificate authority", directory, acme.LetsEncrypt, func(c *config) *string { return &c.TLS.ACME.Directory }),
	settings.New("acme-ca-file", "`file` with the root certificate of --acme-directory, where it is none of the system's", anyText, "", func(c *config) *string { return &c.TLS.ACME.CAFile }),
	settings.New("acme-agree", "you have read the terms of the certificate authority and agree", truth, false, func(c *config) *bool { return &c.TLS.ACME.Agree }),
	settings.New("acme-storage", "`directory` for certificates, shared by all nodes to which the domains lead (default: in --data-dir)", anyText, "", func(c *config) *string { return &c.TLS.ACME.Storage }),
	settings.New("unknown-hosts", "whether requests for hosts without a room pass to the site without a queue, or are refused", settings.Word(server.HostsPass, server.HostsRefuse), server.HostsPass, func(c *config) *string { return &c.Front.UnknownHosts }),
	settings.New("country-header", "the header in which trusted proxies tell the visitor's country, two letters, for rules to ask", headerField, "", func(c *config) *string { return &c.Front.CountryHeader }),
	settings.New("verdict-country-header", "the same for proxies that ask for verdicts, all of which have to replace what visitors send in it", headerField, "", func(c *config) *string { return &c.Front.VerdictCountryHeader }),
	settings.New("verdict-listen", "where proxies among --trusted-proxies ask whether a request may go on; none means nobody asks", hostPort, "", func(c *config) *string { return &c.Clients.VerdictListen }),
	settings.New("proof", "give requests that are let in a signed proof for the site", truth, false, func(c *config) *bool { return &c.Proof.On }),
	settings.New("proof-header", "the header field of proofs", proofField, proof.Header, func(c *config) *string { return &c.Proof.Header }),
	settings.New("proof-issuer", "who proofs say they are from", anyText, "ropeline", func(c *config) *string { return &c.Proof.Issuer }),
	settings.New("name", "the name of this node, stable over restarts and unique in the mesh", nodeName, "", func(c *config) *string { return &c.Name }),
	settings.New("site", "the site (data centre) that this node stands in", nodeName, "default", func(c *config) *string { return &c.Site }),
	settings.New("mesh", "the UDP address for other nodes; none means a single node", hostPort, "", func(c *config) *string { return &c.Mesh.Listen }),
	settings.New("advertise", "the address under which other nodes reach --mesh, where it differs", hostPort, "", func(c *config) *string { return &c.Mesh.Advertise }),
	settings.List("join", "mesh addresses of other nodes", addresses, func(c *config) *[]string { return &c.Mesh.Join }),
	settings.New("secret-file", "`file` with the secret of the mesh (make one with \"ropeline keygen\")", anyText, "", func(c *config) *string { return &c.Mesh.SecretFile }),
	settings.New("cert-file", "`file` with this node's own certificate, instead of one derived from the secret", anyText, "", func(c *config) *string { return &c.Mesh.CertFile }),
	settings.New("key-file", "`file` with the key of --cert-file", anyText, "", func(c *config) *string { return &c.Mesh.KeyFile }),
	settings.New("ca-file", "`file` with the authority that signs the nodes' certificates", anyText, "", func(c *config) *string { return &c.Mesh.CAFile }),
	settings.New("data-dir", "`directory` for this node's identity and counts (default: under the user's state directory)", anyText, "", func(c *config) *string { return &c.DataDir }),
	settings.List("bootstrap-nodes", "names of the nodes that bootstrap a new mesh together, the same list at all of them: capacity is minted once all have it on disk, by the first; ignored in a mesh that is there", nodeNames, func(c *config) *[]string { return &c.Rights.Bootstrap }),
	settings.New("on-stop", "whether this node, when it is stopped, keeps its rights for its next start or leaves them to another node", settings.Word(server.StopKeeps, server.StopLeaves), server.StopKeeps, func(c *config) *string { return &c.Rights.OnStop }),
	settings.List("declare-dead", "ids of nodes that are gone for good with their data directories; the others get their rights", nodeIDs, func(c *config) *[]crdt.NodeID { return &c.Rights.DeclareDead }),
	settings.List("retire-room", "ids of rooms that are deleted; nobody is let into them any more", roomIDs, func(c *config) *[]crdt.RoomID { return &c.Rights.RetireRooms }),
	settings.New("limit-memory", "memory that counting for rate limits may take, from when there is one: 1MiB to 64GiB", sizeBetween(1<<20, 64<<30, "a number of bytes from 1MiB to 64GiB, such as 256MiB"), node.DefaultLimitMemory, func(c *config) *int64 { return &c.Limits.Memory }),
	settings.New("log-format", "how the log is written", settings.Word("text", "json"), "text", func(c *config) *string { return &c.LogFormat }),
	settings.New("log-level", "the lowest level that is logged", settings.Word("debug", "info", "warn", "error"), "info", func(c *config) *string { return &c.LogLevel }),
	settings.New("access-log", "`file` that gets a line of each request, in combined format; - is the standard output (default: none)", anyText, "", func(c *config) *string { return &c.Signals.AccessLog }),
	settings.New("otlp-endpoint", "the collector that gets traces, by OpenTelemetry's protocol over HTTP, such as http://127.0.0.1:4318 (default: none, or what OTEL_EXPORTER_OTLP_ENDPOINT says)", collector, "", func(c *config) *string { return &c.Signals.OTLP }),
	settings.New("otlp-sample", "the part of requests that are traced, from 0 to 1, where no trusted proxy has decided", settings.Float(0, 1), 0.01, func(c *config) *float64 { return &c.Signals.OTLPSample }),
	settings.New("origin-ca-file", "`file` with the root certificates of https origins, instead of the system's", anyText, "", func(c *config) *string { return &c.Proxy.OriginTLS.CAFile }),
	settings.New("origin-server-name", "the name that the certificates of https origins are for (default: the one in the address)", hostKind, "", func(c *config) *string { return &c.Proxy.OriginTLS.ServerName }),
	settings.New("max-body", maxBodyMeaning, size, 0, func(c *config) *int64 { return &c.Proxy.Limits.Body }),
	settings.List("methods", "the only methods that are let through (default: all but CONNECT and TRACE)", methods, func(c *config) *[]string { return &c.Proxy.Methods }),
	settings.New("retries", "how many more origins a request is sent to if the one before cannot have acted on it", settings.Int(0, upstream.OriginsMax), 1, func(c *config) *int { return &c.Proxy.Retries }),
	settings.New("eject-after", "how many requests in a row an origin fails to answer before it is left alone", settings.Int(1, 1000), 3, func(c *config) *int { return &c.Proxy.Passive.Failures }),
	settings.New("eject-time", "for how long at first; each time that follows soon is twice as long", ejection, 10*time.Second, func(c *config) *time.Duration { return &c.Proxy.Passive.Ejection }),
	settings.New("eject-time-max", "for how long at most", ejection, 2*time.Minute, func(c *config) *time.Duration { return &c.Proxy.Passive.EjectionMax }),
	settings.New("slow-start", "time over which an origin that was out gets its whole share again", settings.Duration(time.Millisecond, time.Hour, 1), 10*time.Second, func(c *config) *time.Duration { return &c.Proxy.SlowStart }),
	settings.List("allow-origin-addresses", "addresses of origins that are allowed although they are link-local or known for handing out credentials", prefixes, func(c *config) *[]netip.Prefix { return &c.Proxy.AllowAddresses }),
	settings.New("head-timeout", "how long a visitor may take for the head of a request", phase, 10*time.Second, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Head }),
	settings.New("body-timeout", "longest pause inside a request body", phase, 30*time.Second, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Body }),
	settings.New("write-timeout", "longest that a visitor may take to accept the next piece of an answer", phase, 30*time.Second, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Write }),
	settings.New("idle-timeout", "how long a visitor's connection without a request is kept", phase, 30*time.Second, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Idle }),
	settings.New("origin-wait-timeout", "how long a request waits for a free place at an origin", phase, 10*time.Second, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Upstream.Wait }),
	settings.New("connect-timeout", "for connecting to an origin", phase, 5*time.Second, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Upstream.Connect }),
	settings.New("tls-handshake-timeout", "for TLS with an origin", phase, 5*time.Second, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Upstream.Handshake }),
	settings.New("send-timeout", "longest that an origin may take to accept the next piece of a request", phase, 30*time.Second, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Upstream.Send }),
	settings.New("response-timeout", "how long an origin may take from the end of a request to the head of its response", phase, time.Minute, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Origin }),
	settings.New("stream-timeout", "longest pause inside a response body", phase, 5*time.Minute, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Stream }),
	settings.New("tunnel-timeout", "longest silence, both ways, of an upgraded connection", phase, 2*time.Minute, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Tunnel }),
	settings.New("origin-idle-timeout", "how long an unused connection to an origin is kept", phase, 4*time.Second, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Upstream.Idle }),
	settings.New("origin-connection-life", "for how long a connection to an origin is used again", phase, time.Minute, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Upstream.Life }),
	settings.New("drain-delay", "how long a node that is being stopped still takes visitors, while /readyz says 503; 0s: not at all", settings.Duration(0, time.Hour, 1), 0, func(c *config) *time.Duration { return &c.Proxy.DrainDelay }),
	settings.New("drain-timeout", "how long requests under way may go on when the node is stopped", phase, 25*time.Second, func(c *config) *time.Duration { return &c.Proxy.Timeouts.Drain }),
	settings.New("max-connections", "connections of visitors at one time", upTo, 32768, func(c *config) *int { return &c.Proxy.Limits.Conns }),
	settings.New("max-connections-per-address", "of them, those of one address (IPv6: of one /64); 0: 6000, or a quarter where that is less", settings.Int(0, 1<<20), 0, func(c *config) *int { return &c.Proxy.Limits.ConnsPerAddress }),
	settings.New("max-handshakes", "connections in their TLS handshake, or before their PROXY header, at one time", upTo, 4096, func(c *config) *int { return &c.Proxy.Limits.Handshakes }),
	settings.New("max-requests-per-connection", "requests that one connection may bring", upTo, 1000, func(c *config) *int { return &c.Proxy.Limits.Requests }),
	settings.New("min-body-rate", "bytes per second of a request body that have to come on average; 0: no minimum", settings.Int(0, 1<<20), 240, func(c *config) *int { return &c.Proxy.Limits.BodyRate }),
	settings.New("max-origin-requests", "requests with one origin at one time", upTo, 1024, func(c *config) *int { return &c.Proxy.Limits.Upstream.Conns }),
	settings.New("max-requests-per-origin-connection", "requests that one connection to an origin serves", upTo, 10_000, func(c *config) *int { return &c.Proxy.Limits.Upstream.Requests }),
	settings.New("max-upgrades", "upgraded connections (WebSocket) at one time", upTo, 16384, func(c *config) *int { return &c.Proxy.Limits.Upstream.Tunnels }),
}

// replaced is a flag of an earlier version.
func replaced(name string) settings.Kind[string] {
	return settings.Parsed(settings.Spec{Type: typeGone}, func(string) (string, error) {
		return "", fmt.Errorf("--%s is gone: give all nodes the same --bootstrap-nodes, the names of the first nodes of the mesh, such as --bootstrap-nodes a1,a2,b1 (the first of them mints; a node without --mesh needs nothing, and in a mesh that is there the list is ignored)", name)
	}, func(s string) string { return s })
}

// nodeFlags binds everything but the room.
func nodeFlags(fs *pflag.FlagSet, c *config) {
	bind(fs, c, nodeFields)
	for _, old := range []string{"found", "founder"} {
		fs.VarPF(replaced(old).At(new(string)), old, "", "has been replaced by --bootstrap-nodes").NoOptDefVal = "true"
		_ = fs.MarkHidden(old) // fails for flags that are not there
	}
	c.faults.bind(fs)
}
