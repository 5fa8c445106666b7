// Package status answers operators and their tools about one node: whether it lives and is ready,
// what it sees, and how the waiting pages of its rooms look.
package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
)

// Config says what is told. All but Logger is required.
type Config struct {
	// Status returns the node's view of things. It may be called often.
	Status func() node.Status
	// Alive returns what is wrong with the node if a restart would mend it.
	Alive func() error
	// Ready returns why the node takes no traffic; nil: it does.
	Ready func() error
	// NoTickets returns why the node gives no tickets although it takes traffic: what is wrong with its store, or its clock.
	NoTickets func() error
	// Origins returns what is known of the origins.
	Origins func() []upstream.Status
	// Certificates returns what is known of those shown to visitors.
	Certificates func() []certs.Status
	// Page returns the page of a room, or of an event of it, as Front.Page does.
	Page func(room, event string) (*page.Page, error)
	// Secrets returns what is known of the secrets of the mesh.
	Secrets func() any
	// Logger takes what goes wrong. The default is slog.Default().
	Logger *slog.Logger
}

// handler is what answers.
type handler struct{ cfg Config }

// New returns what answers operators and their tools:
//
//	GET /healthz  200 while the node goes on, else 503; the reason is the body
//	GET /readyz   200 while the node takes traffic, else 503; the reason is the body
//	GET /status   what the node sees, as JSON (node.Status), its origins (upstream.Status), and
//	              its certificates for visitors (certs.Status)
//	GET /preview  the waiting page of a room as in the situation that the query says
//	POST /preview the same of the template that the body is
//
// Who may ask is not looked at here.
func New(cfg Config) http.Handler {
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	a := &handler{cfg}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.cfg.Alive(); err != nil {
			writeText(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		writeText(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.cfg.Ready(); err != nil {
			writeText(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		if err := a.cfg.NoTickets(); err != nil {
			// Visitors who are in go on here.
			writeText(w, http.StatusOK, "ready, but it gives no tickets: "+err.Error())
			return
		}
		writeText(w, http.StatusOK, "ready")
	})
	mux.HandleFunc("GET /status", a.status)
	mux.HandleFunc("GET /preview", a.preview)
	mux.HandleFunc("POST /preview", a.preview)
	return mux
}

func (a *handler) status(w http.ResponseWriter, _ *http.Request) {
	s := a.cfg.Status()
	// Lists that are empty read as [] and not as null.
	s.Rooms, s.Peers = append([]node.RoomStatus{}, s.Rooms...), append([]node.PeerStatus{}, s.Peers...)
	all := struct {
		node.Status
		Origins      []upstream.Status `json:"origins"`
		Certificates []certs.Status    `json:"certificates"`
		Secrets      any               `json:"secrets,omitempty"`
	}{s, a.cfg.Origins(), append([]certs.Status{}, a.cfg.Certificates()...), a.cfg.Secrets()}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		a.cfg.Logger.Error("status cannot be written", "error", err)
		writeText(w, http.StatusInternalServerError, "status cannot be written")
		return
	}
	writeHeader(w, "application/json")
	w.Write(append(b, '\n'))
}

func writeText(w http.ResponseWriter, code int, text string) {
	writeHeader(w, "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, text)
}

func writeHeader(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}
