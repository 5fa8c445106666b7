// Package crawler tells crawlers of search engines from those who only say that they are
// one. What a client calls itself proves nothing, and who believed it would let anybody
// past a queue. The engines say how to check: the name that the address has in the DNS is
// one of the engine's, and that name leads back to the address.
//
// Nobody waits for the DNS: a crawler that is not known yet is not one, and is looked up
// in the background; its next request finds the answer.
package crawler

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Engine is a search engine, and how its crawlers are known.
type Engine struct {
	Agent   string   // in the User-Agent, in lower case
	Domains []string // below which its crawlers have names
}

// Engines returns those that say, at the addresses below, that their crawlers can be
// checked in the DNS. It is a new slice each time.
//
//	Google  developers.google.com/search/docs/crawling-indexing/verifying-googlebot; names
//	        below google.com are of what fetches for users, who could so pass a room
//	Bing    bing.com/webmasters/help/how-to-verify-bingbot-3905dc26
//	Apple   support.apple.com/119829
//	Yandex  yandex.com/support/webmaster/robot-workings/check-yandex-robots.html
//	Baidu   help.baidu.com/question?prod_id=99&class=476&id=2996
//	Seznam  o-seznam.cz/napoveda/vyhledavani/en/seznambot-crawler
//	Yahoo   help.yahoo.com/kb/SLN22600.html
func Engines() []Engine {
	return []Engine{
		{"googlebot", []string{"googlebot.com"}},
		{"bingbot", []string{"search.msn.com"}},
		{"applebot", []string{"applebot.apple.com"}},
		{"yandex", []string{"yandex.ru", "yandex.net", "yandex.com"}},
		{"baiduspider", []string{"baidu.com", "baidu.jp"}},
		{"seznambot", []string{"seznam.cz"}},
		{"slurp", []string{"crawl.yahoo.net"}},
	}
}

// Resolver asks the DNS; *net.Resolver is one.
type Resolver interface {
	LookupAddr(ctx context.Context, addr string) (names []string, err error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config says how a Checker checks. The zero value of each field means its default.
type Config struct {
	Engines  []Engine      // default Engines()
	Resolver Resolver      // default the system's
	Timeout  time.Duration // of one check; default 5 s
	// Remember is how long an answer holds, and Retry how long it holds that none was
	// had. Defaults a day and a minute.
	Remember, Retry time.Duration
	// Addresses is how many are remembered, the one that came least recently going
	// first; default 4096. Waiting is how many may wait to be looked up: more are
	// looked up when they come again; default 64.
	Addresses, Waiting int
	Now                func() time.Time // default time.Now
}

// Checker knows crawlers by their addresses. Create it with New; any goroutine may use it.
type Checker struct {
	cfg   Config
	words [][]byte // those of the engines
	known *lru.Cache[question, answer]
	asked chan question

	mu      sync.Mutex
	pending map[question]bool
}

// question is whether an address belongs to the engine of an index.
type question struct {
	addr   netip.Addr
	engine int
}

type answer struct {
	yes   bool
	until time.Time
}

// New returns a Checker, or an error that names what of cfg cannot be used.
func New(cfg Config) (*Checker, error) {
	if cfg.Engines == nil {
		cfg.Engines = Engines()
	}
	cfg.Resolver = cmp.Or[Resolver](cfg.Resolver, net.DefaultResolver)
	cfg.Timeout = cmp.Or(cfg.Timeout, 5*time.Second)
	cfg.Remember = cmp.Or(cfg.Remember, 24*time.Hour)
	cfg.Retry = cmp.Or(cfg.Retry, time.Minute)
	cfg.Addresses = cmp.Or(cfg.Addresses, 4096)
	cfg.Waiting = cmp.Or(cfg.Waiting, 64)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if min(cfg.Timeout, cfg.Remember, cfg.Retry) < 0 || min(cfg.Addresses, cfg.Waiting) < 0 {
		return nil, errors.New("crawler: spans and counts must not be negative")
	}
	known, err := lru.New[question, answer](cfg.Addresses)
	if err != nil {
		return nil, err
	}
	c := &Checker{cfg: cfg, known: known, asked: make(chan question, cfg.Waiting), pending: map[question]bool{}}
	for _, e := range cfg.Engines {
		c.words = append(c.words, []byte(e.Agent))
	}
	return c, nil
}

// Is reports whether the client with that User-Agent at that address is known to be a
// crawler. If it says that it is one and nobody has looked yet, it has Run look. It does
// not allocate for those who do not say so, nor for those who are known.
func (c *Checker) Is(userAgent []byte, addr netip.Addr) bool {
	engine := c.engineOf(userAgent)
	if engine < 0 || !addr.IsValid() {
		return false
	}
	q := question{addr.Unmap().WithZone(""), engine}
	if a, ok := c.known.Get(q); ok && c.cfg.Now().Before(a.until) {
		return a.yes
	}
	c.ask(q)
	return false
}

// maxAgent is how much of a User-Agent is looked at.
const maxAgent = 512

// engineOf returns the index of the engine that a User-Agent names; -1: none.
func (c *Checker) engineOf(userAgent []byte) int {
	var buf [maxAgent]byte
	agent := buf[:min(len(userAgent), maxAgent)]
	for i := range agent {
		b := userAgent[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		agent[i] = b
	}
	for i := range c.cfg.Engines {
		if bytes.Contains(agent, c.words[i]) {
			return i
		}
	}
	return -1
}

// ask has a question be looked up, unless too many are.
func (c *Checker) ask(q question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[q] {
		return
	}
	select {
	case c.asked <- q:
		c.pending[q] = true
	default:
	}
}

// Run looks up who says to be a crawler, until ctx ends. Several may run at once.
func (c *Checker) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-c.asked:
			yes, err := c.check(ctx, q)
			holds := c.cfg.Remember
			if err != nil {
				holds = c.cfg.Retry
			}
			c.known.Add(q, answer{yes, c.cfg.Now().Add(holds)})
			c.mu.Lock()
			delete(c.pending, q)
			c.mu.Unlock()
		}
	}
}

// check asks the DNS for the names of the address, and of those that are the engine's for
// their addresses. An error says that it could not be found out.
func (c *Checker) check(ctx context.Context, q question) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	names, err := c.cfg.Resolver.LookupAddr(ctx, q.addr.String())
	if err != nil {
		return false, unlessNone(err)
	}
	for _, name := range names {
		if !below(name, c.cfg.Engines[q.engine].Domains) {
			continue
		}
		addrs, err := c.cfg.Resolver.LookupNetIP(ctx, "ip", name)
		if err != nil {
			if err := unlessNone(err); err != nil {
				return false, err
			}
			continue
		}
		for _, addr := range addrs {
			if addr.Unmap() == q.addr {
				return true, nil
			}
		}
	}
	return false, nil
}

// unlessNone returns nil for the error which says that there is nothing of that name,
// which is an answer.
func unlessNone(err error) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return nil
	}
	return err
}

// below reports whether a name, with or without a dot at its end, is below one of domains.
func below(name string, domains []string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return slices.ContainsFunc(domains, func(d string) bool { return strings.HasSuffix(name, "."+d) })
}
