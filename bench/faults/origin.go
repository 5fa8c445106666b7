//go:build linux

package main

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// origin is the site behind the mesh. It can be made to misbehave.
type origin struct {
	mood   atomic.Int32
	served atomic.Int64 // answers that were good
}

const (
	well  int32 = iota
	hangs       // until the node gives up
	fails       // with a status 500
	slow        // ten megabytes, a piece at a time
)

const page = "<!doctype html><html lang=en><title>The shop</title><h1>Welcome</h1></html>"

// ServeHTTP implements http.Handler.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch o.mood.Load() {
	case hangs:
		<-r.Context().Done()
		return
	case fails:
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	case slow:
		piece := make([]byte, 1<<20)
		for range 10 {
			if _, err := w.Write(piece); err != nil {
				return
			}
			select {
			case <-time.After(200 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
		}
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := io.WriteString(w, page); err == nil {
		o.served.Add(1)
	}
}
