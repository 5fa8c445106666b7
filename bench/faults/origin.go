//go:build linux

package faults

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// origin is the site behind the mesh. It can be made to misbehave.
type origin struct {
	mood   atomic.Int32
	one    atomic.Int64 // of so many requests meets the mood
	served atomic.Int64 // answers that were good
	came   atomic.Int64 // requests while there was a mood
}

const (
	well  int32 = iota
	hangs       // until the node gives up
	fails       // with a status 500
	slow        // ten megabytes, a piece at a time
)

const page = "<!doctype html><html lang=en><title>The shop</title><h1>Welcome</h1></html>"

// be has one of so many requests meet a mood from now on.
func (o *origin) be(mood int32, one int64) {
	o.one.Store(one)
	o.mood.Store(mood)
}

// ServeHTTP implements http.Handler.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mood := o.mood.Load()
	if mood == well || o.came.Add(1)%o.one.Load() != 0 {
		o.serve(w)
		return
	}
	switch mood {
	case hangs:
		<-r.Context().Done()
	case fails:
		http.Error(w, "broken", http.StatusInternalServerError)
	case slow:
		drip(w, r)
	}
}

func (o *origin) serve(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := io.WriteString(w, page); err == nil {
		o.served.Add(1)
	}
}

func drip(w http.ResponseWriter, r *http.Request) {
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
}
