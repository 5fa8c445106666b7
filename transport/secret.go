package transport

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

const (
	secretPrefix   = "ropeline-secret-v1:" // of one that replaces none
	nextPrefix     = "ropeline-secret-v2:" // of one that replaces another
	secretChecksum = 4                     // bytes

	// MaxSecrets is how many secrets a cluster has at most while one replaces another.
	MaxSecrets = 4
)

// Secret is the one thing that the nodes of a cluster share: whoever has it
// is a member and can make certificates for any node. Printing it with any
// verb, or logging it, hides it; [Secret.Text] alone gives it away. (Package
// fmt cannot hide it inside an unexported field of another struct.) The zero
// value is no secret and every use of it fails.
type Secret struct {
	key  [32]byte
	line [32]byte // what Lasting derives from, of one that replaces another; else zero
}

// NewSecret draws a fresh secret.
func NewSecret() Secret {
	var s Secret
	rand.Read(s.key[:]) // never fails: crypto/rand ends the process instead
	return s
}

// Next draws a fresh secret that can replace s: what Lasting derives stays the same.
func (s Secret) Next() Secret {
	next := NewSecret()
	next.line = s.lasting()
	return next
}

// ParseSecret reads the text form. Surrounding white space is allowed, since
// the text usually comes out of a file.
func ParseSecret(text string) (Secret, error) {
	var s Secret
	parts := [][]byte{s.key[:]}
	body, ok := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	if !ok {
		if body, ok = strings.CutPrefix(strings.TrimSpace(text), nextPrefix); !ok {
			return Secret{}, fmt.Errorf("secret does not start with %q", secretPrefix)
		}
		parts = append(parts, s.line[:])
	}
	size := secretChecksum
	for _, p := range parts {
		size += len(p)
	}
	if want := base64.RawURLEncoding.EncodedLen(size); len(body) != want {
		return Secret{}, fmt.Errorf("secret has %d characters after the prefix, want %d: it was cut or something was added", len(body), want)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || len(raw) != size { // line breaks are skipped in decoding
		return Secret{}, errors.New("secret has a character that does not belong there")
	}
	for _, p := range parts {
		raw = raw[copy(p, raw):]
	}
	sum := s.checksum()
	if subtle.ConstantTimeCompare(sum[:], raw) != 1 {
		return Secret{}, errors.New("secret has a wrong checksum: a character was mistyped")
	}
	if s.key == [32]byte{} || len(parts) > 1 && s.line == [32]byte{} {
		return Secret{}, errors.New("secret is all zeros")
	}
	return s, nil
}

// ParseSecrets reads a file of secrets, one a line, the newest first. Empty lines, those that
// begin with "#", and a byte order mark in front are skipped. There are MaxSecrets at most, each once, and all
// replace one another.
func ParseSecrets(text string) ([]Secret, error) {
	var all []Secret
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		s, err := ParseSecret(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		case slices.Contains(all, s):
			return nil, fmt.Errorf("line %d: the secret stands there twice; keep one", i+1)
		case len(all) == MaxSecrets:
			return nil, fmt.Errorf("line %d: more than %d secrets; take those out that no node uses", i+1, MaxSecrets)
		case len(all) > 0 && s.lasting() != all[0].lasting():
			return nil, fmt.Errorf("line %d: neither of this secret and the first was made to replace the other", i+1)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no secret: want a line that starts with %q", secretPrefix)
	}
	return all, nil
}

// Text returns the form that [ParseSecret] reads: a prefix with the version,
// then key, line and checksum.
func (s Secret) Text() string {
	sum := s.checksum()
	if s.line == [32]byte{} {
		return secretPrefix + base64.RawURLEncoding.EncodeToString(append(s.key[:], sum[:]...))
	}
	return nextPrefix + base64.RawURLEncoding.EncodeToString(slices.Concat(s.key[:], s.line[:], sum[:]))
}

// SecretID names a secret without telling anything about it.
type SecretID [4]byte

// String returns the id as eight hexadecimal digits.
func (id SecretID) String() string { return hex.EncodeToString(id[:]) }

// ID returns the name of a secret, which every node gives it alike.
func (s Secret) ID() SecretID { return SecretID(s.Derive("secret id", len(SecretID{}))) }

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
	return derive(s.key, label, n)
}

// Lasting is Derive for what has to outlast the secret: the bytes are the same for all
// secrets that replace one another. They are no secret to who had any of them.
func (s Secret) Lasting(label string, n int) []byte {
	if s.IsZero() {
		panic("transport: Lasting on a zero Secret")
	}
	return derive(s.lasting(), label, n)
}

// lasting returns what all secrets that replace one another have in common.
func (s Secret) lasting() [32]byte {
	if s.line != [32]byte{} {
		return s.line
	}
	return [32]byte(s.Derive("lasting", 32))
}

func derive(from [32]byte, label string, n int) []byte {
	key, err := hkdf.Key(sha256.New, from[:], []byte("ropeline v1"), label, n)
	if err != nil {
		panic(fmt.Sprintf("transport: derive %q, %d bytes: %v", label, n, err))
	}
	return key
}

// checksum finds typing errors. It is a hash under its own prefix, so that it
// gives no part of any derived key away.
func (s Secret) checksum() [secretChecksum]byte {
	of := append([]byte("ropeline secret checksum:"), s.key[:]...)
	if s.line != [32]byte{} {
		of = append(of, s.line[:]...)
	}
	sum := sha256.Sum256(of)
	return [secretChecksum]byte(sum[:secretChecksum])
}
