package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/cmd/ropeline/operate"
)

// says runs a command against a node and returns what it prints, and its exit code.
func says(t *testing.T, ctx context.Context, server string, args ...string) (string, int) {
	t.Helper()
	cmd := newRootCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(append(args, "--server", server))
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return out.String(), 0
	}
	return out.String() + err.Error(), exitCode(err)
}

// TestOperatorsCommandANode has an operator do everything there is a command for.
func TestOperatorsCommandANode(t *testing.T) {
	p := serveNode(t, "solo", "one", "--origin", startOrigin(t), "--host", "elsewhere.example", "--data-dir", t.TempDir())
	for _, c := range []struct {
		line string
		code int
		want []string
	}{
		{"room create shop host=shop.example cookie_suffix=shop total_active_users=5 new_users_per_minute=7 --zone sales", 0, []string{"room shop is made"}},
		{"room create shop host=shop.example total_active_users=5 new_users_per_minute=7 --zone sales", 4, []string{"name:", "shop.example"}},
		{"room create x total_active_users=many", 2, []string{"total_active_users=many: want a whole number from 1 to 2147483647"}},
		{"room create x total_active_user=5", 2, []string{`did you mean "total_active_users"?`}},
		{"room create x created_on=2026-01-01T00:00:00Z", 2, []string{`no field "created_on"`}},
		{"room create x 5", 2, []string{"want NAME=VALUE"}},
		{"room list", 0, []string{"default", "shop", "sales", "shop.example/", "escrow"}},
		{"room list --zone sales", 0, []string{"shop"}},
		{"room set shop queue-all=true message=123 frame_ancestors=self,https://a.example", 0, []string{"room shop is changed"}},
		{"room set shop total_active_users=0", 4, []string{"total_active_users: 0 is not allowed: want a whole number from 1 to 2147483647"}},
		{"room show shop", 0, []string{"queue_all", "yes", "https://a.example", "123"}},
		{"room show shoe", 4, []string{`no room "shoe"`}},
		{"room status shop", 0, []string{"queueing"}},
		{"room rights shop", 0, []string{"Held", "Minted here", "5"}},
		{"event create shop sale event_start_time=2030-01-01T10:00:00Z event_end_time=2030-01-01T11:00:00Z", 0, []string{"is planned"}},
		{"event set shop sale suspended=true", 0, []string{"event sale of room shop is changed"}},
		{"event list shop", 0, []string{"sale", "2030-01-01T10:00:00Z", "yes"}},
		{"event delete shop nothing", 4, []string{`no event "nothing"`}},
		{"event delete shop sale", 0, []string{"is deleted"}},
		{"rule add shop http.request.uri.path\tdescription=x", 4, []string{"expression"}},
		{"rule add shop ssl description=plain", 0, []string{"has the rule"}},
		{"rule list shop", 0, []string{"ssl", "plain", "bypass_waiting_room"}},
		{"status", 0, []string{"shop", "queue all", "solo", "ready"}},
		{"node list", 0, []string{"solo", "one", "ready"}},
		{"node show solo", 0, []string{"solo", "alive"}},
		{"node show nobody", 4, []string{"nobody"}},
		{"node declare-dead solo", 2, []string{"--gone-for-good"}},
		{"node declare-dead solo --gone-for-good", 4, []string{"alive"}},
		{"node drain solo --leave", 4, []string{"nobody to leave its rights to"}},
		{"site list", 0, []string{"one"}},
		{"key list", 0, []string{"used"}},
		{"explain --url http://shop.example/x", 0, []string{"Room shop.", "Pass in the cookie: none.", "It would wait.", "no_place", "5 of the room's 5 places are made"}},
		{"explain --url http://other.example/", 0, []string{"No room is there"}},
		{"explain --url shop.example", 2, []string{"--url"}},
		{"explain --visitor 00 --room shop", 4, []string{"32 hexadecimal digits"}},
		{"limit list", 0, []string{"Requests"}},
		{"limit create logins expression=true period=60", 4, []string{"requests_per_period: it is missing"}},
		{"limit create logins expression=true period=0 requests_per_period=5", 4, []string{"period: 0 is not allowed: want a whole number of seconds from 1 to 86400"}},
		{"limit create logins expression=http.hots period=60 requests_per_period=5", 4, []string{"expression:", "http.host", "\n    http.hots"}},
		{"limit create logins expression=true period=inf requests_per_period=5", 2, []string{"period=inf: want a whole number from 1 to 86400"}},
		{"limit create logins expression=true period=60 period=30", 2, []string{`period is given twice, the second time as "30"`}},
		{"limit create logins expression=true name=other", 2, []string{`name is given twice, the second time as "other"`}},
		{"limit create logins expression=true perid=60 requests_per_period=5", 2, []string{`did you mean "period"?`}},
		{"limit create logins expression=true period=60 requests_per_period=5 characteristics=ip.src,http.host", 0, []string{"rate limit logins is made"}},
		{"limit create logins expression=true period=60 requests_per_period=5", 4, []string{`name: "logins" is not allowed`}},
		{`limit create other expression=true period=60 requests_per_period=5 position={"index":1} enabled=false`, 0, []string{"rate limit other is made"}},
		{"limit set other name=logins", 4, []string{`name: "logins" is not allowed`}},
		{"limit set logins requests-per-period=7 action=log characteristics=ip.src", 0, []string{"rate limit logins is changed"}},
		{"limit set logins action=challenge", 4, []string{"one of block, queue, log"}},
		{"limit show logins", 0, []string{"requests_per_period", "7", "log", "mitigation_timeout"}},
		{"limit show login", 4, []string{`no rate limit "login"`}},
		{"limit list", 0, []string{"logins", "ip.src", "mesh", "other"}},
		{"limit status --watch=false", 0, []string{"rate limits at node solo", "room for"}},
		{"status", 0, []string{"logins", "7 in 60 s", "log"}},
		{"limit delete", 2, []string{"limit delete LIMIT"}},
		{"limit delete other", 0, []string{"is deleted"}},
		{"limit delete other", 4, []string{`no rate limit "other"`}},
		{"room delete shop", 2, []string{"say --yes"}},
		{"room delete shop --yes", 0, []string{"is deleted"}},
		{"room delete", 2, []string{"room delete ROOM"}},
	} {
		args := strings.FieldsFunc(c.line, func(r rune) bool { return r == ' ' })
		if c.code == 0 {
			args = append(args, "--json=false")
		}
		got, code := says(t, t.Context(), "http://"+p.admin, args...)
		if code != c.code || slices.ContainsFunc(c.want, func(s string) bool { return !strings.Contains(got, s) }) {
			t.Errorf("%s: exit code %d and\n%s\nwant %d with %q", c.line, code, got, c.code, c.want)
		}
	}
	watches(t, p)
	completes(t, p)
	if got, code := says(t, t.Context(), "127.0.0.1:1", "status"); code != exitNotReached || !strings.Contains(got, "is a node running there?") {
		t.Errorf("nobody: %d %s", code, got)
	}
	if got, code := says(t, t.Context(), "http://"+p.admin, "node", "drain", "solo"); code != 0 {
		t.Errorf("drain: %d %s", code, got)
	}
	select {
	case <-p.Ended():
	case <-time.After(30 * time.Second):
		t.Error("a node that is drained does not end")
	}
}

// watches has a command show a node again and again.
func watches(t *testing.T, p *running) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got, code := says(t, ctx, "http://"+p.admin, "status", "--watch", "--every", "200ms")
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if code != 0 || len(lines) < 2 {
		t.Fatalf("%d lines, exit code %d:\n%s", len(lines), code, got)
	}
	for _, line := range lines {
		var v struct{ Nodes []struct{ Name string } }
		if err := json.Unmarshal([]byte(line), &v); err != nil || len(v.Nodes) != 1 || v.Nodes[0].Name != "solo" {
			t.Errorf("a line that is no answer: %s, %v", line, err)
		}
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got, _ := says(t, ctx, "http://"+p.admin, "status", "--watch", "--json=false"); !strings.Contains(got, "solo") || strings.Contains(got, "\x1b") {
		t.Errorf("tables that are watched through a pipe: %q", got)
	}
	if _, code := says(t, t.Context(), "http://"+p.admin, "status", "--every", "1s"); code != exitUsage {
		t.Errorf("--every without --watch: exit code %d", code)
	}
}

// completes has a shell ask what may stand next.
func completes(t *testing.T, p *running) {
	t.Helper()
	t.Setenv(operate.ServerVariable, "http://"+p.admin)
	for line, want := range map[string][]string{
		"room show ":             {"default"},
		"room show x":            nil,
		"room set default queue": {"queue_all=", "queueing_method=", "queueing_status_code="},
		"node drain s":           {"solo"},
		"limit show ":            {"logins"},
		"limit set ":             {"logins"},
		"limit delete logins ":   nil,
		"limit set logins ipv":   {"ipv4_prefix=", "ipv6_prefix="},
		"limit create x con":     {"content=", "content_type="},
		"event delete default ":  nil,
		"room list ":             nil,
	} {
		cmd := newRootCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(line, " ")...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for s := range strings.FieldsSeq(out.String()) {
			if !strings.HasPrefix(s, ":") && s != "Completion" {
				got = append(got, s)
			}
		}
		if i := slices.Index(got, "ended"); i >= 0 {
			got = got[:i]
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %q a shell offers %q, want %q", line, got, want)
		}
	}
}

// TestCommandsAreDocumented fails where the page of commands has not got one.
func TestCommandsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		if cmd.Runnable() && cmd.HasParent() && !cmd.HasSubCommands() && cmd.Name() != "help" {
			if name := strings.TrimSpace(strings.TrimSuffix(cmd.UseLine(), "[flags]")); !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/commands.md has no `%s`", name)
			}
		}
		for _, below := range cmd.Commands() {
			look(below)
		}
	}
	for _, cmd := range operate.Commands() {
		root := &cobra.Command{Use: "ropeline"}
		root.AddCommand(cmd)
		look(cmd)
	}
	for _, code := range []int{exitFailed, exitUsage, exitNotReached, exitRefused} {
		if !strings.Contains(string(page), "| "+string(rune('0'+code))+" |") {
			t.Errorf("docs/commands.md has no row for the exit code %d", code)
		}
	}
}

// TestOperatorsOverTLS asks a node that is not on loopback, as far as it knows.
func TestOperatorsOverTLS(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issueFor("localhost", 7)
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("read reading-0123456789\nwrite writing-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startNode(t, "solo", "one", "--origin", startOrigin(t), "--data-dir", t.TempDir(), "--admin-token-file", tokens, "--admin-tls-cert-file", cert, "--admin-tls-key-file", key)
	_, port, err := net.SplitHostPort(p.admin)
	if err != nil {
		t.Fatal(err)
	}
	server := "https://localhost:" + port
	await(t, "the node is ready", func() bool {
		_, code := says(t, t.Context(), server, "health", "--ca-file", filepath.Join(a.dir, "ca.pem"))
		return code == 0
	})
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"status"}, exitNotReached, "certificate"},
		{[]string{"status", "--ca-file", filepath.Join(a.dir, "ca.pem")}, exitRefused, "needs a token"},
		{[]string{"status", "--ca-file", filepath.Join(a.dir, "ca.pem"), "--token-file", tokens}, 0, "solo"},
		{[]string{"room", "set", "default", "queue_all=true", "--ca-file", filepath.Join(a.dir, "ca.pem"), "--token-file", tokens}, 0, `"queue_all": true`},
	} {
		if got, code := says(t, t.Context(), server, c.args...); code != c.code || !strings.Contains(got, c.want) {
			t.Errorf("%v: %d %s, want %d with %q", c.args, code, got, c.code, c.want)
		}
	}
}
