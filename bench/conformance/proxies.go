//go:build unix

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ropeline/ropeline/bench/rig"
)

// frontEnds are all proxies that the suite knows.
func frontEnds() []frontEnd {
	return []frontEnd{
		{name: "nginx", example: "nginx.conf", start: startNginx, oldest: release{"nginx", "-v", "1.22.1"}, pages: true, down: 503, slow: 503},
		{name: "Caddy", example: "Caddyfile", start: startCaddy, oldest: release{"caddy", "version", "2.6.2"}, down: 503, slow: 503},
		{name: "HAProxy", example: "haproxy.cfg", start: startHAProxy, oldest: release{"haproxy", "-v", "2.6.12"}, down: 503, slow: 503},
		{name: "Traefik", example: "traefik.yml", start: startTraefik, standIn: true, siteCaches: true, closed: true, down: 500, slow: 500, patience: traefikTimeout + patience},
		{name: "Envoy, HTTP", example: "envoy-http.yaml", start: startEnvoy, standIn: true, keepsForged: true, down: 503, slow: 503},
		{name: "Envoy, gRPC", example: "envoy.yaml", start: startEnvoy, standIn: true, keepsForged: true, down: 503, slow: 503},
		{name: "Go, net/http", example: "nethttp.go", start: startGo, down: 503, slow: 503},
		{name: "Go, fasthttp", example: "fasthttp.go", start: startGo, noUpgrades: true, down: 503, slow: 503},
	}
}

func find(program string) (string, error) {
	path, err := rig.Find(program)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotHere, err)
	}
	return path, nil
}

func startNginx(ctx context.Context, _ options, example, addr string) (*proxy, error) {
	path, err := find("nginx")
	if err != nil {
		return nil, err
	}
	pid := filepath.Join(filepath.Dir(example), "nginx.pid")
	return run(ctx, addr, path, "-e", "stderr", "-c", example, "-g", "daemon off; pid "+pid+";")
}

func startCaddy(ctx context.Context, o options, example, addr string) (*proxy, error) {
	path, err := find(o.caddy)
	if err != nil {
		return nil, err
	}
	return run(ctx, addr, path, "run", "--config", example, "--adapter", "caddyfile")
}

func startHAProxy(ctx context.Context, _ options, example, addr string) (*proxy, error) {
	path, err := find("haproxy")
	if err != nil {
		return nil, err
	}
	return run(ctx, addr, path, "-db", "-f", example)
}

// run starts a proxy that listens at addr.
func run(ctx context.Context, addr, path string, args ...string) (*proxy, error) {
	p, err := rig.Start(ctx, rig.Command{Name: path, Args: args})
	if err != nil {
		return nil, err
	}
	if err := p.AwaitListener(ctx, addr); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return &proxy{addr, func() { _ = p.Stop() }}, nil // it has nothing to lose
}

// startGo builds a program of ours, and runs it.
func startGo(ctx context.Context, _ options, example, addr string) (*proxy, error) {
	path, err := find("go")
	if err != nil {
		return nil, err
	}
	program := strings.TrimSuffix(example, ".go")
	if out, err := exec.CommandContext(ctx, path, "build", "-o", program, example).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w: %s", filepath.Base(example), err, out)
	}
	return run(ctx, addr, program)
}

// release is a version of a program, and how the program says which it is.
type release struct{ program, asked, version string }

// check returns an error if a program is older than this release of it, which is the oldest that
// an example is right with. One that is not here is no error.
func (r release) check(ctx context.Context, o options, example string) error {
	program := r.program
	if program == "caddy" {
		program = o.caddy
	}
	path, err := find(program)
	if r.program == "" || err != nil {
		return nil
	}
	said, err := exec.CommandContext(ctx, path, r.asked).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w: %s", path, err, said)
	}
	version := regexp.MustCompile(`\d+(\.\d+)+`).FindString(string(said))
	if slices.Compare(numbers(version), numbers(r.version)) < 0 {
		return fmt.Errorf("%s is of version %q, and docs/examples/%s is right with %s and newer: install a newer one, or put its directory first in PATH", path, version, example, r.version)
	}
	return nil
}

// numbers returns those that a version is made of.
func numbers(version string) (all []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part) // of digits alone; "" is older than anything
		all = append(all, n)
	}
	return all
}
