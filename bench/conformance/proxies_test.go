//go:build unix

package conformance

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// frontEnds are all proxies that the suite knows.
func frontEnds() []frontEnd {
	return []frontEnd{
		{name: "nginx", example: "nginx.conf", start: startProgram, oldest: release{"nginx", "-v", "1.22.1"}, pages: true, lists: true, down: 503, slow: 503},
		{name: "Caddy", example: "Caddyfile", start: startProgram, oldest: release{"caddy", "version", "2.6.2"}, down: 503, slow: 503},
		{name: "HAProxy", example: "haproxy.cfg", start: startProgram, oldest: release{"haproxy", "-v", "2.6.12"}, down: 503, slow: 503},
		{name: "Traefik", example: "traefik.yml", start: startProgram, untold: true, lists: true, dots: true, pools: true, siteCaches: true, closed: true, down: 500, slow: 500, patience: 30*time.Second + patience},
		{name: "Envoy, HTTP", example: "envoy-http.yaml", start: startEnvoy, standIn: true, untold: true, lists: true, dots: true, keepsForged: true, down: 503, slow: 503},
		{name: "Envoy, gRPC", example: "envoy.yaml", start: startEnvoy, standIn: true, untoldChunks: true, lists: true, dots: true, keepsForged: true, down: 503, slow: 503},
		{name: "Go, net/http", example: "nethttp.go", start: startProgram, down: 503, slow: 503},
		{name: "Go, fasthttp", example: "fasthttp.go", start: startProgram, noUpgrades: true, down: 503, slow: 503},
	}
}

// find returns where a program is.
func (o options) find(name string) (string, error) {
	switch name {
	case "caddy":
		name = o.caddy
	case "traefik":
		name = cmp.Or(os.Getenv("TRAEFIK"), name)
	}
	path, err := rig.Find(name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotHere, err)
	}
	return path, nil
}

// startProgram starts a proxy that is a program, or a program of ours, which is built.
func startProgram(ctx context.Context, o options, example, addr string) *proxy {
	e := rig.Example{Name: filepath.Base(example), Listen: addr}
	p := rig.Got(e.Start(ctx, example, rig.Got(o.find(e.Program()))))
	return &proxy{addr, func() { _ = p.Stop() }} // it has nothing to lose
}

// release is a version of a program, and how the program says which it is.
type release struct{ program, asked, version string }

// check returns an error if a program is older than this release of it, which is the oldest that
// an example is right with. One that is not here is no error.
func (r release) check(ctx context.Context, o options, example string) error {
	path, err := o.find(r.program)
	if r.program == "" || err != nil {
		return nil
	}
	version := rig.Version(ctx, path, r.asked)
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
