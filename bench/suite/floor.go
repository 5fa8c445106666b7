package suite

import (
	"path/filepath"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/serve"
)

// floor is what is left of a Go server when everything is taken away.
func floor() benchmark {
	b := benchmark{
		name: "floor", ratios: byRow("fasthttp, 6 bytes"),
		question: "What does an answer cost that takes no thought: the libraries and the kernel alone?",
		method:   "Every request gets the same bytes, 6 or 4,096 of them. Bare epoll looks for the end of a head and writes; it reads no request. The server of fasthttp has a write buffer of 16 KiB, as with its own of 4 KiB a page takes two writes.",
	}
	for _, size := range []struct {
		bytes int
		name  string
	}{{6, "6 bytes"}, {4096, "4 KiB"}} {
		for _, k := range []struct {
			kind serve.Kind
			name string
		}{{serve.Bare, "bare epoll"}, {serve.Fasthttp, "fasthttp"}, {serve.NetHTTP, "net/http"}} {
			b.entries = append(b.entries, entry{server: k.name, what: size.name, start: func(p *place) *subject {
				return startAnswer(p, k.kind, serve.Plain(size.bytes))
			}})
		}
	}
	return b
}

// startAnswer starts a server in Go that gives one answer.
func startAnswer(p *place, kind serve.Kind, a serve.Answer) *subject {
	file := filepath.Join(p.dir, "answer.json")
	rig.Must(a.Save(file))
	sub := p.ready(p.serve(kind, "--answer", file))
	sub.code = a.Status
	return sub
}

// serve starts one of the servers in Go that this program has in it.
func (p *place) serve(kind serve.Kind, args ...string) (*rig.Process, error) {
	args = append([]string{"serve", string(kind), "--listen", p.listen}, args...)
	return rig.Start(p.ctx, rig.Command{Core: rig.OfServer, Env: []string{"GOMAXPROCS=1"}, Name: p.run.Self, Args: args})
}
