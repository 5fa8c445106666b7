// Package proof makes tokens by which a site knows that a visitor was let in, so that
// nobody reaches it past the waiting room. Package proof/check is for sites.
//
// A token is a JWT (RFC 7519) signed with Ed25519 (RFC 8037). It says
//
//	iss          who has made it
//	aud          the name of the room
//	sub          the visitor, as a random text that says nothing about a person
//	iat, exp     when it was made, and up to when it holds: a minute at most
//	jti          the token itself
//	admitted_at  when the visitor was let in, in seconds since 1970
//
// Signing takes far longer than all else that an admitted request costs, so a token
// serves all requests that a visitor makes within a part of its life.
//
// Public keys are published as a JWK set (RFC 7517). Sites fetch it now and then, so a
// key has to be published for some minutes before anything is signed with it, and for
// [MaxLifetime] after.
package proof

import (
	"cmp"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// Header is the field that a token travels in if nothing else is said.
	Header = "Ropeline-Proof"

	// MaxLifetime is the longest that a token may hold. Nothing calls a token back.
	MaxLifetime = time.Minute

	// MaxKeys is how many public keys are published at most.
	MaxKeys = 16
)

// PrivateKey is what tokens are signed with.
type PrivateKey struct {
	ID  string // names it in tokens and in the JWK set; empty: KeyID of its public half
	Key ed25519.PrivateKey
}

// PublicKey is what tokens are checked against.
type PublicKey struct {
	ID  string // empty: KeyID of it
	Key ed25519.PublicKey
}

// Public returns the public half of a key.
func (k PrivateKey) Public() PublicKey {
	return PublicKey{k.ID, k.Key.Public().(ed25519.PublicKey)}
}

// KeyID returns the name that a key has by itself: its thumbprint (RFC 7638), of SHA-256.
func KeyID(key ed25519.PublicKey) string {
	sum, err := (&jose.JSONWebKey{Key: key}).Thumbprint(crypto.SHA256)
	if err != nil {
		panic("proof: an Ed25519 key has no thumbprint: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

// Keys are those of one moment. Between Signing and its predecessor both are published.
type Keys struct {
	Signing PrivateKey
	// Also are published besides the public half of Signing: those that others still
	// sign with, and those that will be signed with.
	Also []PublicKey
}

// Config says how a Signer signs. Issuer and Keys are required.
type Config struct {
	// Issuer is the iss of tokens, such as the address of the service. Not empty.
	Issuer string
	// Lifetime is how long a token holds, from 10 s to MaxLifetime. Zero is
	// MaxLifetime. Shorter: less time for who copies one, more signing. It has to be
	// longer than clocks of nodes and sites differ.
	Lifetime time.Duration
	// Keys may be replaced by Rotate.
	Keys Keys
	// Tokens is how many tokens are kept at most, of some 400 bytes each; with more
	// visitors than that, some sign more often. Zero is 65,536.
	Tokens int
}

// Signer makes tokens. It may be used from many goroutines at once.
type Signer struct {
	issuer   string
	lifetime time.Duration
	limit    int
	now      atomic.Pointer[generation]
}

// generation is a set of keys, and what was signed with it.
type generation struct {
	signer jose.Signer
	jwks   []byte
	cache  *cache

	signatures atomic.Uint64 // made so far
}

// New checks cfg and returns a Signer.
func New(cfg Config) (*Signer, error) {
	if cfg.Issuer == "" {
		return nil, errors.New("proof: no issuer given")
	}
	cfg.Lifetime = cmp.Or(cfg.Lifetime, MaxLifetime)
	if cfg.Lifetime < 10*time.Second || cfg.Lifetime > MaxLifetime {
		return nil, fmt.Errorf("proof: lifetime is %v: want 10s to %v", cfg.Lifetime, MaxLifetime)
	}
	if cfg.Tokens < 0 {
		return nil, fmt.Errorf("proof: tokens is %d: want more than 0, or 0 for the default", cfg.Tokens)
	}
	cfg.Tokens = cmp.Or(cfg.Tokens, 1<<16)
	s := &Signer{issuer: cfg.Issuer, lifetime: cfg.Lifetime, limit: cfg.Tokens}
	return s, s.Rotate(cfg.Keys)
}

// Rotate replaces the keys. Nothing that was signed before is used again. It fails if a
// key is not in order, and changes nothing then.
func (s *Signer) Rotate(keys Keys) error {
	if len(keys.Signing.Key) != ed25519.PrivateKeySize {
		return errors.New("proof: the key to sign with is not an Ed25519 key")
	}
	keys.Signing.ID = cmp.Or(keys.Signing.ID, KeyID(keys.Signing.Public().Key))
	jwks, err := JWKS(append([]PublicKey{keys.Signing.Public()}, keys.Also...))
	if err != nil {
		return err
	}
	key := jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: keys.Signing.Key, KeyID: keys.Signing.ID}}
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return fmt.Errorf("proof: %w", err)
	}
	s.now.Store(&generation{signer: signer, jwks: jwks, cache: newCache(s.limit, s.lifetime/2)})
	return nil
}

// JWKS returns the JWK set that is to be published now. Nobody changes it.
func (s *Signer) JWKS() []byte { return s.now.Load().jwks }

// JWKS returns keys as a JWK set: the bytes of application/jwk-set+json. A key that is
// given twice is in it once.
func JWKS(keys []PublicKey) ([]byte, error) {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	byID := map[string]ed25519.PublicKey{}
	for _, k := range keys {
		if len(k.Key) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("proof: public key %q is not an Ed25519 key", k.ID)
		}
		k.ID = cmp.Or(k.ID, KeyID(k.Key))
		if other, ok := byID[k.ID]; ok {
			if !other.Equal(k.Key) {
				return nil, fmt.Errorf("proof: two keys have the id %q", k.ID)
			}
			continue
		}
		byID[k.ID] = k.Key
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Key, KeyID: k.ID, Algorithm: string(jose.EdDSA), Use: "sig"})
	}
	if len(set.Keys) == 0 || len(set.Keys) > MaxKeys {
		return nil, fmt.Errorf("proof: %d public keys: want 1 to %d", len(set.Keys), MaxKeys)
	}
	b, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("proof: %w", err)
	}
	return append(b, '\n'), nil
}

// Subject is what a token is about.
type Subject struct {
	Room       string   // its name
	Visitor    [16]byte // the id of the visitor
	AdmittedAt time.Time
}

// claims are those that the standard does not know.
type claims struct {
	jwt.Claims
	AdmittedAt *jwt.NumericDate `json:"admitted_at,omitempty"`
}

// Token returns a token about sub that holds for at least half of its lifetime from now
// on. It takes as long as signing where none was made lately.
func (s *Signer) Token(sub Subject, now time.Time) (string, error) {
	g := s.now.Load()
	k := cacheKey{sub.Room, sub.Visitor}
	if token, ok := g.cache.get(k, now); ok {
		return token, nil
	}
	token, err := s.sign(g, sub, now)
	if err == nil {
		g.cache.put(k, token, now)
	}
	return token, err
}

func (s *Signer) sign(g *generation, sub Subject, now time.Time) (string, error) {
	c := claims{Claims: jwt.Claims{
		Issuer:   s.issuer,
		Subject:  base64.RawURLEncoding.EncodeToString(sub.Visitor[:]),
		Audience: jwt.Audience{sub.Room},
		IssuedAt: jwt.NewNumericDate(now),
		Expiry:   jwt.NewNumericDate(now.Add(s.lifetime)),
		ID:       rand.Text(),
	}}
	if !sub.AdmittedAt.IsZero() {
		c.AdmittedAt = jwt.NewNumericDate(sub.AdmittedAt)
	}
	g.signatures.Add(1)
	payload, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("proof: %w", err)
	}
	// Not by jwt.Signed, which takes the claims apart and puts them together again.
	signed, err := g.signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("proof: %w", err)
	}
	return signed.CompactSerialize()
}
