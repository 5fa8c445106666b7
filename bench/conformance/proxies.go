//go:build unix

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// frontEnds are all proxies that the suite knows.
func frontEnds() []frontEnd {
	return []frontEnd{
		{name: "nginx", example: "nginx.conf", start: startNginx, pages: true, down: 503, slow: 503},
		{name: "Caddy", example: "Caddyfile", start: startCaddy, down: 503, slow: 503},
		{name: "HAProxy", example: "haproxy.cfg", start: startHAProxy, down: 503, slow: 503},
		{name: "Traefik", example: "traefik.yml", start: startTraefik, standIn: true, siteCaches: true, closed: true, down: 500, slow: 500, patience: traefikTimeout + patience},
		{name: "Envoy, HTTP", example: "envoy-http.yaml", start: startEnvoy, standIn: true, keepsForged: true, down: 503, slow: 503},
		{name: "Envoy, gRPC", example: "envoy.yaml", start: startEnvoy, standIn: true, keepsForged: true, down: 503, slow: 503},
		{name: "Go, net/http", example: "nethttp.go", start: startGo, down: 503, slow: 503},
		{name: "Go, fasthttp", example: "fasthttp.go", start: startGo, noUpgrades: true, down: 503, slow: 503},
	}
}

func find(program string) (string, error) {
	path, err := exec.LookPath(program)
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
	p, err := startProcess(ctx, addr, path, "-e", "stderr", "-c", example, "-g", "daemon off; pid "+pid+";")
	if err != nil {
		return nil, err
	}
	return &proxy{addr, p.stop}, nil
}

func startCaddy(ctx context.Context, o options, example, addr string) (*proxy, error) {
	path, err := find(o.caddy)
	if err != nil {
		return nil, err
	}
	p, err := startProcess(ctx, addr, path, "run", "--config", example, "--adapter", "caddyfile")
	if err != nil {
		return nil, err
	}
	return &proxy{addr, p.stop}, nil
}

func startHAProxy(ctx context.Context, _ options, example, addr string) (*proxy, error) {
	path, err := find("haproxy")
	if err != nil {
		return nil, err
	}
	p, err := startProcess(ctx, addr, path, "-db", "-f", example)
	if err != nil {
		return nil, err
	}
	return &proxy{addr, p.stop}, nil
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
	p, err := startProcess(ctx, addr, program)
	if err != nil {
		return nil, err
	}
	return &proxy{addr, p.stop}, nil
}
