package httpfront

import (
	"crypto/ed25519"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/gate/proof"
	"github.com/ropeline/ropeline/httpfront/gate/proof/check"
	"github.com/ropeline/ropeline/node"
)

func newSigner(tb testing.TB) *proof.Signer {
	tb.Helper()
	s, err := proof.New(proof.Config{Issuer: "ropeline", Keys: proof.Keys{
		Signing: proof.PrivateKey{ID: "one", Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// inside admits everybody as one visitor who came in an hour ago.
func inside(node.Pass, bool, time.Time) node.Verdict {
	return node.Verdict{Admit: true, Pass: node.Pass{Visitor: node.VisitorID{5}, AcceptedAt: time.Now().Add(-time.Hour)}}
}

// checker returns what an origin behind f would check proofs with.
func checker(t *testing.T, f *front) *check.Verifier {
	t.Helper()
	v, err := check.New(check.Config{JWKS: []string{f.url(JWKSPath)}, Room: "shop", Issuer: "ropeline", Client: f.client})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheOriginGetsOurProofAndNoOther(t *testing.T) {
	for _, field := range []string{"", "X-Admitted"} {
		name := field
		if name == "" {
			name = proof.Header
		}
		var got http.Header
		origin := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
		f := serve(t, fakeRooms{"/room", newRoom(inside)}, origin, func(c *Config) { c.Proof, c.ProofHeader = newSigner(t), field })
		v := checker(t, f)
		forged := []string{name, "a.b.c", strings.ToUpper(name), "d.e.f", strings.ReplaceAll(name, "-", "_"), "g.h.i"}
		f.get("/room", forged...)
		if values := got.Values(name); len(values) != 1 {
			t.Errorf("%s: proofs %q", name, values)
		} else if c, err := v.Check(t.Context(), values[0]); err != nil || time.Since(c.AdmittedAt).Round(time.Minute) != time.Hour {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		if with := got[http.CanonicalHeaderKey(strings.ReplaceAll(name, "-", "_"))]; len(with) != 0 {
			t.Errorf("%s: with underscores, the visitor's reaches the origin: %q", name, with)
		}
		for _, path := range []string{"/elsewhere", "/"} {
			if f.get(path, forged...); len(got.Values(name)) != 0 {
				t.Errorf("%s: %s, of no room, has proofs %q", name, path, got.Values(name))
			}
		}
		if f.do("OPTIONS", "/room", nil, append(forged, asksFirst...)...); len(got.Values(name)) != 0 {
			t.Errorf("%s: a preflight has proofs %q", name, got.Values(name))
		}
	}
}

func TestWithoutProofsNobodyElsesReachTheOrigin(t *testing.T) {
	var got http.Header
	origin := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	f := serve(t, fakeRooms{"/room", newRoom(inside)}, origin, func(c *Config) { c.ProofHeader = "X-Admitted" })
	f.get("/room", "X-Admitted", "a.b.c", proof.Header, "d.e.f")
	if got.Get("X-Admitted") != "" || got.Get(proof.Header) != "" {
		t.Errorf("the origin got %v", got)
	}
	if a := f.get(JWKSPath); a.Header.Get("Content-Type") == "application/jwk-set+json" {
		t.Error("keys of a front that signs nothing")
	}
}

func TestThePublicKeysAreServed(t *testing.T) {
	signer := newSigner(t)
	f := serve(t, fakeRooms{"/", newRoom(never)}, http.HandlerFunc(echo), func(c *Config) { c.Proof = signer })
	a := f.get(JWKSPath)
	if a.StatusCode != 200 || a.body != string(signer.JWKS()) || a.Header.Get("Content-Type") != "application/jwk-set+json" ||
		a.Header.Get("Cache-Control") != "public, max-age=60" || len(a.Cookies()) != 0 {
		t.Errorf("got %d %v %q", a.StatusCode, a.Header, a.body)
	}
	if head := f.do("HEAD", JWKSPath, nil); head.StatusCode != 200 || head.body != "" {
		t.Errorf("HEAD: %d %q", head.StatusCode, head.body)
	}
	if post := f.do("POST", JWKSPath, nil); post.StatusCode != 429 {
		t.Errorf("POST: %d, want the room's answer", post.StatusCode)
	}
}

func TestJudgeBringsAProof(t *testing.T) {
	f := judges(t, fakeRooms{"/room", newRoom(inside)}, func(c *Config) { c.Proof = newSigner(t) })
	if a := f.Judge(asks("GET", "/room")); a.Proof == "" || a.ProofField != proof.Header {
		t.Errorf("got %+v", a)
	}
	for _, q := range []*Question{asks("GET", "/"), asks("OPTIONS", "/room", asksFirst...)} {
		if a := f.Judge(q); a.Proof != "" || a.ProofField != proof.Header {
			t.Errorf("%s %s: %+v", q.Method, q.Target, a)
		}
	}
}

func TestProofHeaderIsChecked(t *testing.T) {
	for _, name := range []string{"Host", "cookie", "Connection", "Content-Length", "Two Words", "X:", "Transfer-Encoding", "Proxy-X", ""} {
		if isFieldName(name) {
			t.Errorf("%q may hold proofs", name)
		}
	}
}

func BenchmarkProve(b *testing.B) {
	f := judges(b, fakeRooms{}, func(c *Config) { c.Proof = newSigner(b) })
	r, s, p, now := newRequest(), newRoom(nil).Settings(), inside(node.Pass{}, true, time.Time{}).Pass, time.Now()
	f.prove(r, s, &p, now)
	b.ReportAllocs()
	for b.Loop() {
		f.prove(r, s, &p, now)
	}
}
