package transport

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

const (
	secretPrefix   = "ropeline-secret-v1:"
	secretChecksum = 4 // bytes
)

// Secret is the one thing that the nodes of a cluster share: whoever has it
// is a member and can make certificates for any node. Printing it with any
// verb, or logging it, hides it; [Secret.Text] alone gives it away. (Package
// fmt cannot hide it inside an unexported field of another struct.) The zero
// value is no secret and every use of it fails.
type Secret struct{ key [32]byte }

// NewSecret draws a fresh secret.
func NewSecret() Secret {
	var s Secret
	rand.Read(s.key[:]) // never fails: crypto/rand ends the process instead
	return s
}

// ParseSecret reads the text form. Surrounding white space is allowed, since
// the text usually comes out of a file.
func ParseSecret(text string) (Secret, error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	if !ok {
		return Secret{}, fmt.Errorf("secret does not start with %q", secretPrefix)
	}
	var s Secret
	want := base64.RawURLEncoding.EncodedLen(len(s.key) + secretChecksum)
	if len(body) != want {
		return Secret{}, fmt.Errorf("secret has %d characters after the prefix, want %d: it was cut or something was added", len(body), want)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || len(raw) != len(s.key)+secretChecksum { // line breaks are skipped in decoding
		return Secret{}, errors.New("secret has a character that does not belong there")
	}
	copy(s.key[:], raw)
	sum := s.checksum()
	if subtle.ConstantTimeCompare(sum[:], raw[len(s.key):]) != 1 {
		return Secret{}, errors.New("secret has a wrong checksum: a character was mistyped")
	}
	if s.IsZero() {
		return Secret{}, errors.New("secret is all zeros")
	}
	return s, nil
}

// Text returns the form that [ParseSecret] reads: a prefix with the version,
// then key and checksum.
func (s Secret) Text() string {
	sum := s.checksum()
	return secretPrefix + base64.RawURLEncoding.EncodeToString(append(s.key[:], sum[:]...))
}

// IsZero reports whether s is no secret at all.
func (s Secret) IsZero() bool { return s == Secret{} }

// String hides the secret.
func (s Secret) String() string { return "secret(hidden)" }

// Format hides the secret from every verb, %d and %#v among them.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Derive returns n bytes (at most 8160) that depend on the secret and on
// label, and that tell nothing about either the secret or the bytes of
// another label. The same call gives the same bytes on every node. It panics
// when s is zero or n out of range, since a key made of nothing would work.
func (s Secret) Derive(label string, n int) []byte {
	if s.IsZero() {
		panic("transport: Derive on a zero Secret")
	}
	key, err := hkdf.Key(sha256.New, s.key[:], []byte("ropeline v1"), label, n)
	if err != nil {
		panic(fmt.Sprintf("transport: Derive(%q, %d): %v", label, n, err))
	}
	return key
}

// checksum finds typing errors. It is a hash under its own prefix, so that it
// gives no part of any derived key away.
func (s Secret) checksum() [secretChecksum]byte {
	sum := sha256.Sum256(append([]byte("ropeline secret checksum:"), s.key[:]...))
	return [secretChecksum]byte(sum[:secretChecksum])
}
