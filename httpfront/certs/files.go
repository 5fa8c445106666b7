package certs

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Pair is where one certificate lies, both as PEM.
type Pair struct {
	Cert string // the file of the certificate, followed by those between it and a root
	Key  string // the file of its private key
}

// Config says which certificates there are. Pairs is required.
type Config struct {
	// Pairs are the certificates. A visitor is shown the first that fits the name that
	// the browser asks for, or the first of all if none does.
	Pairs []Pair
	// Interval is how often the files are looked at. A change is in use after twice as
	// long. Zero means Interval.
	Interval time.Duration
	// Clock says what certificates are valid at. Nil means time.Now.
	Clock func() time.Time
	// Logger takes what an operator should know: changes, files that are of no use,
	// certificates that run out. The default is slog.Default().
	Logger *slog.Logger
}

// Status is what is known of one certificate.
type Status struct {
	Names    []string  `json:"names"`
	Source   string    `json:"source"` // the file of the certificate, or "acme"
	NotAfter time.Time `json:"not_after,omitzero"`
	Error    string    `json:"error,omitempty"` // why what should be in use is not
}

// Files are certificates from files. It is safe for concurrent use.
type Files struct {
	cfg    Config
	inUse  atomic.Pointer[[]tls.Certificate] // one for each pair; replaced as a whole
	mu     sync.Mutex                        // guards the following
	pairs  []*watched
	warned []time.Time // when it was told last that a pair's certificate runs out
}

type watched struct {
	Pair
	watch *Watch
	cert  tls.Certificate // the last that was taken
}

// Load reads all certificates. It fails if one of them is of no use, but not if it has
// expired: that is told, and a site that is shown with a warning is better than none.
func Load(cfg Config) (*Files, error) {
	if len(cfg.Pairs) == 0 {
		return nil, errors.New("certificates: none given")
	}
	cfg.Interval = cmp.Or(cfg.Interval, Interval)
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	f := &Files{cfg: cfg, warned: make([]time.Time, len(cfg.Pairs))}
	var errs []error
	for _, p := range cfg.Pairs {
		w := &watched{Pair: p}
		var err error
		w.watch, err = NewWatch([]string{p.Cert, p.Key}, w.take(cfg.Clock))
		if err != nil {
			errs = append(errs, fmt.Errorf("certificate %s with key %s: %w", p.Cert, p.Key, err))
		}
		f.pairs = append(f.pairs, w)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	f.publish()
	f.warn(cfg.Clock())
	return f, nil
}

// take returns what takes in the contents of the two files, if they are of use. A
// certificate that is not valid does not replace one that is; when it has become so, or
// the other one is no longer, it does.
func (w *watched) take(clock func() time.Time) func([][]byte) error {
	return func(contents [][]byte) error {
		cert, err := tls.X509KeyPair(contents[0], contents[1])
		if err != nil {
			return err
		}
		now := clock()
		if w.cert.Leaf != nil && validAt(w.cert.Leaf, now) && !validAt(cert.Leaf, now) {
			return fmt.Errorf("the new certificate is valid from %s to %s, which is not now",
				cert.Leaf.NotBefore.UTC().Format(time.RFC3339), cert.Leaf.NotAfter.UTC().Format(time.RFC3339))
		}
		w.cert = cert
		return nil
	}
}

func validAt(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && !now.After(c.NotAfter)
}

// Run takes in what changes until ctx ends.
func (f *Files) Run(ctx context.Context) {
	ticker := time.Tick(f.cfg.Interval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker:
			f.look()
		}
	}
}

// look looks at all files once.
func (f *Files) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Clock()
	for i, p := range f.pairs {
		changed, err := p.watch.Look()
		if err != nil {
			f.cfg.Logger.Error("a certificate was changed to one that cannot be used; the one before stays in use: give the certificate, with those between it and its root, and the key that belongs to it",
				"cert", p.Cert, "key", p.Key, "error", err, "in_use_until", p.cert.Leaf.NotAfter)
		}
		if changed {
			f.warned[i] = time.Time{}
			f.cfg.Logger.Info("a new certificate is in use", "cert", p.Cert, "names", namesOf(p.cert.Leaf), "not_after", p.cert.Leaf.NotAfter)
			f.publish()
		}
	}
	f.warn(now)
}

// publish puts the certificates of all pairs in use.
func (f *Files) publish() {
	all := make([]tls.Certificate, len(f.pairs))
	for i, p := range f.pairs {
		all[i] = p.cert
	}
	f.inUse.Store(&all)
}

// warnEvery is how often it is told that a certificate runs out.
const warnEvery = 24 * time.Hour

// warn tells of certificates that have no more than a tenth of their life before them.
func (f *Files) warn(now time.Time) {
	for i, p := range f.pairs {
		c := p.cert.Leaf
		if now.Before(c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore)/10)) && !now.Before(c.NotBefore) ||
			!f.warned[i].IsZero() && now.Sub(f.warned[i]) < warnEvery {
			continue
		}
		f.warned[i] = now
		message := "a certificate runs out soon: replace its files, no restart is needed"
		if !validAt(c, now) {
			message = "a certificate is not valid, and browsers warn of it: replace its files, no restart is needed"
		}
		f.cfg.Logger.Warn(message, "cert", p.Cert, "names", namesOf(c), "not_before", c.NotBefore, "not_after", c.NotAfter)
	}
}

// GetCertificate picks the certificate for a visitor, for tls.Config.
func (f *Files) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	all := *f.inUse.Load()
	for i := range all {
		if len(all) == 1 || hello.SupportsCertificate(&all[i]) == nil {
			return &all[i], nil
		}
	}
	return &all[0], nil
}

// Status returns what is known of each certificate.
func (f *Files) Status() []Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Status, len(f.pairs))
	for i, p := range f.pairs {
		all[i] = Status{Names: namesOf(p.cert.Leaf), Source: p.Cert, NotAfter: p.cert.Leaf.NotAfter}
		if err := p.watch.Rejected(); err != nil {
			all[i].Error = err.Error()
		}
	}
	return all
}

// namesOf returns whom a certificate is for.
func namesOf(c *x509.Certificate) []string {
	names := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 && c.Subject.CommonName != "" {
		names = append(names, c.Subject.CommonName)
	}
	return names
}
