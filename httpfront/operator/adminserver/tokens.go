package adminserver

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
)

// Scope is what somebody may do, as routes of the API say what they need.
type Scope = admin.Scope

// Values of Scope.
const (
	Nothing = admin.Nothing
	Read    = admin.Read
	Write   = admin.Write
)

// MinToken is how many characters a token has at least, MaxToken how many at most.
const (
	MinToken = 16
	MaxToken = 512
)

// Tokens are what those may do who present one. The zero value knows none.
type Tokens struct {
	scopes map[[sha256.Size]byte]Scope
}

// ParseTokens reads the text of a file of tokens: on each line a scope, "read" or "write", and
// a token, and whatever name it has for people. Empty lines, those that begin with #, and a byte order
// mark in front are passed over. Errors name the line and never the token.
func ParseTokens(text string) (*Tokens, error) {
	t := &Tokens{scopes: map[[sha256.Size]byte]Scope{}}
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		scope := map[string]Scope{"read": Read, "write": Write}[fields[0]]
		switch {
		case scope == Nothing:
			return nil, fmt.Errorf("line %d: its first word is to be read or write", i+1)
		case len(fields) < 2:
			return nil, fmt.Errorf("line %d: after %q a token is missing", i+1, fields[0])
		}
		if err := t.Add(fields[1], scope); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if len(t.scopes) == 0 {
		return nil, fmt.Errorf("there is no token in it; want lines such as: write %s", strings.Repeat("x", MinToken))
	}
	return t, nil
}

// Add has a token be good for a scope.
func (t *Tokens) Add(token string, scope Scope) error {
	if len(token) < MinToken || len(token) > MaxToken {
		return fmt.Errorf("the token has %d characters; want %d to %d", len(token), MinToken, MaxToken)
	}
	for i := 0; i < len(token); i++ {
		if token[i] <= ' ' || token[i] > '~' {
			return fmt.Errorf("character %d of the token is none of those that a header field may have", i+1)
		}
	}
	if t.scopes == nil {
		t.scopes = map[[sha256.Size]byte]Scope{}
	}
	sum := sha256.Sum256([]byte(token))
	t.scopes[sum] = max(t.scopes[sum], scope)
	return nil
}

// Scope returns what a token is good for. Which bytes of it are right does not show in the
// time that this takes, since it looks for a hash.
func (t *Tokens) Scope(token string) Scope {
	if t == nil || token == "" {
		return Nothing
	}
	return t.scopes[sha256.Sum256([]byte(token))]
}

// Len returns how many tokens there are.
func (t *Tokens) Len() int {
	if t == nil {
		return 0
	}
	return len(t.scopes)
}
