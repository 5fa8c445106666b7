package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestWordsThatAreNotUnderstood(t *testing.T) {
	for _, tc := range []struct {
		args string
		want string
	}{
		{"rum", `there is no command "rum"; did you mean "run"?`},
		{"frobnicate --hard", "unknown flag: --hard"},
		{"frobnicate", `there is no command "frobnicate"`},
		{"run http://a", `"http://a" is not understood: ropeline run takes flags only`},
		{"run --orgin http://a", "unknown flag: --orgin; did you mean --origin?"},
		{"run --totl-active-users 5", "did you mean --total-active-users?"},
		{"demo now", `"now" is not understood`},
		{"load access.log", `"access.log" is not understood`},
		{"keygen secret.key", `"secret.key" is not understood`},
		{"completion tcsh", `there is no command "tcsh"`},
		{"completion bash now", `"now" is not understood`},
		{"version 2", `"2" is not understood`},
	} {
		t.Run(tc.args, func(t *testing.T) {
			cmd := newRootCommand()
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(strings.Fields(tc.args))
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if code := exitCode(err); code != exitUsage {
				t.Errorf("got %v, exit code %d; want that of a usage error, %d", err, code, exitUsage)
			}
			if out.Len() != 0 {
				t.Errorf("printed %q; errors are printed by main", out.String())
			}
		})
	}
}

// TestCommandsThatMoved says where they are, whatever flags they are given.
func TestCommandsThatMoved(t *testing.T) {
	for args, want := range map[string]string{
		"bench proxy --rounds 3":         `"ropeline-bench run NAME"`,
		"rate --target http://127.0.0.1": `"ropeline-bench rate"`,
		"simulate --help":                `"ropeline-bench simulate"`,
	} {
		cmd := newRootCommand()
		cmd.SetArgs(strings.Fields(args))
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "go install ") || exitCode(err) != exitUsage {
			t.Errorf("%s: got %v, want %s and exit code %d", args, err, want, exitUsage)
		}
	}
	if help := helpOf(t); strings.Contains(help, "simulate") || strings.Contains(help, "bench") {
		t.Errorf("the help has commands that are not there:\n%s", help)
	}
}

func TestCommandAloneShowsHelp(t *testing.T) {
	cmd := newRootCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(nil)
	if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), "demo") {
		t.Errorf("got %v and %q, want the list of commands", err, out.String())
	}
}
