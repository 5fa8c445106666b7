// Package profiles shows where the time and the memory of a running node go, in the format of Go's pprof: the
// processor's time for as long as is asked, memory, and waits for locks and for other goroutines.
//
// It is for the listener of operators, and only where they have asked for it: to know about waits costs every wait a
// little, from New on. A [Handler] is safe for use by several goroutines.
package profiles

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Path is below which profiles are found: "cpu" with the number of "seconds", and those named in Kinds.
const Path = "/debug/pprof/"

// Kinds are the profiles of what was until now, as Go calls them. CPU time is none of them: it is looked at from when it is
// asked for.
func Kinds() []string { return []string{"heap", "allocs", "mutex", "block", "goroutine"} }

const (
	// One of so many waits for a lock is noted.
	mutexPart = 10
	// Waits for other goroutines are noted as if one for each so long a time.
	blockEach = 10 * time.Microsecond

	defaultSeconds = 10
	mostSeconds    = 60
)

// Handler answers with profiles.
type Handler struct {
	cpu sync.Mutex // held while the processor's time is looked at, which Go does once at a time
}

// New returns a handler, and has waits be noted from now on, in the whole process.
func New() *Handler {
	runtime.SetMutexProfileFraction(mutexPart)
	runtime.SetBlockProfileRate(int(blockEach))
	return new(Handler)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "profiles are got with GET", http.StatusMethodNotAllowed)
		return
	}
	kind := strings.TrimPrefix(r.URL.Path, Path)
	if kind == "cpu" || kind == "profile" { // the second one is what Go's own tool asks for
		h.serveCPU(w, r)
		return
	}
	for _, k := range Kinds() {
		if k != kind {
			continue
		}
		var out bytes.Buffer
		if err := pprof.Lookup(k).WriteTo(&out, 0); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		send(w, out.Bytes())
		return
	}
	http.Error(w, fmt.Sprintf("there is no profile %q; there are cpu, %s", kind, strings.Join(Kinds(), ", ")), http.StatusNotFound)
}

func (h *Handler) serveCPU(w http.ResponseWriter, r *http.Request) {
	seconds := defaultSeconds
	if text := r.URL.Query().Get("seconds"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostSeconds {
			http.Error(w, fmt.Sprintf("seconds is %q; allowed are 1 to %d", text, mostSeconds), http.StatusBadRequest)
			return
		}
		seconds = n
	}
	if !h.cpu.TryLock() {
		http.Error(w, "somebody else is looking at the processor's time", http.StatusConflict)
		return
	}
	defer h.cpu.Unlock()
	var out bytes.Buffer
	if err := pprof.StartCPUProfile(&out); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
	case <-r.Context().Done():
	}
	pprof.StopCPUProfile()
	send(w, out.Bytes())
}

func send(w http.ResponseWriter, profile []byte) {
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(profile)
}
