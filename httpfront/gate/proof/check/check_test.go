package check

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/gate/proof"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func key(id string, n byte) proof.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return proof.PrivateKey{ID: id, Key: ed25519.NewKeyFromSeed(seed)}
}

// verifier returns one that takes proofs of the key "one" for the room "shop".
func verifier(change ...func(*Config)) *Verifier {
	cfg := Config{
		Keys: map[string]ed25519.PublicKey{"one": key("one", 1).Public().Key},
		Room: "shop", Issuer: "ropeline", Logger: slog.New(slog.DiscardHandler),
		now: func() time.Time { return noon },
	}
	for _, c := range change {
		c(&cfg)
	}
	return must.Do(New(cfg))
}

// verifierOf has no keys but those of nodes.
func verifierOf(nodes ...string) *Verifier {
	return verifier(func(cfg *Config) { cfg.Keys, cfg.JWKS = nil, nodes })
}

// sign signs claims as they are, with a type.
func sign(alg jose.SignatureAlgorithm, k any, id, kind string, claims map[string]any) string {
	options := (&jose.SignerOptions{}).WithType(jose.ContentType(kind))
	signer := must.Do(jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: k, KeyID: id}}, options))
	return must.Do(must.Do(signer.Sign(must.Do(json.Marshal(claims)))).CompactSerialize())
}

// signed signs claims that are taken, but for what is changed.
func signed(k proof.PrivateKey, change map[string]any) string {
	return sign(jose.EdDSA, k.Key, k.ID, "JWT", good(change))
}

// good returns claims that are taken, and changes them.
func good(change map[string]any) map[string]any {
	claims := map[string]any{
		"iss": "ropeline", "aud": "shop", "sub": "v", "jti": "t", "iat": noon.Unix(), "exp": noon.Unix() + 60, "admitted_at": noon.Unix() - 100,
	}
	for name, value := range change {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

func TestOnlyGoodProofsAreTaken(t *testing.T) {
	v := verifier()
	one := key("one", 1).Key
	ours := func(change map[string]any) string { return signed(key("one", 1), change) }
	whole := ours(nil)
	header, rest, _ := strings.Cut(whole, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	for what, token := range map[string]string{
		"plain":              whole,
		"a list of rooms":    ours(map[string]any{"aud": []string{"tickets", "shop"}}),
		"within the leeway":  ours(map[string]any{"iat": noon.Unix() - 64, "exp": noon.Unix() - 4}),
		"a clock ahead":      ours(map[string]any{"iat": noon.Unix() + 4, "exp": noon.Unix() + 64}),
		"no time of entry":   ours(map[string]any{"admitted_at": nil}),
		"claims of the next": ours(map[string]any{"something": "new"}),
	} {
		if _, err := v.Check(t.Context(), token); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, token := range map[string]string{
		"nothing":                   "",
		"words":                     "let me in",
		"two dots":                  "..",
		"too long":                  strings.Repeat("a", tokenMax+1),
		"a line end in it":          header + "." + payload[:9] + "\n" + payload[9:] + "." + signature,
		"a line end behind it":      whole + "\r\n",
		"another spelling of it":    header + "." + payload[:len(payload)-1] + "1." + signature,
		"one of its signature":      whole[:len(whole)-1] + "B",
		"no signature":              header + "." + payload + ".",
		"half a signature":          whole[:len(whole)-10],
		"alg none":                  "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + payload + ".",
		"another payload":           header + "." + payload[:len(payload)-2] + "fQ." + signature,
		"another key of the name":   sign(jose.EdDSA, key("one", 2).Key, "one", "JWT", good(nil)),
		"a key that is not known":   sign(jose.EdDSA, one, "two", "JWT", good(nil)),
		"no key id":                 sign(jose.EdDSA, one, "", "JWT", good(nil)),
		"the public key as secret":  sign(jose.HS256, []byte(one.Public().(ed25519.PublicKey)), "one", "JWT", good(nil)),
		"another kind of token":     sign(jose.EdDSA, one, "one", "at+jwt", good(nil)),
		"another room":              ours(map[string]any{"aud": "tickets"}),
		"no room":                   ours(map[string]any{"aud": nil}),
		"another issuer":            ours(map[string]any{"iss": "somebody"}),
		"no issuer":                 ours(map[string]any{"iss": nil}),
		"no subject":                ours(map[string]any{"sub": nil}),
		"past":                      ours(map[string]any{"iat": noon.Unix() - 70, "exp": noon.Unix() - 10}),
		"from the future":           ours(map[string]any{"iat": noon.Unix() + 10, "exp": noon.Unix() + 60}),
		"not yet":                   ours(map[string]any{"nbf": noon.Unix() + 10}),
		"holds for too long":        ours(map[string]any{"exp": noon.Unix() + 61}),
		"holds for ever":            ours(map[string]any{"exp": nil}),
		"made at no time":           ours(map[string]any{"iat": nil}),
		"times that are no numbers": ours(map[string]any{"exp": "tomorrow"}),
	} {
		if c, err := v.Check(t.Context(), token); !errors.Is(err, ErrNoProof) || c != (Claims{}) {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
}

// keyServer is a node that publishes keys.
type keyServer struct {
	*httptest.Server
	keys  atomic.Pointer[[]byte] // nil: it is out of order
	asked atomic.Int64
}

func serveKeys(t *testing.T, keys ...proof.PrivateKey) *keyServer {
	s := &keyServer{}
	s.publish(keys...)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		if set := s.keys.Load(); set != nil {
			w.Write(*set)
			return
		}
		http.Error(w, "out of order", http.StatusInternalServerError)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *keyServer) publish(keys ...proof.PrivateKey) {
	var public []proof.PublicKey
	for _, k := range keys {
		public = append(public, k.Public())
	}
	s.keys.Store(new(must.Do(proof.JWKS(public))))
}

// clock is a time that a test moves.
type clock struct{ after atomic.Int64 }

func (c *clock) now() time.Time { return noon.Add(time.Duration(c.after.Load())) }

func TestKeysAreFetchedWhenTheyAreNeeded(t *testing.T) {
	one, two := key("one", 1), key("two", 2)
	node := serveKeys(t, one)
	var c clock
	v := verifier(func(cfg *Config) { cfg.Keys, cfg.JWKS, cfg.now = nil, []string{node.URL}, c.now })
	expect := func(k proof.PrivateKey, want error, asked int64) {
		t.Helper()
		_, err := v.Check(t.Context(), signed(k, map[string]any{"iat": c.now().Unix(), "exp": c.now().Unix() + 60}))
		if !errors.Is(err, want) || node.asked.Load() != asked {
			t.Errorf("%s: %v, asked %d times, want %v and %d", k.ID, err, node.asked.Load(), want, asked)
		}
	}
	expect(one, nil, 1)
	// Names that are made up have the keys fetched now and then, and not each time.
	for range 10 {
		expect(two, ErrNoProof, 1)
	}
	node.publish(one, two)
	c.after.Store(int64(fetchEvery))
	expect(two, nil, 2)
	// What is at hand is good while no node answers.
	node.keys.Store(nil)
	c.after.Store(int64(time.Hour))
	expect(one, nil, 2)
	expect(two, nil, 2)
	// A key that is not published any more is not taken any more.
	node.publish(two)
	must.OK(v.keys.fetch(t.Context()))
	expect(one, ErrNoProof, 3)
}

func TestAnotherNodeIsAskedForTheKeys(t *testing.T) {
	one := key("one", 1)
	dead, alive := serveKeys(t, one), serveKeys(t, one)
	dead.keys.Store(nil)
	v := verifierOf(dead.URL, alive.URL)
	for range 3 {
		must.OK(v.keys.fetch(t.Context()))
	}
	if dead.asked.Load() != 1 || alive.asked.Load() != 3 {
		t.Errorf("asked %d and %d times, want the one that answers", dead.asked.Load(), alive.asked.Load())
	}
}

func TestWhatIsNoKeySetIsNotTaken(t *testing.T) {
	for what, set := range map[string]string{
		"nothing":          ``,
		"no set":           `{}`,
		"no keys":          `{"keys":[]}`,
		"a page":           `<html>`,
		"too long":         `{"keys":[]` + strings.Repeat(" ", setMax) + `}`,
		"another kind":     `{"keys":[{"kty":"oct","kid":"one","k":"AQID"}]}`,
		"for encryption":   `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"one","use":"enc","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
		"without a name":   `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
		"half of a key":    `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"one","x":"11qYAYKx"}]}`,
		"keys that are no": `{"keys":"one"}`,
	} {
		node := serveKeys(t, key("one", 1))
		node.keys.Store(new([]byte(set)))
		v := verifierOf(node.URL)
		fetched := v.keys.fetch(t.Context())
		if _, err := v.Check(t.Context(), signed(key("one", 1), nil)); fetched == nil || !errors.Is(err, ErrNoKeys) {
			t.Errorf("%s: fetched with %v, checked with %v", what, fetched, err)
		}
	}
}

func TestRunFetchesUntilItsContextEnds(t *testing.T) {
	node := serveKeys(t, key("one", 1))
	v := verifier(func(cfg *Config) { cfg.JWKS, cfg.Refresh = []string{node.URL}, time.Millisecond })
	defer must.Run(t, v.Run)()
	for node.asked.Load() < 3 {
		time.Sleep(time.Millisecond)
	}
}

// answerTo is what a handler says to a request.
func answerTo(h http.Handler, request, body string, fields http.Header) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(request, " ")
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header = fields
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandler(t *testing.T) {
	v := verifier(func(cfg *Config) {
		cfg.Exempt = func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/static/") }
	})
	token := signed(key("one", 1), nil)
	var claims Claims
	h := v.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { claims, _ = FromContext(r.Context()) }))
	const origin, method = "Origin", "Access-Control-Request-Method"
	for what, c := range map[string]struct {
		request, body string
		fields        http.Header
		code          int
		visitor       string
	}{
		"a proof":                {"GET /", "", http.Header{header: {token}}, 200, "v"},
		"none":                   {"GET /", "", nil, 403, ""},
		"a bad one":              {"POST /", "", http.Header{header: {"x"}}, 403, ""},
		"two":                    {"GET /", "", http.Header{header: {token, token}}, 403, ""},
		"exempt":                 {"GET /static/logo.svg", "", nil, 200, ""},
		"exempt, with a bad one": {"GET /static/logo.svg", "", http.Header{header: {"x"}}, 200, ""},
		"not exempt":             {"GET /staticlogo.svg", "", nil, 403, ""},
		"OPTIONS":                {"OPTIONS /", "", nil, 403, ""},
		"a preflight":            {"OPTIONS /", "", http.Header{origin: {"https://a"}, method: {"PUT"}}, 200, ""},
		"without a page":         {"OPTIONS /", "", http.Header{method: {"PUT"}}, 403, ""},
		"without a method":       {"OPTIONS /", "", http.Header{origin: {"https://a"}}, 403, ""},
		"an empty page":          {"OPTIONS /", "", http.Header{origin: {""}, method: {"PUT"}}, 403, ""},
		"an empty method":        {"OPTIONS /", "", http.Header{origin: {"https://a"}, method: {""}}, 403, ""},
		"with a body":            {"OPTIONS /", "x", http.Header{origin: {"https://a"}, method: {"PUT"}}, 403, ""},
		"with an upgrade":        {"OPTIONS /", "", http.Header{origin: {"https://a"}, method: {"PUT"}, "Upgrade": {"h2c"}}, 403, ""},
	} {
		claims = Claims{}
		w := answerTo(h, c.request, c.body, c.fields)
		if w.Code != c.code || claims.Visitor != c.visitor || c.code != 200 && w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: code %d %v, claims %+v", what, w.Code, w.Header(), claims)
		}
	}
	w := answerTo(verifierOf("http://127.0.0.1:1/").Handler(http.NotFoundHandler()), "GET /", "", http.Header{header: {token}})
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("without keys: code %d", w.Code)
	}
}

func TestConfigIsChecked(t *testing.T) {
	_, err := New(Config{JWKS: []string{"ftp://x", "no"}, Keys: map[string]ed25519.PublicKey{"short": {1}}, Refresh: -1})
	for _, want := range []string{"room", "ftp://x", `"no"`, "short", "refresh"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not speak of %s", err, want)
		}
	}
	if _, err := New(Config{Room: "shop"}); err == nil {
		t.Error("a verifier without keys")
	}
}

// FuzzCheck holds that nothing that our key has not signed is taken.
func FuzzCheck(f *testing.F) {
	v := verifier()
	good := signed(key("one", 1), nil)
	f.Add(good)
	f.Add("eyJhbGciOiJub25lIn0..")
	f.Add(good[:40] + "\n" + good[40:])
	f.Add(`{"payload":"","signatures":[{"protected":"","signature":""}]}`)
	f.Add("eyJhbGciOiJFZERTQSIsImtpZCI6Im9uZSIsInR5cCI6IkpXVCJ9.e30.AAAA")
	f.Add(sign(jose.EdDSA, key("one", 2).Key, "one", "JWT", map[string]any{}))
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := v.Check(t.Context(), token); err == nil && token != good {
			t.Errorf("%q is taken", token)
		}
	})
}
