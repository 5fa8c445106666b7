package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shellOf returns what the blocks of shell commands on a page come to, one after the other.
// Those marked "beside" are for a second terminal: what follows does not wait for them.
func shellOf(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	inside, beside := false, false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "```sh"):
			inside, beside = true, strings.HasSuffix(line, " beside\n")
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside && beside:
			script.WriteString(strings.TrimSuffix(line, "\n") + " &\n")
		case inside:
			script.WriteString(line)
		}
	}
	if script.Len() == 0 {
		t.Fatalf("%s has no commands", page)
	}
	return script.String()
}

// runShell runs commands of a page as a reader would, in an empty folder, with ropeline in
// the PATH. Addresses of the page are replaced, since other tests run beside this one.
func runShell(t *testing.T, script string, addresses map[string]string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := t.TempDir(), t.TempDir()
	wrapper := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asCommand, self)
	if err := os.WriteFile(filepath.Join(bin, "ropeline"), []byte(wrapper), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range addresses {
		script = strings.ReplaceAll(script, from, to)
	}
	script = "set -eu\ntrap 'for job in $(jobs -p); do kill \"$job\"; done; wait' EXIT\n" + script
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	for from, to := range addresses {
		if strings.HasSuffix(from, ":9080") {
			cmd.Env = append(cmd.Env, "ROPELINE_ADMIN=http://"+to)
		}
	}
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\nsays\n%s", err, script, out)
	}
	return string(out)
}

// TestDocsOfTheFirstQueueRun does what the page says, to the letter.
func TestDocsOfTheFirstQueueRun(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 in PATH, which the page has serve a site")
	}
	site, visitors, admin := freeAddress(t, "tcp"), freeAddress(t, "tcp"), freeAddress(t, "tcp")
	_, sitePort, err := net.SplitHostPort(site)
	if err != nil {
		t.Fatal(err)
	}
	script := strings.ReplaceAll(shellOf(t, "first-queue.md"), "ropeline run ", "ropeline run --listen "+visitors+" --admin "+admin+" ")
	out := runShell(t, script, map[string]string{"127.0.0.1:3000": site, "http.server 3000": "http.server " + sitePort, "127.0.0.1:8080": visitors, "127.0.0.1:9080": admin})
	for _, want := range []string{"ready", `"total_active_users": 50`, "We have opened more tills.", `"passes"`, `"name": "default"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the commands do not say %q:\n%s", want, out)
		}
	}
}

// TestDocsOfOperatingRun does what the pages for operators say to a node with a room.
func TestDocsOfOperatingRun(t *testing.T) {
	for _, tool := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s in PATH", tool)
		}
	}
	p := startNode(t, "solo", "one", "--origin", startOrigin(t), "--room", "shop", "--host", "shop.example", "--data-dir", t.TempDir())
	p.await("is ready", 20*time.Second, ready)
	for page, wants := range map[string][]string{
		"operating.md": {`"total_active_users":500`, `"cookie":"none that can be opened`},
		"commands.md":  {`"total_active_users": 800`, `"reason": "open"`},
	} {
		script := strings.ReplaceAll(shellOf(t, page), "status --watch ", "status ")
		out := runShell(t, script, map[string]string{"127.0.0.1:9080": p.admin})
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: the commands do not say %q:\n%s", page, want, out)
			}
		}
	}
}
