package certs

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// issue returns a certificate for names, and its key, as PEM.
func issue(from, to time.Time, names ...string) (cert, key []byte) {
	private := must.Do(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: from, NotAfter: to}
	der := must.Do(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))
	secret := must.Do(x509.MarshalPKCS8PrivateKey(private))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// month returns a certificate that is valid for thirty days around noon.
func month(names ...string) (cert, key []byte) {
	return issue(noon.Add(-15*24*time.Hour), noon.Add(15*24*time.Hour), names...)
}

// site is a directory of certificates.
type site struct {
	t    *testing.T
	dir  string
	log  bytes.Buffer
	now  time.Time
	cert string // the path of the first certificate
	key  string

	files *Files
}

func newSite(t *testing.T) *site {
	dir := t.TempDir()
	return &site{t: t, dir: dir, now: noon, cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
}

// ok ends a test for which something could not be done.
func (s *site) ok(errs ...error) {
	s.t.Helper()
	must.OK(errors.Join(errs...))
}

func (s *site) write(path string, content []byte) {
	s.t.Helper()
	s.ok(os.WriteFile(path, content, 0o600))
}

func (s *site) put(cert, key []byte) {
	s.t.Helper()
	s.write(s.cert, cert)
	s.write(s.key, key)
}

func (s *site) load(more ...Pair) (*Files, error) {
	return Load(Config{
		Pairs: append([]Pair{{s.cert, s.key}}, more...), Clock: func() time.Time { return s.now },
		Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
}

func (s *site) mustLoad(more ...Pair) *Files { return must.Do(s.load(more...)) }

// shown returns the first name of the certificate that a browser gets which asks for
// name.
func shown(f *Files, name string) string {
	c := must.Do(f.GetCertificate(&tls.ClientHelloInfo{
		ServerName: name, SupportedVersions: []uint16{tls.VersionTLS13},
		SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
	}))
	return c.Leaf.DNSNames[0]
}

// loaded is a site with a certificate that is in use.
func loaded(t *testing.T, name string) *site {
	s := newSite(t)
	s.put(month(name))
	s.files = s.mustLoad()
	return s
}

// shows expects a certificate, by its first name, for those who ask for no name.
func (s *site) shows(want string) {
	s.t.Helper()
	if got := shown(s.files, ""); got != want {
		s.t.Errorf("got %q, want %q", got, want)
	}
}

// says expects so many lines of the log with a text.
func (s *site) says(text string, n int) {
	s.t.Helper()
	if log := s.log.String(); strings.Count(log, text) != n {
		s.t.Errorf("want %q %d times in the log:\n%s", text, n, log)
	}
}

// settle has it look as often as it takes for a change to be in use.
func (s *site) settle() {
	s.files.look()
	s.files.look()
}

func TestTheCertificateFitsTheName(t *testing.T) {
	s := newSite(t)
	s.put(month("one.example", "www.one.example"))
	second := Pair{filepath.Join(s.dir, "2.crt"), filepath.Join(s.dir, "2.key")}
	cert, key := month("two.example", "*.two.example")
	s.write(second.Cert, cert)
	s.write(second.Key, key)
	f := s.mustLoad(second)
	for name, want := range map[string]string{
		"one.example": "one.example", "www.one.example": "one.example", "two.example": "two.example",
		"a.two.example": "two.example", "a.b.two.example": "one.example", "other.example": "one.example", "": "one.example",
	} {
		if got := shown(f, name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestChangedFilesAreTakenIn(t *testing.T) {
	// swap puts a new pair in place of the old one.
	for name, swap := range map[string]func(s *site, cert, key []byte){
		"written": func(s *site, cert, key []byte) { s.put(cert, key) },
		"renamed": func(s *site, cert, key []byte) {
			s.write(s.cert+".new", cert)
			s.write(s.key+".new", key)
			s.ok(os.Rename(s.cert+".new", s.cert), os.Rename(s.key+".new", s.key))
		},
		// As Kubernetes does it: the files are links through a link that is replaced.
		"link replaced": func(s *site, cert, key []byte) {
			data := filepath.Join(s.dir, "..data")
			s.ok(os.Mkdir(filepath.Join(s.dir, "..v2"), 0o700), os.Symlink("..v2", data+".tmp"))
			s.write(filepath.Join(s.dir, "..v2", "tls.crt"), cert)
			s.write(filepath.Join(s.dir, "..v2", "tls.key"), key)
			s.ok(os.Rename(data+".tmp", data))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			if name == "link replaced" {
				s.ok(os.Mkdir(filepath.Join(s.dir, "..v1"), 0o700), os.Symlink("..v1", filepath.Join(s.dir, "..data")),
					os.Symlink("..data/tls.crt", s.cert), os.Symlink("..data/tls.key", s.key))
			}
			s.put(month("old.example"))
			s.files = s.mustLoad()
			s.settle()
			s.shows("old.example")
			cert, key := month("new.example")
			swap(s, cert, key)
			s.settle()
			s.shows("new.example")
			s.says("a new certificate is in use", 1)
			s.says("level=ERROR", 0)
		})
	}
}

// TestFilesThatAreOfNoUseChangeNothing also shows that the operator is told once, and
// that the next good pair is taken.
func TestFilesThatAreOfNoUseChangeNothing(t *testing.T) {
	cert, key := month("new.example")
	_, otherKey := month("other.example")
	expired, expiredKey := issue(noon.Add(-48*time.Hour), noon.Add(-24*time.Hour), "expired.example")
	for name, spoil := range map[string]func(s *site){
		"the key of another":  func(s *site) { s.put(cert, otherKey) },
		"certificate only":    func(s *site) { s.write(s.cert, cert) },
		"half a certificate":  func(s *site) { s.put(cert[:len(cert)/2], key) },
		"empty":               func(s *site) { s.put(nil, key) },
		"no PEM":              func(s *site) { s.put([]byte("certificate"), key) },
		"key and certificate": func(s *site) { s.put(key, cert) },
		"expired":             func(s *site) { s.put(expired, expiredKey) },
		"too long":            func(s *site) { s.put(bytes.Repeat([]byte("a"), fileMax+1), key) },
		"gone":                func(s *site) { os.Remove(s.key) },
		"a directory":         func(s *site) { s.ok(os.Remove(s.key), os.Mkdir(s.key, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := loaded(t, "old.example")
			spoil(s)
			for range 5 {
				s.files.look()
			}
			s.shows("old.example")
			s.says("level=ERROR", 1)
			s.says("give the certificate", 1)
			s.says(" cert="+s.cert+" ", 1)
			if st := s.files.Status(); len(st) != 1 || st[0].Error == "" || st[0].Names[0] != "old.example" || !st[0].NotAfter.Equal(noon.Add(15*24*time.Hour)) {
				t.Errorf("status %+v", st)
			}
			os.Remove(s.key)
			s.put(cert, key)
			s.settle()
			s.shows("new.example")
			if st := s.files.Status(); st[0].Error != "" {
				t.Errorf("status after a good pair: %+v", st)
			}
		})
	}
}

// TestACertificateIsTakenWhenItIsValid, though its files were there before.
func TestACertificateIsTakenWhenItIsValid(t *testing.T) {
	for name, c := range map[string]struct {
		from, taken time.Duration // after noon
	}{
		"when it becomes valid":                    {24 * time.Hour, 24 * time.Hour},
		"when the one before is no longer, either": {20 * 24 * time.Hour, 15*24*time.Hour + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := loaded(t, "old.example")
			s.put(issue(noon.Add(c.from), noon.Add(60*24*time.Hour), "new.example"))
			s.settle()
			s.now = noon.Add(c.taken - time.Second)
			s.files.look()
			s.shows("old.example")
			if st := s.files.Status()[0]; !strings.Contains(st.Error, "which is not now") {
				t.Errorf("a second before: status %+v", st)
			}
			s.now = noon.Add(c.taken)
			s.files.look()
			s.shows("new.example")
			if st := s.files.Status()[0]; st.Error != "" {
				t.Errorf("status %+v", st)
			}
			s.says("level=ERROR", 1)
			s.says("a new certificate is in use", 1)
		})
	}
}

// TestAChangeInProgressIsNotTold has a look fall between the two files.
func TestAChangeInProgressIsNotTold(t *testing.T) {
	s := loaded(t, "old.example")
	cert, key := month("new.example")
	s.write(s.cert, cert)
	s.files.look()
	s.write(s.key, key)
	s.settle()
	s.shows("new.example")
	s.says("level=ERROR", 0)
}

func TestLoadSaysWhichFileIsWrong(t *testing.T) {
	s := newSite(t)
	s.put(month("one.example"))
	gone := Pair{filepath.Join(s.dir, "gone.crt"), filepath.Join(s.dir, "gone.key")}
	if _, err := s.load(gone); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), gone.Cert) || strings.Contains(err.Error(), s.cert) {
		t.Errorf("got %v", err)
	}
	if _, err := Load(Config{}); err == nil {
		t.Error("without certificates: no error")
	}
}

func TestCertificatesThatRunOutAreToldOf(t *testing.T) {
	s := loaded(t, "one.example")
	s.settle()
	s.says("level=", 0) // half a month before
	s.now = noon.Add(13 * 24 * time.Hour)
	s.settle()
	s.settle()
	s.says("runs out soon", 1)
	s.now = noon.Add(16 * 24 * time.Hour)
	s.settle()
	s.says("is not valid", 1)
	// One that has expired is loaded all the same, and replaced by another expired one.
	s.files = s.mustLoad()
	s.put(issue(noon, noon.Add(time.Hour), "two.example"))
	s.settle()
	s.shows("two.example")
}

func TestRunLooksUntilItEnds(t *testing.T) {
	s := newSite(t)
	s.put(month("old.example"))
	f := must.Do(Load(Config{
		Pairs: []Pair{{s.cert, s.key}}, Interval: time.Millisecond, Clock: func() time.Time { return noon }, Logger: slog.New(slog.DiscardHandler),
	}))
	must.Run(t, func(ctx context.Context) error { f.Run(ctx); return nil })
	s.put(month("new.example"))
	for shown(f, "") != "new.example" {
		time.Sleep(time.Millisecond)
	}
}
