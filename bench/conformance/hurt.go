//go:build unix

package conformance

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// patience is how long proxies wait for a verdict at most, as the examples say, and as
// long again for what comes on top.
const patience = 10 * time.Second

// slow stops the node's process, as a machine that swaps does, and lets it go on.
func slow(t *try) string {
	rig.Must(t.stack.node.Pause())
	t.silent()
	a, err := t.in.try("GET", "")
	rig.Must(errors.Join(err, t.stack.node.Resume()))
	t.must(a.code == t.fe.slow, "code %d, want %d", a.code, t.fe.slow)
	t.must(a.took <= cmp.Or(t.fe.patience, patience), "the answer took %v", a.took)
	t.unseen()
	t.until(t.in, answer.fromSite)
	return a.String()
}

// silent waits until the node does not answer: a signal takes a moment.
func (t *try) silent() {
	for range 100 {
		ctx, cancel := context.WithTimeout(t.ctx, 200*time.Millisecond)
		resp, err := t.stack.client.Do(rig.Got(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.stack.node.verdicts, nil)))
		if err == nil {
			err = resp.Body.Close()
		}
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
	}
	t.must(false, "the node answers although it was stopped")
}

// down kills the node's process. It is the last case.
func down(t *try) string {
	rig.Must(t.stack.node.Kill())
	return t.isDown(t.in)
}

func (t *try) isDown(v *visitor) string {
	a := v.ask("GET")
	t.must(a.code == t.fe.down, "code %d, want %d", a.code, t.fe.down)
	t.unseen()
	return a.String()
}

func downAndOpen(t *try) string {
	rig.Must(t.stack.node.Kill())
	if t.fe.closed {
		return t.isDown(t.visitor())
	}
	a := t.visitor().ask("GET")
	got := t.stack.site.take(t.host)
	t.must(a.fromSite() && len(got) == 1, "the site's answer is wanted: %v", a)
	t.told(got[0])
	t.must(t.fe.keepsForged || len(got[0].header.Values("Ropeline-Proof")) == 0, "the visitor's own proof has reached the site")
	return a.String()
}
