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
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ropeline/ropeline/bench/rig/udp"
)

// Namespaces is a network of namespaces: one per node, and one that has the switch of each site and one more, which
// joins them.
//
//	site a                                       site b
//	a1 ── eth0 ─┐                            ┌─ eth0 ── b1
//	a2 ── eth0 ─┴─ switch ─ link ─ core ─ link ─ switch
//
// A site is cut off at its link, a node at the port of its switch; what shall be lost in one direction meets a
// blackhole route.
type Namespaces struct {
	prefix string // of every name; holds our process id
	hub    string // the namespace of the switches

	mu    sync.Mutex // guards the following
	sites []string
	nodes map[string]*nodeNet
	at    map[string]string // namespace by HTTP address
	undo  []string          // commands that heal
}

type nodeNet struct {
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
	prefix := "rl" + strconv.Itoa(os.Getpid())
	n := &Namespaces{prefix: prefix, hub: prefix + "hub", nodes: map[string]*nodeNet{}, at: map[string]string{}}
	if err := tryIP("netns add %s", n.hub); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	err := Try(func() {
		ip("-n %s link add core type bridge", n.hub)
		ip("-n %s link set core up", n.hub)
	})
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
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

// siteLocked makes a site's switch and link if it is new.
func (n *Namespaces) siteLocked(name string) {
	if slices.Contains(n.sites, name) {
		return
	}
	n.sites = append(n.sites, name)
	ip("-n %s link add sw%s type bridge", n.hub, name)
	ip("-n %s link set sw%s up", n.hub, name)
	ip("-n %s link add link%s type veth peer name core%[2]s", n.hub, name)
	ip("-n %s link set link%s master sw%[2]s up", n.hub, name)
	ip("-n %s link set core%s master core up", n.hub, name)
}

// Join implements Network. Names of sites and nodes are short: the kernel allows
// 15 characters for that of an interface.
func (n *Namespaces) Join(name, site string) (p Place, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	err = Try(func() {
		n.siteLocked(site)
		number := len(n.nodes) + 1
		node := &nodeNet{namespace: n.prefix + name, port: "port" + name, ip: fmt.Sprintf("10.77.0.%d", number)}
		n.nodes[name] = node
		p = Place{
			HTTP:      fmt.Sprintf("127.0.0.1:%d", 8100+number), // differ, so that they tell which namespace is meant
			Admin:     fmt.Sprintf("127.0.0.1:%d", 9100+number),
			Mesh:      node.ip + ":7946",
			Namespace: node.namespace,
		}
		n.at[p.HTTP], n.at[p.Admin] = node.namespace, node.namespace
		ip("netns add %s", node.namespace)
		ip("-n %s link set lo up", node.namespace)
		ip("link add eth0 netns %s type veth peer name %s netns %s", node.namespace, node.port, n.hub)
		ip("-n %s link set %s master sw%s up", n.hub, node.port, site)
		ip("-n %s addr add %s/24 dev eth0", node.namespace, node.ip)
		ip("-n %s link set eth0 up", node.namespace)
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

// doLocked runs a command and remembers what undoes it.
func (n *Namespaces) doLocked(command, undo string) error {
	if err := tryIP("%s", command); err != nil {
		return err
	}
	n.undo = append(n.undo, undo)
	return nil
}

// CutSite implements Network.
func (n *Namespaces) CutSite(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.takeDownLocked("link" + name)
}

// CutNode implements Network.
func (n *Namespaces) CutNode(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.takeDownLocked("port" + name)
}

// takeDownLocked takes down an interface of the hub.
func (n *Namespaces) takeDownLocked(name string) error {
	return n.doLocked(fmt.Sprintf("-n %s link set %s down", n.hub, name), fmt.Sprintf("-n %s link set %s up", n.hub, name))
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
	errs := []error{tryIP("netns del %s", n.hub)}
	for _, node := range n.nodes {
		errs = append(errs, tryIP("netns del %s", node.namespace))
	}
	n.nodes = nil
	return errors.Join(errs...)
}
