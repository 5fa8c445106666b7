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

func TestSecretsThatReplaceOneAnother(t *testing.T) {
	first := NewSecret()
	second := first.Next()
	third := second.Next()
	for _, s := range []Secret{second, third} {
		got, err := ParseSecret(s.Text())
		if err != nil || got != s {
			t.Errorf("ParseSecret(Text): got %v, %v", got, err)
		}
		if !bytes.Equal(s.Lasting("a", 32), first.Lasting("a", 32)) {
			t.Error("what is to last has changed")
		}
		if bytes.Equal(s.Derive("a", 32), first.Derive("a", 32)) || s.ID() == first.ID() {
			t.Error("a new secret gives old keys")
		}
	}
	if bytes.Equal(first.Lasting("a", 32), first.Derive("a", 32)) || bytes.Equal(first.Lasting("a", 32), NewSecret().Lasting("a", 32)) {
		t.Error("what lasts is not a key of its own")
	}

	file := "\ufeff# the new one\n" + third.Text() + "\n\n  " + second.Text() + " \r\n" + first.Text()
	if got, err := ParseSecrets(file); err != nil || len(got) != 3 || got[0] != third || got[1] != second || got[2] != first {
		t.Errorf("got %d secrets, %v", len(got), err)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"none":      {"# nothing\n", "there is no secret"},
		"twice":     {first.Text() + "\n" + first.Text(), "line 2: the secret stands there twice"},
		"strangers": {NewSecret().Text() + "\n" + first.Text(), "line 2: neither of this secret and the first"},
		"a mistake": {third.Text() + "\n" + first.Text() + "A", "line 2: secret has"},
		"too many":  {third.Text() + "\n" + second.Text() + "\n" + first.Text() + "\n" + first.Next().Text() + "\n" + first.Next().Text(), "line 5: more than 4"},
	} {
		if _, err := ParseSecrets(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want one about %q", name, err, tc.want)
		}
	}
}
