package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/transport"
)

// doctorWait is for how long the doctor waits for others.
const doctorWait = 3 * time.Second

// checkPorts tries to listen where the node would. It reports whether a node runs here.
func (d *doctor) checkPorts(ctx context.Context) (runs bool) {
	runs = d.nodeRuns(ctx)
	if runs {
		d.ok("admin "+d.cfg.Admin.Listen, "a node runs here and answers")
	} else {
		d.checkTCP(ctx, "admin", d.cfg.Admin.Listen, runs)
	}
	if len(d.cfg.Proxy.Origins.Servers) > 0 {
		d.checkTCP(ctx, "listen", d.cfg.Clients.Listen, runs)
	}
	if d.cfg.Clients.VerdictListen != "" {
		d.checkTCP(ctx, "verdict-listen", d.cfg.Clients.VerdictListen, runs)
	}
	if d.cfg.TLS.RedirectListen != "" {
		d.checkTCP(ctx, "redirect-listen", d.cfg.TLS.RedirectListen, runs)
	}
	if d.cfg.Mesh.Listen != "" {
		var lc net.ListenConfig
		c, err := lc.ListenPacket(ctx, "udp", d.cfg.Mesh.Listen)
		d.port("mesh", "UDP "+d.cfg.Mesh.Listen, err, runs)
		if err == nil {
			c.Close()
		}
	}
	return runs
}

// nodeRuns reports whether something answers where operators connect.
func (d *doctor) nodeRuns(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, doctorWait)
	defer cancel()
	scheme := "http://"
	if d.cfg.Admin.CertFile != "" {
		scheme = "https://" // an answer without it is one as well
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+d.cfg.Admin.Listen+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return strings.Contains(err.Error(), "certificate")
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK && resp.Header.Get("Server") == "ropeline"
}

func (d *doctor) checkTCP(ctx context.Context, name, address string, runs bool) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	d.port(name, address, err, runs)
	if err == nil {
		l.Close()
	}
}

// port says what came of listening.
func (d *doctor) port(name, address string, err error, runs bool) {
	check := name + " " + address
	switch {
	case err == nil:
		d.ok(check, "free")
	case errors.Is(err, syscall.EADDRINUSE) && runs:
		d.ok(check, "in use, as of the node that runs here")
	case errors.Is(err, syscall.EADDRINUSE):
		d.fail(check, "something else is there already", fmt.Sprintf("find out what (ss -lptun), or give another --%s", name))
	case errors.Is(err, fs.ErrPermission):
		d.fail(check, "this user may not listen there", "take a port above 1023, or give the program the capability CAP_NET_BIND_SERVICE, as the unit of systemd does")
	default:
		d.fail(check, errText(err), fmt.Sprintf("give --%s an address of this machine", name))
	}
}

// checkSecret reads the secret as the node would.
func (d *doctor) checkSecret() {
	file := d.cfg.Mesh.SecretFile
	if file == "" {
		return // a single node makes its own
	}
	check := "secret " + file
	info, err := os.Stat(file)
	if err != nil {
		d.fail(check, errText(err), "make one with \"ropeline keygen\", the same for all nodes, and have this user read it")
		return
	}
	text, err := certs.ReadFile(file)
	var all []transport.Secret
	if err == nil {
		all, err = transport.ParseSecrets(string(text))
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		d.fail(check, errText(err), "have the user that runs the node read it: chown and chmod 600")
	case err != nil:
		d.fail(check, err.Error(), "put back the file that the other nodes have")
	case info.Mode().Perm()&0o007 != 0:
		d.warn(check, fmt.Sprintf("every user of this machine may read it (mode %o)", info.Mode().Perm()), "chmod 600 "+file)
	default:
		d.ok(check, "%d, the newest is %s; all nodes have to have the same", len(all), all[0].ID())
	}
}

// What a data directory is expected to be like.
const (
	freeWanted = 256 << 20
	syncWanted = 20 * time.Millisecond
	syncTries  = 20
)

// checkData looks at the directory in which rights and counts are kept.
func (d *doctor) checkData(runs bool) {
	dir := d.cfg.DataDir
	if dir == "" {
		var err error
		if dir, err = stateDir(d.cfg.Name); err != nil {
			d.fail("data directory", err.Error(), "give one with --data-dir")
			return
		}
	}
	check := "data directory " + dir
	at := dir // or the nearest directory above it that there is
	for {
		if _, err := os.Stat(at); err == nil || filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
	}
	took, err := syncs(at)
	if err != nil {
		d.fail(check, "it cannot be written: "+errText(err), "have the user that runs the node own it")
		return
	}
	if inMemory(at) {
		d.warn(check, "it is in memory, and lost when the machine goes down: its rights are then gone until the node is declared dead", "give a directory on a disk")
		return
	}
	if free, ok := freeBytes(at); ok && free < freeWanted {
		d.warn(check, fmt.Sprintf("%d MiB are free", free>>20), "make room: a node whose disk is full gives no tickets")
		return
	}
	if took > syncWanted {
		d.warn(check, fmt.Sprintf("a write takes %v to be on the disk", took.Round(100*time.Microsecond)), "take a faster disk: rights move between nodes and visitors get in no sooner than that")
		return
	}
	what := "new"
	if at == dir {
		what = "there"
	}
	if runs {
		what = "in use"
	}
	d.ok(check, "%s; a write takes %v to be on the disk", what, took.Round(10*time.Microsecond))
}

// syncs returns the median time that a small write takes to be on the disk.
func syncs(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, ".ropeline-doctor-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took []time.Duration
	for range syncTries {
		begin := time.Now()
		if _, err := f.WriteString("a few bytes"); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// checkBootstrap says what becomes of the node where there is no mesh.
func (d *doctor) checkBootstrap() {
	const check = "bootstrap"
	names := d.cfg.Rights.Bootstrap
	switch {
	case d.cfg.Mesh.Listen == "":
	case slices.Contains(names, d.cfg.Name):
		d.ok(check, "where there is no mesh yet, this node makes one together with all of %s", strings.Join(names, ","))
	case len(names) > 0:
		d.ok(check, "this node, %s, is none of %s: it joins the mesh that these make", d.cfg.Name, strings.Join(names, ","))
	default:
		d.ok(check, "without --bootstrap-nodes this node joins a mesh, and never makes one")
	}
}

// checkPeers finds out whether the nodes that shall be joined are reached.
func (d *doctor) checkPeers(ctx context.Context) {
	identity := d.identity()
	for _, address := range d.cfg.Mesh.Join {
		check := "peer " + address
		rtt, err := answersQUIC(ctx, address)
		var ahead time.Duration
		var probed error
		if err == nil {
			ahead, probed = probe(ctx, identity, address)
		}
		var dns *net.DNSError
		switch {
		case errors.Is(probed, transport.ErrStranger):
			d.fail(check, "a node answers that has another secret, or is of another mesh: neither lets the other in",
				"give both the same secret file (ropeline key list shows the ids of that node's), or certificates of one authority")
		case ahead.Abs() > node.MaxClockOffset:
			d.fail(check, fmt.Sprintf("its clock differs from the one of this machine by %v (%s): nodes whose clocks differ by more than %v give no tickets", ahead.Abs().Round(time.Millisecond), whose(ahead), node.MaxClockOffset),
				"set the clock of the machine that is wrong (chronyc tracking, timedatectl), and restart ropeline there if it runs")
		case err == nil && probed != nil:
			d.warn(check, "a node answers, and does not say what time it is: "+errText(probed), "try again; if it stays so, look at the log of that node")
		case err == nil:
			d.ok(check, "a node answers, in %v; its clock differs by %v", rtt.Round(10*time.Microsecond), ahead.Round(time.Millisecond))
		case errors.As(err, &dns):
			d.fail(check, "the name has no address: "+errText(err), "see what the name resolves to here, or give an address")
		default:
			d.warn(check, "no answer by UDP: "+errText(err), "start that node if it is down; else have the firewalls in between let UDP through to that port, both ways")
		}
	}
}

// identity returns what the node would prove itself with; nil if there is nothing yet, of
// which another check tells.
func (d *doctor) identity() *transport.Identity {
	if d.cfg.Mesh.CertFile != "" {
		given, err := d.cfg.Mesh.IdentityFromFiles()
		if err != nil {
			return nil
		}
		return given
	}
	text, err := certs.ReadFile(d.cfg.Mesh.SecretFile)
	if err != nil {
		return nil
	}
	all, err := transport.ParseSecrets(string(text))
	if err != nil {
		return nil
	}
	made, err := transport.IdentityFromSecret(all[0], []byte("doctor"), d.cfg.Name, d.cfg.Site, time.Now())
	if err != nil || made.Use(all, time.Now()) != nil {
		return nil
	}
	return made
}

// whose says which of two clocks is ahead.
func whose(ahead time.Duration) string {
	if ahead > 0 {
		return "that node's is ahead"
	}
	return "this machine's is ahead"
}

// probe asks the node at an address what transport.Probe tells of it; nothing where there is nothing to prove oneself with.
func probe(ctx context.Context, identity *transport.Identity, address string) (ahead time.Duration, err error) {
	if identity == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, doctorWait)
	defer cancel()
	return transport.Probe(ctx, identity, address)
}

// answersQUIC asks an address for a version of QUIC that there is none of. Whoever speaks
// QUIC answers with those it knows (RFC 9000, section 6), without being asked who we are.
func answersQUIC(ctx context.Context, address string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorWait)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "udp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	packet := make([]byte, 1200) // what is shorter is not answered
	packet[0] = 0xc0
	binary.BigEndian.PutUint32(packet[1:], 0x1a2a3a4a) // reserved to be answered so
	packet[5] = 8                                      // length of the id that the answer is for
	copy(packet[6:], "doctor?!")
	packet[14] = 8
	copy(packet[15:], "ropeline")
	answer := make([]byte, 1500)
	for {
		begin := time.Now()
		if _, err := conn.Write(packet); err != nil {
			return 0, err
		}
		if err := conn.SetReadDeadline(begin.Add(time.Second)); err != nil {
			return 0, err
		}
		n, err := conn.Read(answer)
		if err == nil && n >= 7 && answer[0]&0x80 != 0 && binary.BigEndian.Uint32(answer[1:]) == 0 {
			return time.Since(begin), nil
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("none within %v", doctorWait)
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, syscall.ECONNREFUSED) {
			return 0, err
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return 0, err
		}
	}
}

// checkOrigins connects to the site.
func (d *doctor) checkOrigins(ctx context.Context) {
	for _, o := range d.cfg.Proxy.Origins.Servers {
		check := "origin " + o.String()
		ctx, cancel := context.WithTimeout(ctx, doctorWait)
		begin := time.Now()
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", o.Address())
		cancel()
		if err != nil {
			d.fail(check, "it is not reached: "+errText(err), "start the site, or correct --origin; visitors get 502 until it is there")
			continue
		}
		conn.Close()
		d.ok(check, "it takes connections, in %v", time.Since(begin).Round(10*time.Microsecond))
	}
}
