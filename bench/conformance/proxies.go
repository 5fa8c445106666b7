//go:build unix

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
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
