package verdict

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ropeline/ropeline/httpfront"
)

// dialect is one way of asking for a verdict, and of telling it.
type dialect struct {
	name string

	// read says what the question is, but for what all dialects have in common. An
	// error is about how the proxy was set up, and says what to change.
	read func(r *http.Request, q *httpfront.Question) error

	// write tells the verdict.
	write func(w http.ResponseWriter, d *dialect, a *httpfront.Answer)

	// queued is the status code that the proxy takes for: hand this to the visitor; 0
	// means the one of what is handed.
	queued int

	// refused is the code for requests that are not in order; 0 means the one that
	// says why, which is 4xx.
	refused int

	noPage bool // what stands in the body is dropped
}

// handedBack is the field in which a front end hands a Set-Cookie value of an earlier
// answer back. All fields that begin so are ours; no visitor's reaches a Judge.
const handedBack = "Ropeline-Set-Cookie"

func (d *dialect) question(r *http.Request, peer netip.Addr) (*httpfront.Question, error) {
	q := &httpfront.Question{Peer: peer, NoPage: d.noPage, Fields: fieldsOf(r.Header)}
	q.For = strings.Join(r.Header.Values("X-Forwarded-For"), ", ")
	if err := d.read(r, q); err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return q, nil
}

func (d *dialect) malformed(code int) int { return cmp.Or(d.refused, code) }

// status returns the code by which the proxy understands an answer. It is 4xx for all
// who are not admitted.
func (d *dialect) status(a *httpfront.Answer) int {
	switch a.Outcome {
	case httpfront.Admitted:
		return http.StatusOK
	case httpfront.Malformed:
		return d.malformed(a.Status)
	case httpfront.Limited:
		if !d.noPage {
			return a.Status // which is 4xx, as the rule says
		}
	}
	return cmp.Or(d.queued, a.Status)
}

// told is what a proxy tells in a field of its own making: one value, or visitors
// could add to it.
func told(r *http.Request, name string) (string, error) {
	values := r.Header.Values(name)
	switch len(values) {
	case 0:
		return "", fmt.Errorf("the field %s is missing; the proxy has to set it", name)
	case 1:
		return values[0], nil
	}
	return "", fmt.Errorf("the field %s came %d times; the proxy has to replace what visitors send", name, len(values))
}

// readTold reads what a proxy tells of the visitor's request in fields of these names, and in those
// by which all tell of host and scheme.
func readTold(method, target string) func(r *http.Request, q *httpfront.Question) error {
	return func(r *http.Request, q *httpfront.Question) (err error) {
		for _, f := range []struct {
			name string
			dst  *string
		}{{method, &q.Method}, {target, &q.Target}, {"X-Forwarded-Host", &q.Host}, {"X-Forwarded-Proto", &q.Scheme}} {
			if *f.dst, err = told(r, f.name); err != nil {
				return err
			}
		}
		return nil
	}
}

// fieldsOf yields the fields of a header.
func fieldsOf(h http.Header) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for name, values := range h {
			for _, v := range values {
				if !yield(name, v) {
					return
				}
			}
		}
	}
}

// writeAnswer tells a verdict with all that the visitor is to see.
func writeAnswer(w http.ResponseWriter, d *dialect, a *httpfront.Answer) {
	h := w.Header()
	for _, f := range a.Fields {
		h.Add(f.Name, f.Value)
	}
	writeHead(w, d.status(a), a)
	w.Write(a.Body)
}

// privateAnswer keeps an answer that carries a pass out of shared caches.
const privateAnswer = "private, no-store"

// writeHead writes what all verdicts have.
func writeHead(w http.ResponseWriter, code int, a *httpfront.Answer) {
	h := w.Header()
	if len(h["Cache-Control"]) == 0 {
		h.Set("Cache-Control", "no-store") // no verdict holds for another request
	}
	if a.Cookie != "" {
		h.Set("Set-Cookie", a.Cookie)
	}
	if a.Proof != "" {
		h.Set(a.ProofField, a.Proof)
	}
	w.WriteHeader(code)
}
