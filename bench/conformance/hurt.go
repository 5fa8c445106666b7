//go:build unix

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// patience is how long proxies wait for a verdict at most, as the examples say, and as
// long again for what comes on top.
const patience = 10 * time.Second

// slow stops the node's process, as a machine that swaps does, and lets it go on.
func slow(t *try) (string, error) {
	v, err := t.fill()
	if err != nil {
		return "", err
	}
	if err := t.stack.node.Pause(); err != nil {
		return "", err
	}
	if err := t.silent(); err != nil {
		return "", err
	}
	a, err := v.ask("GET")
	err = errors.Join(err, t.stack.node.Resume())
	if err == nil && a.code != t.fe.slow {
		err = fmt.Errorf("code %d, want %d", a.code, t.fe.slow)
	}
	limit := patience
	if t.fe.patience > 0 {
		limit = t.fe.patience
	}
	if err == nil && a.took > limit {
		err = fmt.Errorf("the answer took %v", a.took)
	}
	err = errors.Join(err, t.unseen())
	if err == nil {
		_, err = t.until(v, answer.fromSite)
	}
	return a.String(), err
}

// silent waits until the node does not answer: a signal takes a moment.
func (t *try) silent() error {
	for range 100 {
		ctx, cancel := context.WithTimeout(t.ctx, 200*time.Millisecond)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.stack.node.verdicts, nil)
		if err == nil {
			var resp *http.Response
			if resp, err = t.stack.client.Do(req); err == nil {
				err = resp.Body.Close()
			}
		}
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
	}
	return errors.New("the node answers although it was stopped")
}

// down kills the node's process. It is the last case.
func down(t *try) (string, error) {
	v, err := t.fill()
	if err != nil {
		return "", err
	}
	if err := t.stack.node.Kill(); err != nil {
		return "", err
	}
	a, err := v.ask("GET")
	if err == nil && a.code != t.fe.down {
		err = fmt.Errorf("code %d, want %d", a.code, t.fe.down)
	}
	return a.String(), errors.Join(err, t.unseen())
}

func downAndOpen(t *try) (string, error) {
	if t.fe.closed {
		a, err := t.visitor().ask("GET")
		if err == nil && a.code != t.fe.down {
			err = fmt.Errorf("code %d, want %d", a.code, t.fe.down)
		}
		return a.String(), errors.Join(err, t.unseen())
	}
	if err := t.stack.node.Kill(); err != nil {
		return "", err
	}
	a, err := t.visitor().ask("GET")
	got := t.stack.site.take(t.host)
	switch {
	case err != nil:
	case !a.fromSite() || len(got) != 1:
		err = fmt.Errorf("the site's answer is wanted: %v", a)
	case told(got[0]) != nil:
		err = told(got[0])
	case !t.fe.keepsForged && len(got[0].header.Values("Ropeline-Proof")) != 0:
		err = fmt.Errorf("the visitor's own proof has reached the site")
	}
	return a.String(), err
}
