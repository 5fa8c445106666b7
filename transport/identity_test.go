package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"
)

func mustIdentity(t *testing.T, s Secret, key []byte, site string, now time.Time) *Identity {
	t.Helper()
	i, err := IdentityFromSecret(s, key, "n", site, now)
	if err != nil {
		t.Fatalf("IdentityFromSecret: %v", err)
	}
	return i
}

// accepts reports whether a takes b's present certificate at now.
func accepts(a, b *Identity, now time.Time) error {
	cur := a.current(now)
	return cur.verify([]*x509.Certificate{b.current(now).leaf.Leaf}, now)
}

func TestIdentityFromSecret(t *testing.T) {
	now := time.Now()
	s := NewSecret()
	a, b := mustIdentity(t, s, testKey(1), "east", now), mustIdentity(t, s, testKey(2), "west", now)
	if err := accepts(a, b, now); err != nil {
		t.Errorf("same secret: %v", err)
	}
	if err := accepts(mustIdentity(t, NewSecret(), testKey(1), "east", now), b, now); err == nil {
		t.Error("another secret: accepted")
	}
	id, site, err := nodeOf(b.current(now).leaf.Leaf)
	if err != nil || id != testID(2) || site != "west" {
		t.Errorf("certificate names %v %q %v", id, site, err)
	}
	ca1, _, _ := clusterCA(s)
	ca2, _, _ := clusterCA(s)
	if !ca1.Equal(ca2) {
		t.Error("the authority differs from one call to the next")
	}
	if size := len(b.current(now).leaf.Certificate[0]); size > 700 {
		t.Errorf("leaf of %d bytes: handshakes grow", size)
	}
	// A week and a half later the process has renewed by itself; whoever
	// kept the old leaf is out.
	old, later := b.current(now).leaf.Leaf, now.Add(250*time.Hour)
	if err := accepts(a, b, later); err != nil {
		t.Errorf("after ten days: %v", err)
	}
	if err := verifyChain([]*x509.Certificate{old}, a.current(later).roots, later); err == nil {
		t.Error("an expired leaf is accepted")
	}
	// A peer whose clock is a day behind still gets in.
	if err := accepts(a, mustIdentity(t, s, testKey(2), "west", later), later.Add(-24*time.Hour)); err != nil {
		t.Errorf("clock a day behind: %v", err)
	}
}

// forgedIdentity returns what a holder of the secret can make for the id of another node: a certificate for a key of its own.
func forgedIdentity(t *testing.T, s Secret, id PeerID, site string, now time.Time) *Identity {
	t.Helper()
	i := mustIdentity(t, s, []byte("forger"), site, now)
	ca, key, err := clusterCA(s)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := *i.cur.leaf.Leaf
	tmpl.URIs = []*url.URL{nodeURI(id, site)}
	der, err := x509.CreateCertificate(rand.Reader, &tmpl, ca, i.key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if i.cur.leaf.Leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	i.cur.leaf.Certificate = [][]byte{der}
	return i
}

// TestNobodyGoesByTheIDOfAnother: the secret makes certificates for any id, and they are refused without the key
// that the id follows from.
func TestNobodyGoesByTheIDOfAnother(t *testing.T) {
	now, s := time.Now(), NewSecret()
	a, b := mustIdentity(t, s, testKey(1), "east", now), mustIdentity(t, s, testKey(2), "east", now)
	forged := forgedIdentity(t, s, b.ID(), "east", now)
	if id, _, err := nodeOf(forged.cur.leaf.Leaf); err != nil || id != b.ID() {
		t.Fatalf("the certificate is for %s: %v", id, err)
	}
	if err := accepts(a, forged, now); err == nil {
		t.Error("a certificate for another node's id is taken")
	}
	if err := accepts(a, forgedIdentity(t, s, forged.ID(), "west", now), now); err != nil {
		t.Errorf("one for an id of its own is refused: %v", err)
	}
	if again := mustIdentity(t, s, testKey(2), "east", now); again.ID() != b.ID() || again.resetKey != b.resetKey {
		t.Error("another start of a node has another id")
	}
}

func TestIdentityRefusesBadInput(t *testing.T) {
	now, s := time.Now(), NewSecret()
	for name, f := range map[string]func() (*Identity, error){
		"zero secret": func() (*Identity, error) { return IdentityFromSecret(Secret{}, testKey(1), "n", "s", now) },
		"no key":      func() (*Identity, error) { return IdentityFromSecret(s, nil, "n", "s", now) },
		"no site":     func() (*Identity, error) { return IdentityFromSecret(s, testKey(1), "n", "", now) },
		"slash":       func() (*Identity, error) { return IdentityFromSecret(s, testKey(1), "n", "a/b", now) },
		"long site": func() (*Identity, error) {
			return IdentityFromSecret(s, testKey(1), "n", strings.Repeat("x", 64), now)
		},
		"bad name": func() (*Identity, error) { return IdentityFromSecret(s, testKey(1), "a b", "s", now) },
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// pki is an operator's authority.
type pki struct {
	t   *testing.T
	ca  *x509.Certificate
	key *ecdsa.PrivateKey
}

func newPKI(t *testing.T) *pki {
	p := &pki{t: t}
	p.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operator"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, p.key.Public(), p.key)
	if err != nil {
		t.Fatal(err)
	}
	p.ca, _ = x509.ParseCertificate(der)
	return p
}

func (p *pki) caPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.ca.Raw})
}

// issue makes a node's files; change may spoil the certificate.
func (p *pki) issue(uris []string, change func(*x509.Certificate)) (certPEM, keyPEM []byte) {
	p.t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, u := range uris {
		parsed, err := url.Parse(u)
		if err != nil {
			p.t.Fatal(err)
		}
		tmpl.URIs = append(tmpl.URIs, parsed)
	}
	if change != nil {
		change(tmpl)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, p.ca, key.Public(), p.key)
	if err != nil {
		p.t.Fatal(err)
	}
	keyDER, _ := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func TestIdentityFromFiles(t *testing.T) {
	p := newPKI(t)
	good := nodeURI(testID(1), "east").String()
	cert, key := p.issue([]string{good}, nil)
	i, err := IdentityFromFiles(cert, key, p.caPEM())
	if err != nil || i.ID() != testID(1) || i.Site() != "east" {
		t.Fatalf("got %+v, %v", i, err)
	}
	cert2, key2 := p.issue([]string{good}, nil)
	if err := i.Reload(cert2, key2, p.caPEM()); err != nil {
		t.Errorf("reload: %v", err)
	}
	other, otherKey := p.issue([]string{nodeURI(testID(2), "east").String()}, nil)
	if err := i.Reload(other, otherKey, p.caPEM()); err == nil {
		t.Error("reload turned one node into another")
	}
	for name, tc := range map[string]struct {
		uris   []string
		change func(*x509.Certificate)
	}{
		"no URI":          {nil, nil},
		"two URIs":        {[]string{good, good}, nil},
		"other host":      {[]string{strings.Replace(good, "//ropeline", "//other", 1)}, nil},
		"other scheme":    {[]string{strings.Replace(good, "spiffe:", "https:", 1)}, nil},
		"upper-case id":   {[]string{"spiffe://ropeline/east/" + strings.ToUpper(testID(1).String())}, nil},
		"no site":         {[]string{"spiffe://ropeline/" + testID(1).String()}, nil},
		"query":           {[]string{good + "?x=1"}, nil},
		"short id":        {[]string{good[:len(good)-1]}, nil},
		"only for client": {[]string{good}, func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] }},
		"only for server": {[]string{good}, func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }},
	} {
		cert, key := p.issue(tc.uris, tc.change)
		if _, err := IdentityFromFiles(cert, key, p.caPEM()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := IdentityFromFiles(cert, key, newPKI(t).caPEM()); err == nil {
		t.Error("a certificate of another authority: accepted")
	}
	if _, err := IdentityFromFiles(cert, key2, p.caPEM()); err == nil {
		t.Error("the key of another certificate: accepted")
	}
	if _, err := IdentityFromFiles(cert, key, []byte("nothing")); err == nil {
		t.Error("no authority: accepted")
	}
	if _, err := IdentityFromFiles(cert, key, cert); err == nil {
		t.Error("a leaf as authority: accepted")
	}
}

// TestMeshOfOperatorCertificates runs on certificates from files.
func TestMeshOfOperatorCertificates(t *testing.T) {
	p := newPKI(t)
	c := newCluster(t, nil)
	var ns []*testNode
	for i := range 2 {
		cfg := c.config(i+1, 1, 0)
		cert, key := p.issue([]string{nodeURI(cfg.ID, cfg.Site).String()}, nil)
		id, err := IdentityFromFiles(cert, key, p.caPEM())
		if err != nil {
			t.Fatal(err)
		}
		cfg.Identity = id
		if i > 0 {
			cfg.Seeds = []string{ns[0].addr.String()}
		}
		ns = append(ns, c.start(cfg))
	}
	for _, n := range ns {
		n.waitAlive(1, 10*time.Second)
	}
}

func TestConfigIsChecked(t *testing.T) {
	c := newCluster(t, nil)
	for name, change := range map[string]func(*Config){
		"no id":            func(c *Config) { c.ID = PeerID{} },
		"no identity":      func(c *Config) { c.Identity = nil },
		"other node":       func(c *Config) { c.ID = testID(9) },
		"other site":       func(c *Config) { c.Site = "elsewhere" },
		"bad name":         func(c *Config) { c.Name = "a b" },
		"seed, no port":    func(c *Config) { c.Seeds = []string{"10.0.0.1"} },
		"bad advertise":    func(c *Config) { c.Advertise = "nowhere" },
		"wild advertise":   func(c *Config) { c.Advertise = "0.0.0.0:1" },
		"no timing":        func(c *Config) { c.Timing = Timing{} },
		"no limits":        func(c *Config) { c.Limits = Limits{} },
		"probe too long":   func(c *Config) { c.Timing.ProbeTimeout = c.Timing.ProbeInterval },
		"unknown listener": func(c *Config) { c.Listen = "256.0.0.1:1" },
	} {
		cfg := c.config(1, 1, 0)
		change(&cfg)
		if m, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
			_ = m.Close()
		}
	}
	preset := LAN()
	if err := errors.Join(preset.Timing.validate(), preset.Limits.validate()); err != nil {
		t.Errorf("LAN: %v", err)
	}
}

// TestIdentitiesOfSeveralSecrets: nodes in adjoining stages of a rotation accept each
// other, and who has only the secret that was retired is out.
func TestIdentitiesOfSeveralSecrets(t *testing.T) {
	now := time.Now()
	first := NewSecret()
	next := first.Next()
	stages := [][]Secret{{first}, {first, next}, {next, first}, {next}} // leaf and what is accepted
	at := func(id, stage int) *Identity {
		i := mustIdentity(t, first, testKey(id), "east", now)
		if err := i.Use(stages[stage], now); err != nil {
			t.Fatal(err)
		}
		return i
	}
	for a := range stages {
		for b := range stages {
			err := accepts(at(1, a), at(2, b), now)
			apart := a == 0 && b > 1 || a == 3 && b < 2
			if (err != nil) != apart {
				t.Errorf("stage %d meets one of stage %d: %v", a, b, err)
			}
		}
	}
	// A leaf that is renewed comes from the secret that is used then.
	i := at(1, 2)
	if err := accepts(at(2, 3), i, now.Add(leafLife)); err != nil {
		t.Errorf("after a renewal: %v", err)
	}
	p := newPKI(t)
	cert, key := p.issue([]string{nodeURI(testID(3), "east").String()}, nil)
	own, err := IdentityFromFiles(cert, key, p.caPEM())
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Use(stages[0], now); err == nil {
		t.Error("a secret replaces the operator's own certificates")
	}
}
