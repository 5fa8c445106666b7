package main

import (
	"strings"
	"testing"
)

const deadNode = "00112233445566778899aabbccddeeff"

func TestFounder(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true},
		{[]string{"--mesh", ":7946"}, true},
		{[]string{"--mesh", ":7946", "--join", "a1:7946"}, false},
		{[]string{"--mesh", ":7946", "--join", "a1:7946", "--found"}, true},
		{[]string{"--mesh", ":7946", "--found=false"}, false},
		{[]string{"--mesh", ":7946", "--join", "a1:7946", "--name", "a1", "--founder", "a1"}, true},
		{[]string{"--mesh", ":7946", "--join", "a1:7946", "--name", "a2", "--founder", "a1"}, false},
		{[]string{"--mesh", ":7946", "--name", "a2", "--founder", "a1"}, false},
	} {
		cfg, err := parse(t, "origin: http://127.0.0.1:3000\nsecret-file: secret.key\n", c.args...)
		if err == nil {
			err = cfg.check()
		}
		if err != nil || cfg.founds() != c.want {
			t.Errorf("%v: founds %v, %v, want %v", c.args, cfg.founds(), err, c.want)
		}
	}
	cfg, err := parse(t, "origin: http://127.0.0.1:3000\nsecret-file: s\nmesh: :7946\njoin: a1:7946\nfound: true\n")
	if err != nil || !cfg.founds() {
		t.Errorf("from a file: founds %v, %v", cfg.founds(), err)
	}
}

func TestRightsThatMakeNoSense(t *testing.T) {
	const alone, mesh = "origin: http://127.0.0.1:3000\n", "origin: http://127.0.0.1:3000\nmesh: :7946\nsecret-file: s\n"
	for _, c := range []struct{ text, want string }{
		{alone + "found: false\n", "a single node has to make the rights"},
		{alone + "name: a2\nfounder: a1\n", "a single node has to make the rights"},
		{mesh + "founder: a1\nfound: true\n", "--found and --founder say the same"},
		{mesh + "founder: a/1\n", "letters, digits"},
		{alone + "on-stop: leave\n", "on-stop: --on-stop leave needs --mesh"},
		{alone + "declare-dead: " + deadNode + "\n", "--declare-dead needs --mesh"},
		{mesh + "on-stop: go\n", "one of keep, leave"},
		{mesh + "declare-dead: a1\n", "the id of a node"},
		{mesh + "declare-dead: [" + deadNode + ", " + strings.Repeat("0", 32) + "]\n", "the id of a node"},
		{mesh + "found: maybe\n", "true or false"},
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
	if cfg.Rights.OnStop != stopKeeps {
		t.Errorf("on-stop is %q by default", cfg.Rights.OnStop)
	}
}
