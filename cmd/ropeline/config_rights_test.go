package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/server"
)

const deadNode = "00112233445566778899aabbccddeeff"

func TestBootstrapNodes(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--name", "a1", "--bootstrap-nodes", "a1"}, "a1"},
		{[]string{"--mesh", ":7946", "--bootstrap-nodes", "a1, a2,b1"}, "a1 a2 b1"},
		{[]string{"--mesh", ":7946", "--bootstrap-nodes", "a1", "--bootstrap-nodes", "b1"}, "a1 b1"},
	} {
		cfg, err := parse(t, "origin: http://127.0.0.1:3000\nsecret-file: secret.key\n", c.args...)
		if err == nil {
			err = cfg.check()
		}
		if got := strings.Join(cfg.Rights.Bootstrap, " "); err != nil || got != c.want {
			t.Errorf("%v: got %q, %v, want %q", c.args, got, err, c.want)
		}
	}
	cfg, err := parse(t, "origin: http://127.0.0.1:3000\nsecret-file: s\nmesh: :7946\njoin: a1:7946\nbootstrap-nodes: [a1, a2]\n")
	if got := strings.Join(cfg.Rights.Bootstrap, " "); err != nil || got != "a1 a2" {
		t.Errorf("from a file: %q, %v", got, err)
	}
	for _, old := range []string{"found", "founder"} {
		cfg := defaultConfig()
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		nodeFlags(fs, &cfg)
		for _, arg := range []string{"--" + old, "--" + old + "=a1"} {
			if err := fs.Parse([]string{arg}); err == nil || !strings.Contains(err.Error(), "give all nodes the same --bootstrap-nodes") {
				t.Errorf("%s: got %v, want what replaces it", arg, err)
			}
		}
	}
}

func TestRightsThatMakeNoSense(t *testing.T) {
	const alone, mesh = "origin: http://127.0.0.1:3000\n", "origin: http://127.0.0.1:3000\nmesh: :7946\nsecret-file: s\n"
	for _, c := range []struct{ text, want string }{
		{mesh + "found: false\n", "--found is gone: give all nodes the same --bootstrap-nodes"},
		{mesh + "founder: a1\n", "--founder is gone: give all nodes the same --bootstrap-nodes"},
		{alone + "name: a2\nbootstrap-nodes: a1\n", "--bootstrap-nodes needs --mesh"},
		{mesh + "bootstrap-nodes: a1,b1,a1\n", "\"a1\" stands in the list twice, at positions 1 and 3"},
		{mesh + "bootstrap-nodes: a/1\n", "letters, digits"},
		{alone + "on-stop: leave\n", "on-stop: --on-stop leave needs --mesh"},
		{alone + "declare-dead: " + deadNode + "\n", "--declare-dead needs --mesh"},
		{mesh + "on-stop: go\n", "one of keep, leave"},
		{mesh + "declare-dead: a1\n", "the id of a node"},
		{mesh + "declare-dead: [" + deadNode + ", " + strings.Repeat("0", 32) + "]\n", "the id of a node"},
	} {
		cfg, err := parse(t, c.text)
		if err == nil {
			err = cfg.check()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "ropeline.yaml") {
			t.Errorf("%q: got %v, want %q and the line", c.text, err, c.want)
		}
	}
}

func TestDeadNodes(t *testing.T) {
	cfg, err := parse(t, "origin: http://127.0.0.1:3000\nmesh: :7946\nsecret-file: s\ndeclare-dead:\n  - "+deadNode+"\n  - "+strings.Repeat("a", 32)+"\n  - "+deadNode+"\n")
	if err == nil {
		err = cfg.check()
	}
	if err != nil || len(cfg.Rights.DeclareDead) != 2 || cfg.Rights.DeclareDead[0].String() != deadNode {
		t.Errorf("got %v, %v", cfg.Rights.DeclareDead, err)
	}
	if cfg.Rights.OnStop != server.StopKeeps {
		t.Errorf("on-stop is %q by default", cfg.Rights.OnStop)
	}
}
