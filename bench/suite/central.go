package suite

import (
	"context"
	_ "embed" // of the two programs in Lua
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/redis"
)

//go:embed central.lua
var centralNginx string

//go:embed central_redis.lua
var centralRedis string

// central is a waiting room with a centre, as they are made of nginx and Redis.
func central() benchmark {
	needs := []string{"nginx", rig.LuaModule, "redis-server"}
	const room = "nginx, Lua and Redis"
	return benchmark{
		name: "central", site: true, base: room + ", waiting",
		question: "What does a request cost in a waiting room of nginx and Redis?",
		method: "A few lines of Lua in nginx, and one script in Redis for each request: sorted sets of who is inside and who waits, the place in line, an id in a cookie. " +
			"The page is as long as that of ropeline. nginx and Redis share the core, and the time of both counts. 1,000 visitors, inside or waiting behind one who is. " +
			"Unlike passes, its cookies are not encrypted, and its Redis keeps nothing on disk.",
		entries: []entry{
			{server: room, what: "waiting", needs: needs, start: func(ctx context.Context, p *place) (*subject, error) { return startCentral(ctx, p, false) }},
			{server: "ropeline", what: "waiting", start: func(ctx context.Context, p *place) (*subject, error) { return startWaiting(ctx, p, asPage, 1000) }},
			{server: room, what: "admitted", needs: needs, start: func(ctx context.Context, p *place) (*subject, error) { return startCentral(ctx, p, true) }},
			{server: "ropeline", what: "admitted", start: startAdmitted},
		},
		checks: []check{
			{text: "processor time of a visitor who waits by that of a room with a centre", most: 1, rows: []string{"ropeline, waiting", room + ", waiting"}, of: cpuRatio},
			{text: "processor time of a visitor who is inside by that of a room with a centre", most: 1, rows: []string{"ropeline, admitted", room + ", admitted"}, of: cpuRatio},
		},
	}
}

// pageSize is about what ropeline's built-in page has.
const pageSize = 6950

// startCentral starts Redis and nginx, and has visitors come.
func startCentral(ctx context.Context, p *place, inside bool) (sub *subject, err error) {
	store, err := rig.Free()
	if err != nil {
		return nil, err
	}
	proc, err := startRedis(ctx, store, p.dir)
	if err != nil {
		return nil, err
	}
	sub = &subject{parts: []*rig.Process{proc}}
	if err := awaitRedis(ctx, proc, store); err != nil {
		return sub, err
	}
	config, err := centralConfig(p, store, inside)
	if err != nil {
		return sub, err
	}
	front, err := rig.StartNginx(ctx, rig.OfServer, filepath.Join(p.dir, "nginx"), config)
	if err != nil {
		return sub, err
	}
	sub.parts = append(sub.parts, front)
	if err := front.Await(ctx, p.url()); err != nil { // who asks takes the one place there is
		return sub, err
	}
	sub.probe = isCentralPage
	if inside {
		sub.probe = isSite
	}
	cookies, err := newcomers(ctx, p.listen, "*/*", admittedVisitors, admittedVisitors)
	for _, c := range cookies {
		sub.heads = append(sub.heads, head(c))
	}
	return sub, err
}

func isCentralPage(resp *http.Response) error {
	if resp.Header.Get("Refresh") == "" {
		return errors.New("the visitor is not waiting")
	}
	return nil
}

// centralConfig gives the script to Redis, and returns what nginx is to do.
func centralConfig(p *place, store string, inside bool) (c rig.NginxConfig, err error) {
	r, err := redis.Dial(store)
	if err != nil {
		return c, err
	}
	defer r.Close()
	script, err := r.Do("SCRIPT", "LOAD", centralRedis)
	if err != nil {
		return c, err
	}
	_, port, err := net.SplitHostPort(store)
	if err != nil {
		return c, err
	}
	most := 1
	if inside {
		most = 1_000_000
	}
	half := strings.Repeat("x", pageSize/2)
	lua := fmt.Sprintf("local port, script, most, before, after = %s, %q, %d, %q, %q\n%s", port, script, most, "<!doctype html><p>"+half, half, centralNginx)
	file := filepath.Join(p.dir, "central.lua")
	if err := os.WriteFile(file, []byte(lua), 0o644); err != nil {
		return c, err
	}
	for _, dir := range []string{p.dir, filepath.Dir(p.dir)} { // nginx reads it as somebody else
		if err := os.Chmod(dir, 0o755); err != nil {
			return c, err
		}
	}
	c = rig.NginxProxy(p.listen, p.site, "", fmt.Sprintf("access_by_lua_file %s;", file))
	c.Main = fmt.Sprintf("load_module %s;\nload_module %s;", filepath.Join(filepath.Dir(rig.LuaModule), "ndk_http_module.so"), rig.LuaModule)
	return c, nil
}
