package middleware

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Revoke ends the session of the visitor on whose request q the nodes have said v. Handler
// does it where the answer has the field Ropeline-Command: revoke, or
// Cf-Waiting-Room-Command; it is for those that ask by themselves. The visitor's next
// request is that of somebody new.
//
// The cookie is for a field Set-Cookie of the answer, in place of v's. An error says that
// no session was ended: there is none, the room does not have revoke among its
// enabled-origin-commands, or no node answers within Config.Timeout each.
func (g *Gate) Revoke(ctx context.Context, q Question, v Verdict) (cookie string, err error) {
	fields := g.fields(q)
	if v.Cookie != "" { // the pass that the visitor has from now on
		pair, _, _ := strings.Cut(v.Cookie, ";")
		fields.Set("Cookie", pair)
	}
	// First the one that has let the visitor in: it alone may know the session yet.
	var asked []string
	if v.node != "" {
		asked = append(asked, v.node)
	}
	for _, node := range g.asked {
		if node != v.node {
			asked = append(asked, node)
		}
	}
	var errs []error
	for _, node := range asked {
		cookie, answered, err := g.revoke(ctx, node, fields)
		if err == nil {
			return cookie, nil
		}
		if errs = append(errs, err); answered || ctx.Err() != nil {
			break
		}
	}
	return "", errors.Join(errs...)
}

// revoke asks one node, and reports whether it knows the answer.
func (g *Gate) revoke(ctx context.Context, node string, fields http.Header) (cookie string, answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(node, askPath)+revokePath, nil)
	if err != nil {
		return "", false, err
	}
	req.Header = fields
	resp, err := g.client.Do(req)
	if err != nil {
		return "", false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return resp.Header.Get("Set-Cookie"), true, nil
	}
	why, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
	return "", resp.StatusCode < http.StatusInternalServerError, fmt.Errorf("%s: revoke: code %d: %s", node, resp.StatusCode, strings.TrimSpace(string(why)))
}

// Obey is Revoke for a command in an answer, whether or not the visitor still waits for it.
// It returns the cookie that the answer is to have then, "" for none. Why a session was
// not ended is logged, once a minute.
func (g *Gate) Obey(ctx context.Context, q Question, v Verdict) (cookie string) {
	cookie, err := g.Revoke(context.WithoutCancel(ctx), q, v)
	if err != nil {
		g.unrevoked.Do(func() {
			g.cfg.Logger.Warn("the site ends the session of a visitor, and no ropeline node does", "error", err)
		})
		return v.Cookie
	}
	return cookie
}
