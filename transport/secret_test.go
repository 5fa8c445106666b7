package transport

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretText(t *testing.T) {
	s := NewSecret()
	got, err := ParseSecret("\n " + s.Text() + "\n")
	if err != nil || got != s {
		t.Fatalf("ParseSecret(Text): got %v, %v", got, err)
	}
	text := s.Text()
	swapped := []byte(text)
	i := len(secretPrefix) + 5
	swapped[i] = map[bool]byte{true: 'B', false: 'A'}[swapped[i] == 'A']
	var zero Secret
	for name, tc := range map[string]struct{ text, want string }{
		"empty":       {"", "does not start"},
		"prefix":      {strings.ToUpper(text), "does not start"},
		"cut":         {text[:len(text)-1], "characters after the prefix"},
		"longer":      {text + "A", "characters after the prefix"},
		"bad letter":  {text[:len(text)-1] + "*", "does not belong"},
		"mistyped":    {string(swapped), "checksum"},
		"zero secret": {zero.Text(), "all zeros"},
	} {
		if _, err := ParseSecret(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want one about %q", name, err, tc.want)
		} else if len(tc.text) > 30 && strings.Contains(err.Error(), tc.text[len(secretPrefix)+1:]) {
			t.Errorf("%s: the error gives the secret away: %v", name, err)
		}
	}
}

func TestSecretIsNeverPrinted(t *testing.T) {
	s := NewSecret()
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "in", struct{ S Secret }{s})
	out := log.String() + fmt.Sprint(s) + fmt.Sprintf("%v %+v %#v %s %q %d %x", s, s, s, s, s, s, s) + fmt.Sprintf("%v", struct{ S Secret }{s})
	key := s.Text()[len(secretPrefix):]
	if strings.Contains(out, key) || strings.Contains(out, fmt.Sprint(s.key)) || strings.Contains(out, fmt.Sprint(s.key[:])) {
		t.Errorf("the secret is in %q", out)
	}
}

func TestDerive(t *testing.T) {
	a, b := NewSecret(), NewSecret()
	if !bytes.Equal(a.Derive("x", 32), a.Derive("x", 32)) {
		t.Error("the same label gives different keys")
	}
	if bytes.Equal(a.Derive("x", 32), a.Derive("y", 32)) || bytes.Equal(a.Derive("x", 32), b.Derive("x", 32)) {
		t.Error("another label or secret gives the same key")
	}
	if got := len(a.Derive("x", 100)); got != 100 {
		t.Errorf("length: got %d, want 100", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("Derive of a zero secret did not panic")
		}
	}()
	var zero Secret
	zero.Derive("x", 32)
}

func FuzzParseSecret(f *testing.F) {
	f.Add(NewSecret().Text())
	f.Add(secretPrefix)
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseSecret(text); err == nil && s.Text() != strings.TrimSpace(text) {
			t.Errorf("%q is read but written as %q", text, s.Text())
		}
	})
}
