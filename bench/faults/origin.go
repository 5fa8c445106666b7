//go:build linux

package faults

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
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
		if _, err := w.Write(piece); err != nil || rig.Sleep(r.Context(), 200*time.Millisecond) != nil {
			return
		}
	}
}

// backWithin is how long visitors may be kept from an origin that is well again.
const backWithin = 5 * time.Second

func sickOrigin(r *run) {
	moods := []struct {
		mood int32
		one  int64
		what string
	}{{fails, 1, "answers with 500"}, {hangs, 1, "hangs"}, {slow, 20, "is slow"}}
	r.rng.Shuffle(len(moods), func(i, j int) { moods[i], moods[j] = moods[j], moods[i] })
	for _, m := range moods {
		came := r.origin.came.Load()
		r.mark("the origin %s", m.what)
		r.origin.be(m.mood, m.one)
		r.sleep(8 * time.Second)
		met := r.origin.came.Load() - came
		if met == 0 {
			rig.Must(fmt.Errorf("no request came to the origin while it %s", m.what))
		}
		served, began := r.origin.served.Load(), time.Now()
		r.origin.be(well, 1)
		if !r.until(backWithin, 20*time.Millisecond, func() bool { return r.origin.served.Load() > served }) {
			rig.Must(fmt.Errorf("no visitor reaches the origin %v after it is well again", backWithin))
		}
		r.note("it %s: %d requests came, the first good answer %s after", m.what, met, ms(time.Since(began)))
		r.sleep(4 * time.Second)
	}
	r.sleep(healed)
}
