// Package check is for sites: it checks that a request carries a proof that its visitor
// was let in by a waiting room, so that a site that can be reached past the room does
// not answer those who do.
//
//	verifier, err := check.New(check.Config{
//		JWKS: []string{"http://a1.internal:9081/jwks.json", "http://b1.internal:9081/jwks.json"},
//		Room: "shop",
//	})
//	...
//	go verifier.Run(ctx)
//	http.ListenAndServe(addr, verifier.Handler(shop))
package check

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	header   = "Ropeline-Proof"
	tokenMax = 4 << 10 // bytes; ours have some 400
	lifeMax  = time.Minute
)

// Config says what a Verifier accepts. Room is required, and JWKS or Keys; the zero value
// of everything else means its default.
type Config struct {
	// JWKS are addresses of the keys: http(s)://NODE/.well-known/ropeline/jwks.json, or
	// /jwks.json where the node gives verdicts. They are asked in turn until one
	// answers. Give those of several nodes.
	JWKS []string
	// Keys are taken beside those of JWKS, by id.
	Keys map[string]ed25519.PublicKey
	// Room is the name of the room that a visitor has to be let in by.
	Room string
	// Issuer is who has to have made a proof. Empty is anybody with a key.
	Issuer string
	// Exempt returns true of requests that Handler lets pass without a proof, beside
	// preflights: those that the room's rules let pass, those at paths that are in no
	// room, health checks. A proof says that a room has let a visitor in, and they come
	// without one. Look at method, host and path, as the rules do, and not at what whoever
	// goes past the room may write. It is called on every request, from many goroutines
	// at once. Nil means none.
	Exempt func(*http.Request) bool
	// Header is the field that proofs come in. Default "Ropeline-Proof".
	Header string
	// Leeway is how much the clocks of nodes and this site may differ. Default 5 s;
	// negative is none. Longer: a copied proof is good for so much longer.
	Leeway time.Duration
	// Refresh is how often Run fetches the keys. Default 1 min. Nodes publish a key
	// for some minutes before they use it, so it should not be much longer.
	Refresh time.Duration
	// Client fetches the keys. Default: one that gives up after 5 s.
	Client *http.Client
	// Logger is told when keys cannot be fetched. The default is slog.Default().
	Logger *slog.Logger

	now func() time.Time // for tests
}

// Claims are what a proof says.
type Claims struct {
	Issuer     string
	Room       string
	Visitor    string    // the same for as long as a visitor's session lasts
	ID         string    // of the token; several requests of a visitor carry the same
	IssuedAt   time.Time // in whole seconds, as all times here
	Expires    time.Time
	AdmittedAt time.Time // zero: not told
}

// Verifier checks proofs. It may be used from many goroutines at once.
type Verifier struct {
	cfg  Config
	keys *keys
}

// ErrNoProof is wrapped by all errors about a request or token: it does not prove that
// its visitor was let in.
var ErrNoProof = errors.New("no proof of admission")

// ErrNoKeys is the error where there are no keys to check with: no address has answered
// yet.
var ErrNoKeys = errors.New("no keys to check proofs of admission with")

// New checks cfg and returns a Verifier. It fetches nothing yet.
func New(cfg Config) (*Verifier, error) {
	var errs []error
	if cfg.Room == "" {
		errs = append(errs, errors.New("no room given"))
	}
	if len(cfg.JWKS) == 0 && len(cfg.Keys) == 0 {
		errs = append(errs, errors.New("neither addresses of keys given nor keys"))
	}
	for _, addr := range cfg.JWKS {
		if u, err := url.Parse(addr); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			errs = append(errs, fmt.Errorf("%q is no address of keys: want http:// or https://, a host and a path", addr))
		}
	}
	for id, key := range cfg.Keys {
		if len(key) != ed25519.PublicKeySize {
			errs = append(errs, fmt.Errorf("key %q is not an Ed25519 key", id))
		}
	}
	if cfg.Refresh < 0 {
		errs = append(errs, fmt.Errorf("refresh is %v: want more than 0, or 0 for the default", cfg.Refresh))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("check proofs: %w", err)
	}
	cfg.complete()
	return &Verifier{cfg: cfg, keys: newKeys(&cfg)}, nil
}

func (c *Config) complete() {
	c.Header = cmp.Or(c.Header, header)
	c.Leeway = max(0, cmp.Or(c.Leeway, 5*time.Second))
	c.Refresh = cmp.Or(c.Refresh, time.Minute)
	c.Client = cmp.Or(c.Client, &http.Client{Timeout: 5 * time.Second})
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.now == nil {
		c.now = time.Now
	}
}

// Run fetches the keys at once and then every Refresh, until ctx ends. It returns nil.
// Without it, keys are fetched by the requests that need them.
func (v *Verifier) Run(ctx context.Context) error {
	if len(v.cfg.JWKS) == 0 {
		<-ctx.Done()
		return nil
	}
	ticker := time.Tick(v.cfg.Refresh)
	for {
		if err := v.keys.fetch(ctx); err != nil && ctx.Err() == nil {
			v.cfg.Logger.Warn("keys of the waiting room cannot be fetched; those at hand are used on", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker:
		}
	}
}

// Check returns what a token says. The error wraps ErrNoProof, or is ErrNoKeys.
func (v *Verifier) Check(ctx context.Context, token string) (Claims, error) {
	// The library skips line ends, and the last bits of a part that say nothing, which would give one token many spellings.
	loose := func(part string) bool { _, err := base64.RawURLEncoding.Strict().DecodeString(part); return err != nil }
	if len(token) > tokenMax || strings.ContainsAny(token, "\r\n") || slices.ContainsFunc(strings.Split(token, "."), loose) {
		return Claims{}, fmt.Errorf("%w: a token of %d bytes, want parts in base64url on one line, %d bytes at most", ErrNoProof, len(token), tokenMax)
	}
	t, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrNoProof, err)
	}
	if kind, _ := t.Headers[0].ExtraHeaders[jose.HeaderType].(string); kind != "JWT" {
		return Claims{}, fmt.Errorf("%w: a token of type %q", ErrNoProof, kind)
	}
	key, err := v.keys.find(ctx, t.Headers[0].KeyID)
	if err != nil {
		return Claims{}, err
	}
	var c struct {
		jwt.Claims
		AdmittedAt *jwt.NumericDate `json:"admitted_at"`
	}
	if err := t.Claims(key, &c); err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrNoProof, err)
	}
	if err := v.validate(&c.Claims); err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrNoProof, err)
	}
	return Claims{
		Issuer: c.Issuer, Room: v.cfg.Room, Visitor: c.Subject, ID: c.ID,
		IssuedAt: c.IssuedAt.Time(), Expires: c.Expiry.Time(), AdmittedAt: c.AdmittedAt.Time(),
	}, nil
}

// validate checks what the library takes as optional, too.
func (v *Verifier) validate(c *jwt.Claims) error {
	switch {
	case c.Expiry == nil || c.IssuedAt == nil || c.Subject == "":
		return errors.New("exp, iat or sub is missing")
	case c.Expiry.Time().Sub(c.IssuedAt.Time()) > lifeMax:
		return errors.New("it holds for too long")
	}
	return c.ValidateWithLeeway(jwt.Expected{
		Issuer: v.cfg.Issuer, AnyAudience: jwt.Audience{v.cfg.Room}, Time: v.cfg.now(),
	}, v.cfg.Leeway)
}

// CheckRequest returns what the proof of a request says. The error is as Check's.
func (v *Verifier) CheckRequest(r *http.Request) (Claims, error) {
	values := r.Header.Values(v.cfg.Header)
	if len(values) != 1 {
		return Claims{}, fmt.Errorf("%w: %d fields %s", ErrNoProof, len(values), v.cfg.Header)
	}
	return v.Check(r.Context(), values[0])
}

type claimsKey struct{}

// FromContext returns what the proof of a request says that Handler has let pass.
func FromContext(ctx context.Context) (Claims, bool) {
	c, ok := ctx.Value(claimsKey{}).(Claims)
	return c, ok
}

// Handler lets requests with a proof pass to next, and answers others with 403; with 503
// while there are no keys. Preflights without a body pass: browsers send them without anything
// that could prove who they are. So do those that Config.Exempt names; FromContext says nothing
// of either, whatever they carry.
func (v *Verifier) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPreflight(r) || v.cfg.Exempt != nil && v.cfg.Exempt(r) {
			next.ServeHTTP(w, r)
			return
		}
		c, err := v.CheckRequest(r)
		switch {
		case errors.Is(err, ErrNoKeys):
			w.Header().Set("Retry-After", "5")
			refuse(w, http.StatusServiceUnavailable, "Please try again in a moment.")
		case err != nil:
			refuse(w, http.StatusForbidden, "Please come through the waiting room.")
		default:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), claimsKey{}, c)))
		}
	})
}

func refuse(w http.ResponseWriter, code int, line string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, line, code)
}

// isPreflight reports whether a browser asks whether a page of another site may ask (Fetch,
// "CORS-preflight fetch"). Anybody can send OPTIONS, and many handlers answer it as GET.
func isPreflight(r *http.Request) bool {
	saysOnce := func(name string) bool { v := r.Header.Values(name); return len(v) == 1 && v[0] != "" }
	return r.Method == http.MethodOptions && r.ContentLength == 0 && r.Header.Get("Upgrade") == "" &&
		saysOnce("Origin") && saysOnce("Access-Control-Request-Method")
}
