package suite

import (
	"context"
	"path/filepath"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/serve"
)

// floor is what is left of a Go server when everything is taken away.
func floor() benchmark {
	b := benchmark{
		name: "floor", base: "fasthttp, 6 bytes",
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
			b.entries = append(b.entries, entry{server: k.name, what: size.name, start: func(ctx context.Context, p *place) (*subject, error) {
				return startAnswer(ctx, p, k.kind, serve.Plain(size.bytes))
			}})
		}
	}
	return b
}

// startAnswer starts a server in Go that gives one answer.
func startAnswer(ctx context.Context, p *place, kind serve.Kind, a serve.Answer) (*subject, error) {
	file := filepath.Join(p.dir, "answer.json")
	if err := a.Save(file); err != nil {
		return nil, err
	}
	sub, err := startServe(ctx, p, kind, "--answer", file)
	if sub != nil {
		sub.code = a.Status
	}
	return sub, err
}

// startServe starts one of the servers in Go that this program has in it.
func startServe(ctx context.Context, p *place, kind serve.Kind, args ...string) (*subject, error) {
	args = append([]string{"serve", string(kind), "--listen", p.listen}, args...)
	proc, err := rig.Start(ctx, rig.Command{Core: rig.OfServer, Env: []string{"GOMAXPROCS=1"}, Name: p.self, Args: args})
	return ready(ctx, p, proc, err)
}

// ready is a subject of one process, from when it answers.
func ready(ctx context.Context, p *place, proc *rig.Process, err error) (*subject, error) {
	if err != nil {
		return nil, err
	}
	sub := &subject{parts: []*rig.Process{proc}, heads: [][]byte{head(strangerCookie)}}
	return sub, proc.Await(ctx, p.url())
}
