package proof_test

import (
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/gate/proof"
	"github.com/ropeline/ropeline/httpfront/gate/proof/check"
)

func key(id string, n byte) proof.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return proof.PrivateKey{ID: id, Key: ed25519.NewKeyFromSeed(seed)}
}

func signer(change ...func(*proof.Config)) *proof.Signer {
	cfg := proof.Config{Issuer: "https://ropeline.example", Keys: proof.Keys{Signing: key("one", 1)}}
	for _, c := range change {
		c(&cfg)
	}
	return must.Do(proof.New(cfg))
}

func token(s *proof.Signer, sub proof.Subject, now time.Time) string {
	return must.Do(s.Token(sub, now))
}

func visitor(n int) proof.Subject {
	return proof.Subject{Room: "shop", Visitor: [16]byte{byte(n), byte(n >> 8), 7}, AdmittedAt: time.Unix(1_800_000_000, 0)}
}

func TestATokenSaysWhoWasLetIn(t *testing.T) {
	s := signer()
	v := must.Do(check.New(check.Config{Keys: map[string]ed25519.PublicKey{"one": key("one", 1).Public().Key}, Room: "shop", Issuer: "https://ropeline.example"}))
	now := time.Now()
	got := must.Do(v.Check(t.Context(), token(s, visitor(3), now)))
	if got.Room != "shop" || got.Issuer != "https://ropeline.example" || got.Visitor != "AwAHAAAAAAAAAAAAAAAAAA" || got.ID == "" ||
		!got.AdmittedAt.Equal(time.Unix(1_800_000_000, 0)) || got.IssuedAt.Unix() != now.Unix() || got.Expires.Sub(got.IssuedAt) != time.Minute {
		t.Errorf("got %+v", got)
	}
}

func TestATokenServesForHalfOfItsLife(t *testing.T) {
	s := signer(func(c *proof.Config) { c.Lifetime = 40 * time.Second })
	now := time.Now()
	first := token(s, visitor(1), now)
	for _, after := range []time.Duration{0, time.Second, 20*time.Second - 1} {
		if token(s, visitor(1), now.Add(after)) != first {
			t.Errorf("another token %v after the first", after)
		}
	}
	second := token(s, visitor(1), now.Add(20*time.Second))
	elsewhere := visitor(1)
	elsewhere.Room = "tickets"
	if second == first || token(s, visitor(2), now) == first || token(s, elsewhere, now) == first {
		t.Error("a token is used for longer than half of its life, of two visitors, or for two rooms")
	}
	if early := token(s, visitor(1), now.Add(-time.Hour)); early == first || early == second {
		t.Error("a token from the future is used after the clock was set back")
	}
}

// TestTokensAreBounded has far more visitors than tokens are kept for, and looks whether
// the newest still have theirs.
func TestTokensAreBounded(t *testing.T) {
	s := signer(func(c *proof.Config) { c.Tokens = 256 })
	now := time.Now()
	for n := range 2000 {
		first := token(s, visitor(n), now)
		if token(s, visitor(n), now) != first {
			t.Fatal("a token was not kept")
		}
	}
	kept := 0
	for n := range 2000 {
		before := proof.Signatures(s)
		token(s, visitor(n), now)
		if proof.Signatures(s) == before {
			kept++
		}
	}
	if kept > 256 {
		t.Errorf("%d tokens are kept, want 256 at most", kept)
	}
}

func TestRotation(t *testing.T) {
	s := signer()
	now := time.Now()
	old := token(s, visitor(1), now)
	next := key("two", 2)
	rotate := func(signing, also proof.PrivateKey) error {
		return s.Rotate(proof.Keys{Signing: signing, Also: []proof.PublicKey{also.Public()}})
	}
	must.OK(rotate(key("one", 1), next))
	publishes(t, s, "one", "two") // before it is used
	must.OK(rotate(next, key("one", 1)))
	if token(s, visitor(1), now) == old {
		t.Error("what the last key has signed is used on")
	}
	publishes(t, s, "two", "one")
	if err := rotate(next, key("two", 3)); err == nil {
		t.Error("two keys of one id are taken")
	}
	publishes(t, s, "two", "one")
}

// publishes expects keys of these ids in the JWK set.
func publishes(t *testing.T, s *proof.Signer, want ...string) {
	t.Helper()
	var ids []string
	var set struct {
		Keys []map[string]string `json:"keys"`
	}
	must.OK(json.Unmarshal(s.JWKS(), &set))
	for _, k := range set.Keys {
		if k["kty"] != "OKP" || k["crv"] != "Ed25519" || k["use"] != "sig" || k["alg"] != "EdDSA" || k["x"] == "" || k["d"] != "" {
			t.Errorf("key %v", k)
		}
		ids = append(ids, k["kid"])
	}
	if !slices.Equal(ids, want) {
		t.Errorf("published %q, want %q", ids, want)
	}
}

func TestKeysHaveNamesByThemselves(t *testing.T) {
	s := signer(func(c *proof.Config) { c.Keys.Signing = key("", 1) })
	id := proof.KeyID(key("", 1).Public().Key)
	publishes(t, s, id)
	if len(id) != 43 {
		t.Errorf("the id is %q", id)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for what, change := range map[string]func(*proof.Config){
		"issuer":   func(c *proof.Config) { c.Issuer = "" },
		"lifetime": func(c *proof.Config) { c.Lifetime = 61 * time.Second },
		"tokens":   func(c *proof.Config) { c.Tokens = -1 },
		"key":      func(c *proof.Config) { c.Keys = proof.Keys{} },
		"Also":     func(c *proof.Config) { c.Keys.Also = make([]proof.PublicKey, 1) },
	} {
		cfg := proof.Config{Issuer: "x", Keys: proof.Keys{Signing: key("one", 1)}}
		change(&cfg)
		if _, err := proof.New(cfg); err == nil || !strings.Contains(err.Error(), strings.ToLower(what[:3])) && what != "Also" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
