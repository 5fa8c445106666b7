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
	noError(tb, err)
	return s
}

// inside admits everybody as one visitor who came in an hour ago.
func inside(node.Pass, bool, time.Time) node.Verdict {
	return node.Verdict{Admit: true, Pass: node.Pass{Visitor: node.VisitorID{5}, AcceptedAt: time.Now().Add(-time.Hour)}}
}

func TestTheOriginGetsOurProofAndNoOther(t *testing.T) {
	for field, name := range map[string]string{"": proof.Header, "X-Admitted": "X-Admitted"} {
		var got http.Header
		origin := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
		f := serve(t, fakeRooms{"/room", newRoom(inside)}, origin, func(c *Config) { c.Proof, c.ProofHeader = newSigner(t), field })
		v := must(check.New(check.Config{JWKS: []string{f.url(JWKSPath)}, Room: "shop", Issuer: "ropeline", Client: f.client}))
		forged := []string{name, "a.b.c", strings.ToUpper(name), "d.e.f", strings.ReplaceAll(name, "-", "_"), "g.h.i"}
		f.get("/room", forged...)
		if values := got.Values(name); len(values) != 1 {
			t.Errorf("%s: proofs %q", name, values)
		} else if c, err := v.Check(t.Context(), values[0]); err != nil || time.Since(c.AdmittedAt).Round(time.Minute) != time.Hour {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		equal(t, "the visitor's own with underscores", got.Get(strings.ReplaceAll(name, "-", "_")), "")
		for _, path := range []string{"/elsewhere", "/"} {
			f.get(path, forged...)
			equal(t, "a proof for "+path+", of no room", got.Get(name), "")
		}
		f.do("OPTIONS", "/room", nil, append(forged, asksFirst...)...)
		equal(t, "a proof for a preflight", got.Get(name), "")
	}
}

func TestWithoutProofsNobodyElsesReachTheOrigin(t *testing.T) {
	var got http.Header
	origin := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	f := serve(t, fakeRooms{"/room", newRoom(inside)}, origin, func(c *Config) { c.ProofHeader = "X-Admitted" })
	f.get("/room", "X-Admitted", "a.b.c", proof.Header, "d.e.f")
	equal(t, "what the origin got", got.Get("X-Admitted")+got.Get(proof.Header), "")
	lacks(t, "a front that signs nothing", f.get(JWKSPath).text(), "application/jwk-set+json")
}

func TestThePublicKeysAreServed(t *testing.T) {
	signer := newSigner(t)
	f := serve(t, fakeRooms{"/", newRoom(never)}, http.HandlerFunc(echo), func(c *Config) { c.Proof = signer })
	a := f.get(JWKSPath).is(t, 200, "\r\nContent-Type: application/jwk-set+json\r\n", "\r\nCache-Control: public, max-age=60\r\n")
	equal(t, "the keys", a.body, string(signer.JWKS()))
	lacks(t, "the keys", a.text(), "Set-Cookie")
	equal(t, "the body for HEAD", f.do("HEAD", JWKSPath, nil).is(t, 200).body, "")
	f.do("POST", JWKSPath, nil).is(t, 429) // the room's answer
}

func TestJudgeBringsAProof(t *testing.T) {
	f := judges(t, fakeRooms{"/room", newRoom(inside)}, func(c *Config) { c.Proof = newSigner(t) })
	for of, want := range map[*Question]bool{asks("GET", "/room"): true, asks("GET", "/"): false, asks("OPTIONS", "/room", asksFirst...): false} {
		a := f.Judge(of)
		equal(t, of.Method+" "+of.Target+" brings a proof", a.Proof != "", want)
		equal(t, "its field", a.ProofField, proof.Header)
	}
}

func TestProofHeaderIsChecked(t *testing.T) {
	for _, name := range []string{"Host", "cookie", "Connection", "Content-Length", "Two Words", "X:", "Transfer-Encoding", "Proxy-X", ""} {
		equal(t, name+" may hold proofs", isFieldName(name), false)
	}
}
