package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/cmd/cli"
)

// commanded runs a command of the program.
func commanded(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var text strings.Builder
	cmd := newRootCommand()
	cmd.SetOut(&text)
	cmd.SetErr(t.Output())
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return text.String(), err
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	for _, line := range []string{
		"schedules -n 0", "schedules --workers 0", "schedules extra", "schedules --leave-out gravity", "schedules --story gravity", "schedules --what",
		"explore --only nodes --replay abc/123",
		"explore --leave-out gravity", "explore --replay abc", "explore more", "explore --only rows",
	} {
		if out, err := commanded(t, strings.Fields(line)...); !errors.As(err, new(cli.UsageError)) || out != "" {
			t.Errorf("%s: got %v and %q, want a mistake of usage", line, err, out)
		}
	}
}

// TestBrokenPromisesEndInAnError has a history run that breaks one where a rule is left out.
func TestBrokenPromisesEndInAnError(t *testing.T) {
	const history = "aab/123: raise@2, leave@1 | lost facts 1>2 #1"
	if out, err := commanded(t, "explore", "--leave-out", "fresh-mint", "--replay", history); !errors.Is(err, errBroken) || !strings.Contains(out, "BROKEN") {
		t.Errorf("got %v and %s", err, out)
	}
	if out, err := commanded(t, "explore", "--replay", history); err != nil {
		t.Errorf("got %v and %s", err, out)
	}
	if out, err := commanded(t, "schedules", "-n", "1", "--seed", "3", "--story", "recoverer leaves", "--leave-out", "fresh-mint"); !errors.Is(err, errBroken) || !strings.Contains(out, "over_limit") {
		t.Errorf("got %v and %s", err, out)
	}
	if out, err := commanded(t, "schedules", "-n", "2", "--seed", "3"); err != nil || !strings.Contains(out, "2 schedules, 0 failed") {
		t.Errorf("got %v and %s", err, out)
	}
}
