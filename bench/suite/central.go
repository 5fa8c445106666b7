package suite

import (
	"bytes"
	_ "embed" // of the two programs in Lua
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

//go:embed central.lua
var centralNginx string

//go:embed central_redis.lua
var centralRedis string

// central is a waiting room with a centre, as they are made of nginx and Redis.
func central() benchmark {
	needs := []string{"nginx", rig.LuaModule, "redis-server"}
	const room = "nginx, Lua and Redis"
	byCentre := measurement.Unit{Name: byBase, Meaning: "processor time by that of " + room + " in the same round and situation", Better: "lower"}
	return benchmark{
		name: "central", site: true, ratios: []ratio{{byCentre, func(e *entry) string { return room + ", " + e.what }, byCPU}},
		question: "What does a request cost in a waiting room of nginx and Redis?",
		method: "A few lines of Lua in nginx, and one script in Redis for each request: sorted sets of who is inside and who waits, the place in line, an id in a cookie. " +
			"The page is as long as that of ropeline. nginx and Redis share the core, and the time of both counts. 1,000 visitors, inside or waiting behind one who is. " +
			"Unlike passes, its cookies are not encrypted, and its Redis keeps nothing on disk.",
		entries: []entry{
			{server: room, what: "waiting", needs: needs, start: func(p *place) *subject { return startCentral(p, false) }},
			{server: "ropeline", what: "waiting", start: func(p *place) *subject { return startWaiting(p, asPage, 1000) }},
			{server: room, what: "admitted", needs: needs, start: func(p *place) *subject { return startCentral(p, true) }},
			{server: "ropeline", what: "admitted", start: startAdmitted},
		},
		bounds: []measurement.Bound{
			{Row: "ropeline, waiting", Unit: byBase, Most: 1, Text: "processor time of a visitor who waits by that of a room with a centre"},
			{Row: "ropeline, admitted", Unit: byBase, Most: 1, Text: "processor time of a visitor who is inside by that of a room with a centre"},
		},
	}
}

// pageSize is about what ropeline's built-in page has.
const pageSize = 6950

// startCentral starts Redis and nginx, and has visitors come.
func startCentral(p *place, inside bool) *subject {
	store := rig.Got(rig.Free())
	proc := p.runs(rig.StartRedis(p.ctx, rig.OfServer, p.dir, store))
	front := p.runs(rig.StartNginx(p.ctx, rig.OfServer, filepath.Join(p.dir, "nginx"), centralConfig(p, store, inside)))
	rig.Must(front.Await(p.ctx, p.url())) // who asks takes the one place there is
	sub := &subject{parts: []*rig.Process{proc, front}, probe: isCentralPage}
	if inside {
		sub.probe = isSite
	}
	for _, c := range rig.Got(newcomers(p.ctx, p.listen, "*/*", "", admittedVisitors, admittedVisitors)) {
		sub.heads = append(sub.heads, head(c))
	}
	return sub
}

func isCentralPage(resp *http.Response) error {
	if resp.Header.Get("Refresh") == "" {
		return errors.New("the visitor is not waiting")
	}
	return nil
}

// centralConfig gives the script to Redis, and returns what nginx is to do.
func centralConfig(p *place, store string, inside bool) rig.NginxConfig {
	script := loadScript(store)
	_, port, _ := strings.Cut(store, ":")
	most := 1
	if inside {
		most = 1_000_000
	}
	half := strings.Repeat("x", pageSize/2)
	file := p.readable("central.lua", fmt.Appendf(nil, "local port, script, most, before, after = %s, %q, %d, %q, %q\n%s", port, script, most, "<!doctype html><p>"+half, half, centralNginx))
	c := rig.NginxProxy(p.listen, p.site, "", fmt.Sprintf("access_by_lua_file %s;", file))
	c.Main = fmt.Sprintf("load_module %s;\nload_module %s;", filepath.Join(filepath.Dir(rig.LuaModule), "ndk_http_module.so"), rig.LuaModule)
	return c
}

// loadScript gives the script to Redis, and returns its name there.
func loadScript(store string) string {
	c := rig.Got(net.DialTimeout("tcp", store, askTime))
	defer c.Close()
	rig.Must(c.SetDeadline(time.Now().Add(askTime)))
	rig.Got(fmt.Fprintf(c, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%d\r\n%s\r\n", len(centralRedis), centralRedis))
	const before, name = "$40\r\n", 40
	reply := make([]byte, len(before)+name)
	rig.Got(io.ReadFull(c, reply))
	if !bytes.HasPrefix(reply, []byte(before)) {
		rig.Must(fmt.Errorf("redis: the answer to a script is %q", reply))
	}
	return string(reply[len(before):])
}

// readable writes a file that nginx reads, whose workers are somebody else.
func (p *place) readable(name string, text []byte) string {
	file := filepath.Join(p.dir, name)
	rig.Must(errors.Join(os.WriteFile(file, text, 0o644), os.Chmod(p.dir, 0o755), os.Chmod(filepath.Dir(p.dir), 0o755)))
	return file
}
