//go:build linux

package heavy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ropeline/ropeline/bench/rig"
)

// stack is a node in front of an origin.
type stack struct {
	node, origin *rig.Process
	addr         string // where visitors connect
	dir          string
}

// newStack starts both and waits until the node takes requests. What it returns has to be
// stopped, after an error too.
func newStack(ctx context.Context, p plan) (s *stack, err error) {
	s = &stack{}
	if s.dir, err = os.MkdirTemp("", "ropeline-heavy-"); err != nil {
		return s, err
	}
	out, in := io.Pipe()
	if s.origin, err = rig.Start(ctx, rig.Command{Name: p.origin[0], Args: p.origin[1:], Out: in}); err != nil {
		return s, err
	}
	site, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return s, fmt.Errorf("the origin: %w", err)
	}
	var ports [2]string
	for i := range ports {
		if ports[i], err = rig.Free(); err != nil {
			return s, err
		}
	}
	s.addr = ports[0]
	s.node, err = rig.Start(ctx, rig.Command{Name: p.binary, Args: []string{"run", "--origin", strings.TrimSpace(site), "--listen", ports[0], "--admin", ports[1],
		"--data-dir", s.dir, "--total-active-users", "1000000", "--new-users-per-minute", "1000000"}})
	if err != nil {
		return s, err
	}
	return s, s.node.Await(ctx, "http://"+ports[1]+"/readyz")
}

// stop ends both processes.
func (s *stack) stop() error {
	var errs []error
	for _, p := range []*rig.Process{s.node, s.origin} {
		if p != nil {
			errs = append(errs, p.Stop())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
