package httpfront

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/node/room"
)

// failure is an answer to a visitor whom we cannot serve through no fault of
// the visitor's.
type failure struct {
	code  int
	title string // for programs; a constant, never anything from outside
	// cure is what helps where trying again does not, in HTML; else empty.
	cure string
}

var stopping = failure{code: http.StatusServiceUnavailable, title: "This server is stopping"}

func attrError(err error) slog.Attr { return slog.Any("error", err) }
func attrStatus(code int) slog.Attr { return slog.Int("status", code) }

// levelOf keeps a busy origin from filling the log with warnings.
func levelOf(f failure) slog.Level {
	if f.code == http.StatusServiceUnavailable {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// refuse answers a request that is not in order, in one line, and closes the
// connection: where the next request would start cannot be known.
func (f *Front) refuse(w *answer, no http1.Refusal) {
	h := w.begin(no.Code)
	h.Set("Cache-Control", "no-store")
	h.Set(stateField, stateRefused)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if no.To != "" {
		h.Set("Location", no.To)
	}
	w.buf = strconv.AppendInt(w.buf, int64(no.Code), 10)
	w.buf = append(w.buf, ' ')
	w.buf = append(w.buf, no.Reason...)
	w.buf = append(w.buf, '\n')
	w.last, w.linger = true, true
}

// turnedAway returns the answer to a client that has no place here, for now or at all,
// whose request has not been read. Who may try again is shown a page that does so by itself:
// nobody who was turned away shall have to find out that there is room again.
func (f *Front) turnedAway(no http1.Refusal) []byte {
	w := newAnswer()
	defer w.release()
	if no.Code == http.StatusServiceUnavailable || no.Code == http.StatusTooManyRequests {
		again := soon()
		h := w.begin(no.Code)
		h.Set("Cache-Control", "no-store")
		h.Set(stateField, stateRefused)
		h.Set("Retry-After", again)
		h.Set("Refresh", again)
		w.notice(page.Notice{
			Lang: lang.Of(lang.English), Title: "One moment", Frames: "'self'", Code: strconv.Itoa(no.Code),
			Text: "There are " + no.Reason + ".", Reloads: true,
		})
		w.last = true
	} else {
		f.refuse(w, no)
	}
	w.out = w.appendHead(w.out[:0], &request{Request: http1.Request{HTTP11: true}}, false)
	return slices.Concat(w.out, w.body()) // which are used again
}

// soon is after how many seconds such a page tries again: not all at once.
func soon() string { return strconv.Itoa(5 + rand.IntN(5)) }

// retryAfter is what clients are told who are refused for the moment.
const retryAfter = "2"

// fail answers with a plain page, in the visitor's language, that says that something
// is wrong on our side. in is the room of the request, nil if it has none. The answer and the log
// share an id, by which an operator finds what a visitor tells of. The page loads itself again where that may help, and does
// no harm: a site that takes too long would begin with the same once more.
func (f *Front) fail(w *answer, r *request, in Room, what failure, err error) {
	id := newRequestID()
	f.failures.log(f.cfg.Logger, settingsOf(in), what, err, r.Target, id)
	h := w.begin(what.code)
	h.forOneOnly()
	h.Set(stateField, stateFailed)
	h.Set("X-Request-Id", id)
	if what.code == http.StatusServiceUnavailable {
		h.Set("Retry-After", retryAfter)
	}
	if page.PrefersJSON(r.Accept) {
		h.Set("Content-Type", "application/json")
		w.write(`{"error":` + strconv.Quote(what.title) + `,"request":"` + id + "\"}\n")
		return
	}
	l := lang.Match(r.AcceptLanguage, lang.English)
	title, text := l.Text(lang.TitleUnreachable), l.Text(lang.MessageUnreachable)
	if what.cure != "" {
		l = lang.Of(lang.English)
		title, text = what.title, what.cure
	}
	reloads := r.Method == http.MethodGet && (what.code == http.StatusBadGateway || what.code == http.StatusServiceUnavailable)
	if reloads {
		h.Set("Refresh", soon())
	}
	w.notice(page.Notice{Lang: l, Title: title, Text: text, Code: strconv.Itoa(what.code) + ` · <code>` + id + `</code>`, Frames: "'self'", Reloads: reloads})
}

// settingsOf returns what a room is set to; nil if there is none.
func settingsOf(in Room) *room.Settings {
	if in == nil {
		return nil
	}
	return in.Settings()
}

// notice makes n the body of an answer of our own.
func (w *answer) notice(n page.Notice) {
	h := &w.head
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", n.Lang.Tag())
	h.Set("Content-Security-Policy", n.Policy())
	w.write(n.HTML())
}

// newRequestID returns an id that no other request has.
func newRequestID() string { return fmt.Sprintf("%016x", rand.Uint64()) }
