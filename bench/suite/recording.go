package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/bench/rig"
)

// recording is an answer that was recorded, to be given again byte by byte.
type recording struct {
	Status int         `json:"status"`
	Fields [][2]string `json:"fields"` // without those that a server writes by itself: Date, Content-Length, Connection
	Body   []byte      `json:"body"`
}

// record takes down resp, whose body it reads and closes.
func record(resp *http.Response) (recording, error) {
	defer resp.Body.Close()
	a := recording{Status: resp.StatusCode}
	for name, values := range resp.Header {
		if slices.Contains([]string{"Date", "Content-Length", "Connection", "Server"}, name) {
			continue
		}
		for _, v := range values {
			a.Fields = append(a.Fields, [2]string{name, v})
		}
	}
	slices.SortFunc(a.Fields, func(x, y [2]string) int { return slices.Compare(x[:], y[:]) })
	var err error
	a.Body, err = io.ReadAll(resp.Body)
	return a, err
}

// startFasthttp starts a server of fasthttp that gives one answer: what is left of a Go server when everything that
// ropeline does beyond its library is taken away.
func startFasthttp(p *place, a recording) *subject {
	file := filepath.Join(p.dir, "answer.json")
	rig.Must(os.WriteFile(file, rig.Got(json.Marshal(a)), 0o600))
	sub := p.ready(rig.Start(p.ctx, rig.Command{
		Core: rig.OfServer, Env: []string{"GOMAXPROCS=1"}, Name: p.run.Self, Args: []string{"serve", "--listen", p.listen, "--answer", file},
	}))
	sub.code = a.Status
	return sub
}

// Serve is that server, in a process of its own, so that its time can be told apart. It answers at host:port what is
// recorded in a file, until ctx ends.
func Serve(ctx context.Context, listen, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var a recording
	if err := json.Unmarshal(text, &a); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var made fasthttp.Response
	made.SetStatusCode(a.Status)
	for _, f := range a.Fields {
		made.Header.Add(f[0], f[1])
	}
	s := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			made.Header.CopyTo(&ctx.Response.Header)
			ctx.Response.SetBodyRaw(a.Body)
		},
		WriteBufferSize:       16 << 10, // one of the library's own size would make two writes of a page
		NoDefaultServerHeader: true, DisableHeaderNamesNormalizing: true,
	}
	defer context.AfterFunc(ctx, func() { _ = s.Shutdown() })()
	return s.ListenAndServe(listen)
}
