package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ropeline/ropeline/bench/rig/udp"
)

// Namespaces is a network of namespaces: one per node, and one per site that
// holds the site's switch and routes to the other sites.
//
//	site a                                            site b
//	a1 ── eth0 ─┐                                 ┌─ eth0 ── b1
//	a2 ── eth0 ─┴─ switch · router a ─ link ─ router b · switch
//
// A cut between sites takes the link down; a node is cut off at the port of its
// switch; what shall be lost in one direction meets a blackhole route.
type Namespaces struct {
	prefix string // of every name; holds our process id

	mu    sync.Mutex // guards the following
	sites []*siteNet
	nodes map[string]*nodeNet
	at    map[string]string // namespace by HTTP address
	undo  []string          // commands that heal
}

type siteNet struct {
	name   string
	number int // of its /24
	router string
	ports  int
}

type nodeNet struct {
	site      *siteNet
	namespace string
	ip        string
	port      string // its end at the switch
}

const runDir = "/var/run/netns"

// NewNamespaces returns a network without nodes. The error wraps ErrCannot if
// the machine or the user may not make namespaces. Those of an earlier process
// that could not clean up are taken away.
func NewNamespaces() (*Namespaces, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: network namespaces need root", ErrCannot)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, fmt.Errorf("%w: network namespaces need the command ip of iproute2", ErrCannot)
	}
	sweep()
	n := &Namespaces{prefix: "rl" + strconv.Itoa(os.Getpid()), nodes: map[string]*nodeNet{}, at: map[string]string{}}
	probe := n.prefix + "probe"
	if err := tryIP("netns add %s", probe); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return n, tryIP("netns del %s", probe)
}

var ours = regexp.MustCompile(`^rl(\d+)`)

// sweep removes the namespaces of processes that are gone.
func sweep() {
	entries, _ := os.ReadDir(runDir) // not there: nothing to sweep
	for _, e := range entries {
		if m := ours.FindStringSubmatch(e.Name()); m != nil {
			if pid, err := strconv.Atoi(m[1]); err == nil && unix.Kill(pid, 0) == unix.ESRCH {
				_ = tryIP("netns del %s", e.Name()) // somebody else may have
			}
		}
	}
}

// ip runs a command of iproute2, and fails as [Must] does.
func ip(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		Must(fmt.Errorf("ip %s: %w: %s", line, err, bytes.TrimSpace(out)))
	}
}

func tryIP(format string, args ...any) error { return Try(func() { ip(format, args...) }) }

// siteLocked returns a site's network, and makes it and its links if it is new.
func (n *Namespaces) siteLocked(name string) *siteNet {
	for _, s := range n.sites {
		if s.name == name {
			return s
		}
	}
	s := &siteNet{name: name, number: len(n.sites) + 1, router: n.prefix + "r" + name}
	n.sites = append(n.sites, s)
	ip("netns add %s", s.router)
	ip("-n %s link set lo up", s.router)
	ip("-n %s link add sw type bridge", s.router)
	ip("-n %s addr add 10.77.%d.1/24 dev sw", s.router, s.number)
	ip("-n %s link set sw up", s.router)
	Must(inside(s.router, func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	}))
	for _, other := range n.sites[:len(n.sites)-1] {
		link(other, s)
	}
	return s
}

// link joins two routers by a link of its own.
func link(a, b *siteNet) {
	net := fmt.Sprintf("10.78.%d", a.number*16+b.number)
	ip("link add to%s netns %s type veth peer name to%s netns %s", b.name, a.router, a.name, b.router)
	ip("-n %s addr add %s.1/24 dev to%s", a.router, net, b.name)
	ip("-n %s addr add %s.2/24 dev to%s", b.router, net, a.name)
	ip("-n %s link set to%s up", a.router, b.name)
	ip("-n %s link set to%s up", b.router, a.name)
	ip("-n %s route add %s", a.router, a.to(b))
	ip("-n %s route add %s", b.router, b.to(a))
}

// to is the route to another site. The end of a link at the site that was there before is the first.
func (s *siteNet) to(other *siteNet) string {
	link, end := s.number*16+other.number, 2
	if s.number > other.number {
		link, end = other.number*16+s.number, 1
	}
	return fmt.Sprintf("10.77.%d.0/24 via 10.78.%d.%d", other.number, link, end)
}

// Join implements Network. Names of sites and nodes are short: the kernel allows
// 15 characters for that of an interface.
func (n *Namespaces) Join(name, site string) (p Place, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	err = Try(func() {
		s := n.siteLocked(site)
		s.ports++
		node := &nodeNet{
			site: s, namespace: n.prefix + name, port: "port" + name,
			ip: fmt.Sprintf("10.77.%d.%d", s.number, s.ports+1),
		}
		n.nodes[name] = node
		number := len(n.nodes)
		p = Place{
			HTTP:      fmt.Sprintf("127.0.0.1:%d", 8100+number), // differ, so that they tell which namespace is meant
			Admin:     fmt.Sprintf("127.0.0.1:%d", 9100+number),
			Mesh:      node.ip + ":7946",
			Namespace: node.namespace,
		}
		n.at[p.HTTP], n.at[p.Admin] = node.namespace, node.namespace
		ip("netns add %s", node.namespace)
		ip("-n %s link set lo up", node.namespace)
		ip("link add eth0 netns %s type veth peer name %s netns %s", node.namespace, node.port, s.router)
		ip("-n %s link set %s master sw up", s.router, node.port)
		ip("-n %s addr add %s/24 dev eth0", node.namespace, node.ip)
		ip("-n %s link set eth0 up", node.namespace)
		ip("-n %s route add default via 10.77.%d.1", node.namespace, s.number)
	})
	return p, err
}

// Dial implements Network.
func (n *Namespaces) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	n.mu.Lock()
	ns := n.at[address]
	n.mu.Unlock()
	if ns == "" {
		return nil, fmt.Errorf("dial %s: no node listens there", address)
	}
	err = inside(ns, func() error {
		var d net.Dialer
		c, err = d.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// Listen implements Network.
func (n *Namespaces) Listen(name string) (l net.Listener, err error) {
	n.mu.Lock()
	node := n.nodes[name]
	n.mu.Unlock()
	err = inside(node.namespace, func() error {
		l, err = net.Listen("tcp4", "127.0.0.1:0")
		return err
	})
	return l, err
}

// inside runs f on a thread of its own in a namespace. What f opens stays there.
// f must not leave goroutines behind that expect to be in it.
func inside(namespace string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread has left the process's namespace, and the
		// runtime ends it together with this goroutine.
		runtime.LockOSThread()
		done <- enterAnd(namespace, f)
	}()
	return <-done
}

func enterAnd(namespace string, f func() error) error {
	ns, err := os.Open(filepath.Join(runDir, namespace))
	if err != nil {
		return fmt.Errorf("namespace %s: %w", namespace, err)
	}
	err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
	_ = ns.Close() // the thread is in it, or not, by now
	if err != nil {
		return fmt.Errorf("namespace %s: %w", namespace, err)
	}
	return f()
}

// doLocked runs a command and remembers what undoes it, in this order.
func (n *Namespaces) doLocked(command string, undo ...string) error {
	if err := tryIP("%s", command); err != nil {
		return err
	}
	n.undo = append(n.undo, undo...)
	return nil
}

// CutSites implements Network.
func (n *Namespaces) CutSites(a, b string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := map[string]*siteNet{}
	for _, s := range n.sites {
		of[s.name] = s
	}
	site, other := of[a], of[b]
	if site == nil || other == nil {
		return fmt.Errorf("cut sites %s and %s: there is no such site", a, b)
	}
	// The kernel forgets the routes through a link that is taken down here; at
	// the other end of it they stay, without a carrier.
	return n.doLocked(fmt.Sprintf("-n %s link set to%s down", site.router, b),
		fmt.Sprintf("-n %s link set to%s up", site.router, b), fmt.Sprintf("-n %s route replace %s", site.router, site.to(other)))
}

// CutNode implements Network.
func (n *Namespaces) CutNode(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	node := n.nodes[name]
	if node == nil {
		return fmt.Errorf("cut node %s: there is no such node", name)
	}
	return n.doLocked(fmt.Sprintf("-n %s link set %s down", node.site.router, node.port), fmt.Sprintf("-n %s link set %s up", node.site.router, node.port))
}

// CutOneWay implements Network.
func (n *Namespaces) CutOneWay(from, to string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, b := n.nodes[from], n.nodes[to]
	if a == nil || b == nil {
		return fmt.Errorf("cut %s to %s: there is no such node", from, to)
	}
	return n.doLocked(fmt.Sprintf("-n %s route add blackhole %s/32", a.namespace, b.ip), fmt.Sprintf("-n %s route del blackhole %s/32", a.namespace, b.ip))
}

// Shape implements Network: nothing can be shaped.
func (n *Namespaces) Shape(udp.Link) error {
	return fmt.Errorf("%w: delay and loss need the proxies of a loopback network", ErrCannot)
}

// Heal implements Network.
func (n *Namespaces) Heal() error {
	n.mu.Lock()
	undo := n.undo
	n.undo = nil
	n.mu.Unlock()
	var errs []error
	for _, c := range undo {
		errs = append(errs, tryIP("%s", c))
	}
	return errors.Join(errs...)
}

// Close implements Network. Interfaces go with their namespaces.
func (n *Namespaces) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for _, node := range n.nodes {
		errs = append(errs, tryIP("netns del %s", node.namespace))
	}
	for _, s := range n.sites {
		errs = append(errs, tryIP("netns del %s", s.router))
	}
	n.nodes, n.sites = nil, nil
	return errors.Join(errs...)
}
