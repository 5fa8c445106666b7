package upstream

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// relyOnLast is for how long connections go to the address that worked last without a question, once one has had no
// answer.
const relyOnLast = 5 * time.Second

// names know where the names of origins led last, for when nobody answers any more where they lead: a site that is
// well is not to be out because a resolver is silent. What it says, if it says anything, comes first: also that there is
// no such name. The zero value knows nothing.
type names struct {
	mu sync.Mutex // guards the following
	of map[string]*name
}

// name is host:port of an origin.
type name struct {
	last   string    // the address that took a connection last; empty: none did
	silent time.Time // until when it is dialled without a question
	asking bool      // one is under way, for nobody to wait for
}

// dial opens a connection to addr, host:port, within so long, by d. An answer is awaited for as long before.
func (n *names) dial(ctx context.Context, d *net.Dialer, addr string, wait time.Duration) (net.Conn, error) {
	within := func(addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		return d.DialContext(ctx, "tcp", addr)
	}
	if last := n.instead(addr, d.Resolver, wait); last != "" {
		return within(last)
	}
	conn, err := within(addr)
	if err == nil {
		n.leads(addr, conn.RemoteAddr().String())
	} else if last := n.unanswered(addr, err); last != "" {
		return within(last)
	}
	return conn, err
}

// leads notes where a name has led.
func (n *names) leads(addr, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[string]*name{}
	}
	if is := n.of[addr]; is == nil || is.last != to || !is.silent.IsZero() {
		n.of[addr] = &name{last: to}
	}
}

// unanswered returns where a name led last if err says that nobody answers where it leads now.
func (n *names) unanswered(addr string, err error) string {
	dns, ok := errors.AsType[*net.DNSError](err)
	if !ok || dns.IsNotFound {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	is := n.of[addr]
	if is == nil {
		return ""
	}
	is.silent = time.Now().Add(relyOnLast)
	return is.last
}

// instead returns where a name led last while nobody answers where it leads; empty: it is to be asked. Whether
// somebody answers again is asked beside it.
func (n *names) instead(addr string, r *net.Resolver, wait time.Duration) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	is := n.of[addr]
	if is == nil || is.silent.IsZero() {
		return ""
	}
	if !is.asking && time.Now().After(is.silent) {
		is.asking = true
		go n.ask(is, addr, r, wait)
	}
	return is.last
}

func (n *names) ask(is *name, addr string, r *net.Resolver, wait time.Duration) {
	host, _, _ := net.SplitHostPort(addr) // it was dialled
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	_, err := r.LookupNetIP(ctx, "ip", host)
	dns, ok := errors.AsType[*net.DNSError](err)
	n.mu.Lock()
	defer n.mu.Unlock()
	is.asking = false
	if err == nil || ok && dns.IsNotFound {
		is.silent = time.Time{} // whoever comes next asks, and hears it
		return
	}
	is.silent = time.Now().Add(relyOnLast)
}
