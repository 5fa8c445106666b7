package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Example is one of docs/examples: how another proxy, or a program, asks a node about each request. All but Open is
// required.
type Example struct {
	Folder, Name string // where the examples are, and which one

	Listen, Site, Verdicts string // host:port, in place of those that it names
	Open                   bool   // it lets everybody in where no node answers
}

// Addresses in the examples.
const (
	exampleListen   = "127.0.0.1:8080"
	exampleSite     = "127.0.0.1:3000"
	exampleVerdicts = "127.0.0.1:9081"
	exampleRelay    = "127.0.0.1:9082"
	exampleScript   = "/etc/haproxy/ropeline.lua"
)

// Write writes the example into dir, with the addresses of e.
func (e Example) Write(dir string) (file string, err error) {
	err = Try(func() {
		text := string(Got(os.ReadFile(filepath.Join(e.Folder, e.Name))))
		if e.Open {
			text = opened(text)
		}
		swap := []string{exampleScript, Got(filepath.Abs(filepath.Join(e.Folder, "ropeline.lua")))}
		for old, now := range map[string]string{exampleListen: e.Listen, exampleSite: e.Site, exampleVerdicts: e.Verdicts, exampleRelay: Got(Free())} {
			if old != exampleRelay && !slices.ContainsFunc(spellings(old), func(s string) bool { return strings.Contains(text, s) }) {
				Must(fmt.Errorf("%s does not speak of %s", e.Name, old))
			}
			for i, s := range spellings(old) {
				swap = append(swap, s, spellings(now)[i])
			}
		}
		if e.Name == "nginx.conf" {
			swap = append(swap, "\nhttp {\n", "\nhttp {\n    access_log off;\n") // it would be in the log of the machine
		}
		file = filepath.Join(dir, e.Name)
		Must(os.WriteFile(file, []byte(strings.NewReplacer(swap...).Replace(text)), 0o600))
	})
	return file, err
}

var (
	openLine   = regexp.MustCompile(`(?m)^([ \t]*)(?://)?#open `)
	closedLine = regexp.MustCompile(`(?m)^.* #closed\n`)
)

// opened returns an example as it lets everybody in where no node answers.
func opened(text string) string {
	return closedLine.ReplaceAllString(openLine.ReplaceAllString(text, "$1"), "")
}

// spellings are how proxies write an address. No two addresses share a port, so that one of them may be nothing but
// that.
func spellings(addr string) []string {
	host, port, _ := strings.Cut(addr, ":")
	return []string{addr, fmt.Sprintf("address: %s, port_value: %s", host, port), "http://:" + port}
}

// examplePrograms are what runs examples that are configurations, with FILE for where one is, and LISTEN for its address
// where the configuration does not have it.
var examplePrograms = map[string][]string{
	"nginx.conf":  {"nginx", "-e", "stderr", "-c", "FILE", "-g", "daemon off; pid FILE.pid;"},
	"haproxy.cfg": {"haproxy", "-db", "-f", "FILE"},
	"Caddyfile":   {"caddy", "run", "--config", "FILE", "--adapter", "caddyfile"},
	"traefik.yml": {"traefik", "--entryPoints.web.address=LISTEN", "--providers.file.filename=FILE", "--global.checkNewVersion=false"},
}

// Program returns what runs an example: a proxy, or go, which builds it. It is empty for those that nothing here runs.
func (e Example) Program() string {
	switch p := examplePrograms[e.Name]; {
	case p != nil:
		return p[0]
	case filepath.Ext(e.Name) == ".go":
		return "go"
	}
	return ""
}

// Start runs an example that was written to file, and returns when it listens. program is in place of Program, unless
// it is empty.
func (e Example) Start(ctx context.Context, file, program string) (p *Process, err error) {
	c := Command{Name: cmp.Or(program, e.Program())}
	dir := filepath.Dir(file)
	switch e.Program() {
	case "":
		return nil, fmt.Errorf("nothing here runs %s", e.Name)
	case "go":
		built := strings.TrimSuffix(file, ".go")
		build := exec.CommandContext(ctx, c.Name, "build", "-tags", shippedTag, "-ldflags=-s -w", "-o", built, file)
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as all else that is built without the race detector, so that packages are compiled once
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", e.Name, err, out)
		}
		c = Command{Name: built}
	default:
		for _, a := range examplePrograms[e.Name][1:] {
			c.Args = append(c.Args, strings.NewReplacer("FILE", file, "LISTEN", e.Listen).Replace(a))
		}
	}
	if e.Name == "Caddyfile" { // several run at once
		admin, err := Free()
		if err != nil {
			return nil, err
		}
		c.Env = []string{"CADDY_ADMIN=" + admin, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir}
	}
	if p, err = Start(ctx, c); err != nil {
		return nil, err
	}
	err = p.AwaitListener(ctx, e.Listen)
	if err == nil && e.Name == "traefik.yml" { // it listens before it has read where requests go
		err = p.AwaitFunc(ctx, "routes requests at "+e.Listen, func(ctx context.Context) bool { return routes(ctx, e.Listen) })
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// routes reports whether Traefik at an address knows where requests go.
func routes(ctx context.Context, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	return err == nil && resp.Body.Close() == nil && resp.StatusCode != http.StatusNotFound
}
