package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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
		script = regexp.MustCompile(regexp.QuoteMeta(from)+`\b`).ReplaceAllLiteralString(script, to) // 3000 is the beginning of 30005
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

// ownPlaces gives each node that a page starts addresses and a directory of its own, and has what
// follows wait until it is ready. It returns where the first node is, and the admin addresses of all.
func ownPlaces(t *testing.T, script string) (moved string, addresses map[string]string, admins []string) {
	t.Helper()
	addresses = map[string]string{}
	var lines, waits strings.Builder // for nodes that are started one after the other: a mesh is ready when all are there
	for line := range strings.Lines(script) {
		command, beside := strings.CutSuffix(line, " &\n")
		if !strings.Contains(command, "ropeline run ") {
			lines.WriteString(waits.String() + line)
			waits.Reset()
			continue
		}
		admin := freeAddress(t)
		flags := fmt.Sprintf("ropeline run --admin %s --data-dir node%d ", admin, len(admins))
		if strings.Contains(command, " --origin ") {
			visitors := freeAddress(t)
			flags += "--listen " + visitors + " "
			if len(admins) == 0 {
				addresses["127.0.0.1:8080"] = visitors
			}
		}
		if len(admins) == 0 {
			addresses["127.0.0.1:9080"] = admin
		}
		admins = append(admins, admin)
		command = strings.Replace(command, "ropeline run ", flags, 1)
		if strings.Contains(command, "--mesh :7946") {
			mesh := freeAddress(t)
			_, name, _ := strings.Cut(command, "--name ")
			name, _, _ = strings.Cut(name, " ")
			addresses[name+".internal:7946"] = mesh
			command = strings.Replace(command, "--mesh :7946", "--mesh "+mesh, 1)
		}
		if !beside {
			t.Errorf("a page has its reader wait for the end of %q", command)
		}
		fmt.Fprintf(&lines, "%s &\n", command)
		fmt.Fprintf(&waits, "ropeline health --server http://%s --wait 30s\n", admin)
	}
	return lines.String() + waits.String(), addresses, admins
}

// wantSaid fails the test if commands have not said something.
func wantSaid(t *testing.T, page, said string, wants ...string) {
	t.Helper()
	oneSpace := func(s string) string { return strings.Join(strings.Fields(s), " ") } // how wide a table is depends on the seed in it
	for _, want := range wants {
		if !strings.Contains(oneSpace(said), oneSpace(want)) {
			t.Errorf("%s: the commands do not say %q:\n%s", page, want, said)
		}
	}
}

// TestDocsOfTheFirstQueueRun does what the page says, to the letter.
func TestDocsOfTheFirstQueueRun(t *testing.T) {
	t.Parallel()
	needTools(t, "python3")
	script, addresses, _ := ownPlaces(t, shellOf(t, "first-queue.md"))
	site := freeAddress(t)
	_, sitePort, err := net.SplitHostPort(site)
	if err != nil {
		t.Fatal(err)
	}
	addresses["127.0.0.1:3000"], addresses["http.server 3000"] = site, "http.server "+sitePort
	wantSaid(t, "first-queue.md", runShell(t, script, addresses),
		"ready", `"total_active_users": 50`, "We have opened more tills.", `"passes"`, `"name": "default"`)
}

// TestDocsOfTheReadmeRun has a node, a mesh and a crowd as the first page of all has them.
func TestDocsOfTheReadmeRun(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	script, addresses, admins := ownPlaces(t, strings.ReplaceAll(shellOf(t, "../README.md"), "./ropeline", "ropeline"))
	if len(admins) != 4 {
		t.Fatalf("%d nodes are started, want one alone and three", len(admins))
	}
	addresses["127.0.0.1:3000"] = strings.TrimPrefix(startOrigin(t), "http://")
	script += "until ropeline node list --server http://" + admins[1] + " | grep -c '\"ready\": true' | grep -qx 3; do sleep 0.1; done\n"
	script += "ropeline node list --server http://" + admins[1] + "\n"
	wantSaid(t, "README.md", runShell(t, script, addresses),
		"│ let in                    │        200 │ 20.0 %", `"name": "a2"`, `"name": "b1"`, `"site": "b"`)
}

// TestDocsOfSizingRun measures as the page does, but for a second.
func TestDocsOfSizingRun(t *testing.T) {
	t.Parallel()
	needTools(t, "wrk")
	script, addresses, _ := ownPlaces(t, shellOf(t, "sizing.md"))
	addresses["127.0.0.1:3000"] = strings.TrimPrefix(startOrigin(t), "http://")
	wantSaid(t, "sizing.md", runShell(t, strings.ReplaceAll(script, "-d20s", "-d1s"), addresses), "Requests/sec", "99%")
}

// TestDocsOfVerdictsRun asks as a proxy does.
func TestDocsOfVerdictsRun(t *testing.T) {
	t.Parallel()
	needTools(t, "curl")
	script, addresses, _ := ownPlaces(t, shellOf(t, "verdicts.md"))
	addresses["127.0.0.1:9081"] = freeAddress(t)
	wantSaid(t, "verdicts.md", runShell(t, script, addresses), "HTTP/1.1 ")
}

func needTools(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s in PATH", tool)
		}
	}
}

// TestDocsOfOperatingRun does what the pages for operators say to a node with their rooms.
func TestDocsOfOperatingRun(t *testing.T) {
	t.Parallel()
	needTools(t, "curl", "openssl")
	rooms := filepath.Join(t.TempDir(), "rooms.yaml")
	if err := os.WriteFile(rooms, []byte("rooms:\n- room: shop\n  host: shop.example\n- room: tickets\n  host: tickets.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serveNode(t, "solo", "one", "--origin", startOrigin(t), "--config", rooms, "--data-dir", t.TempDir())
	for page, wants := range map[string][]string{
		"rate-limits.md": {`"action": "log"`, `"http.request.headers[\"x-api-key\"]"`, `"enabled": false`, `"requests_per_period": 1000`},
		"operating.md":   {`"total_active_users":500`, `"cookie":"none that can be opened`, `"steps"`, "ropeline_room_active"},
		"commands.md":    {`"total_active_users": 800`, `"reason": "open"`},
		"pages.md":       {"HTTP/1.1 200 OK", "a page of our own"},
		"api.md":         {`"queue_all":true`},
	} {
		script := "TOKEN=\necho '<p>a page of our own' > wait.html\n" + strings.ReplaceAll(shellOf(t, page), "status --watch ", "status ")
		wantSaid(t, page, runShell(t, script, map[string]string{"127.0.0.1:9080": p.admin}), wants...)
	}
}

// TestDocsOfTheAPIRun sends what the pages show, in their order.
func TestDocsOfTheAPIRun(t *testing.T) {
	t.Parallel()
	p := serveNode(t, "solo", "one", "--origin", startOrigin(t), "--room", "default", "--data-dir", t.TempDir())
	for page, least := range map[string]int{"api.md": 4, "rate-limits.md": 3} {
		if n := sendsWhatIsShown(t, page, "http://"+p.admin); n < least {
			t.Errorf("%s: only %d examples were found", page, n)
		}
	}
}

// sendsWhatIsShown sends the requests that a page shows, and returns how many there are.
func sendsWhatIsShown(t *testing.T, page, server string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```http\n")[1:]
	for _, part := range parts {
		example, _, _ := strings.Cut(part, "```")
		line, body, _ := strings.Cut(example, "\n")
		line, wants, refused := strings.Cut(line, "#")
		method, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		req, err := http.NewRequestWithContext(t.Context(), method, server+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if refused && strconv.Itoa(resp.StatusCode) != strings.TrimSpace(wants) || !refused && resp.StatusCode >= 300 {
			t.Errorf("%s: %s\nis answered by %d %s", page, example, resp.StatusCode, said)
		}
	}
	return len(parts)
}
