package httpfront

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

const (
	// failuresTold is how many failures of a kind are logged in failuresEvery, each in a line of its own. While a
	// site is down every request fails, and lines of all of them would fill a disk.
	failuresTold  = 10
	failuresEvery = time.Minute
	kindsMax      = 1000

	pathShown = 200 // bytes of a request's path in a line
)

// failureKind is what failures have in common that are told together. There are as many kinds as rooms times
// titles, which are constants; those of rooms that are gone are forgotten where there are kindsMax.
type failureKind struct {
	title string
	room  string // name; "": no room
}

// failures logs requests that failed, so many of a kind. The zero value is ready; any goroutine may call its methods.
type failures struct {
	mu    sync.Mutex // guards the following
	kinds map[failureKind]*failureCount
}

// failureCount is how many failures of a kind there were lately.
type failureCount struct {
	since   time.Time
	told    int // from then on
	leftOut int // since a line last told of some
}

// take counts a failure, and reports whether it is to be told, and how many were not that no line has told of.
func (f *failures) take(kind failureKind, now time.Time) (leftOut int, told bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.kinds[kind]
	if c == nil {
		c = &failureCount{since: now}
		if f.kinds == nil {
			f.kinds = map[failureKind]*failureCount{}
		}
		if len(f.kinds) >= kindsMax {
			maps.DeleteFunc(f.kinds, func(_ failureKind, c *failureCount) bool { return now.Sub(c.since) >= failuresEvery && c.leftOut == 0 })
		}
		f.kinds[kind] = c
	}
	if now.Sub(c.since) >= failuresEvery {
		c.since, c.told = now, 0
	}
	if c.told >= failuresTold {
		c.leftOut++
		return c.leftOut, false
	}
	c.told++
	leftOut, c.leftOut = c.leftOut, 0
	return leftOut, true
}

// log tells of a request of a room, nil for none, that failed. Of what the visitor has asked for it tells the path, which says
// what of the site has failed: what stands in a query is for the access log alone.
func (f *failures) log(log *slog.Logger, in *room.Settings, what failure, err error, target []byte, id string) {
	level := levelOf(what)
	if !log.Enabled(context.Background(), level) {
		return
	}
	kind := failureKind{title: what.title}
	attrs := []slog.Attr{attrError(err), attrStatus(what.code)}
	if in != nil {
		kind.room = in.Name
		attrs = append(attrs, slog.String("room", in.Name))
	}
	f.tell(log, level, kind, "request failed", append(attrs, slog.String("path", pathToTell(target)), slog.String("request", id))...)
}

// tell logs a line of a kind, if it is not one of too many.
func (f *failures) tell(log *slog.Logger, level slog.Level, kind failureKind, message string, attrs ...slog.Attr) {
	leftOut, told := f.take(kind, time.Now())
	if !told {
		if leftOut == 1 {
			time.AfterFunc(failuresEvery, func() { f.tellRest(log, level, kind) })
		}
		return
	}
	if leftOut > 0 {
		attrs = append(attrs, slog.Int("left_out", leftOut))
	}
	log.LogAttrs(context.Background(), level, message, attrs...)
}

// tellRest tells how many of a kind were left out, if no line has done so: none may fail any more that could.
func (f *failures) tellRest(log *slog.Logger, level slog.Level, kind failureKind) {
	f.mu.Lock()
	c := f.kinds[kind]
	n := c.leftOut
	c.leftOut = 0
	f.mu.Unlock()
	if n > 0 {
		log.LogAttrs(context.Background(), level, "more of the same kind were not logged", slog.String("kind", kind.title), slog.String("room", kind.room), slog.Int("left_out", n))
	}
}

// pathToTell returns the path of a target, and of a long one its beginning.
func pathToTell(target []byte) string {
	path, _, _ := bytes.Cut(target, []byte("?"))
	if len(path) > pathShown {
		return strings.ToValidUTF8(string(path[:pathShown]), "") + "…"
	}
	return string(path)
}
