package httpfront

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
)

// AdminConfig says how an Admin serves. Status is required.
type AdminConfig struct {
	// Listen is the TCP address to serve on. It must name a loopback address,
	// because whoever reaches it is not asked who they are. Default
	// "127.0.0.1:8081".
	Listen string
	// Listener is served on if it is set; Run closes it. It must be on loopback
	// too.
	Listener net.Listener
	// Status returns the node's view of things. It may be called often.
	Status func() node.Status
	// Origins returns what is known of the origins; nil leaves them out.
	Origins func() []upstream.Status
	// Certificates returns what is known of those shown to visitors; nil leaves them out.
	Certificates func() []certs.Status
	// Page returns the page of a room, or of an event of it, as Front.Page does; nil:
	// there are no previews.
	Page func(room, event string) (*page.Page, error)
	// Secrets returns what is known of the secrets of the mesh; nil leaves them out.
	Secrets func() any
	// Logger takes what goes wrong. The default is slog.Default().
	Logger *slog.Logger
}

// Admin answers operators and their tools on a listener of its own:
//
//	GET /healthz  200 while the process serves
//	GET /readyz   200 while the node takes traffic, else 503; the reason is the body
//	GET /status   what the node sees, as JSON (node.Status), its origins (upstream.Status), and
//	              its certificates for visitors (certs.Status)
//	GET /preview  the waiting page of a room as in the situation that the query says
//	POST /preview the same of the template that the body is
type Admin struct {
	cfg AdminConfig
}

// NewAdmin returns an Admin that Run will serve.
func NewAdmin(cfg AdminConfig) (*Admin, error) {
	if cfg.Status == nil {
		return nil, errors.New("admin: no status given")
	}
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:8081"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	addr := cfg.Listen
	if cfg.Listener != nil {
		addr = cfg.Listener.Addr().String()
	}
	if err := checkLoopback(addr); err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	return &Admin{cfg: cfg}, nil
}

// checkLoopback takes literal addresses and "localhost" only: what any other
// name stands for can change after it was looked at.
func checkLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listen on %q: want a loopback address such as 127.0.0.1, because requests are not authenticated", addr)
	}
	return nil
}

// Run serves until ctx ends. It returns nil then, and an error if it could not
// serve.
func (a *Admin) Run(ctx context.Context) error {
	ln := a.cfg.Listener
	if ln == nil {
		var lc net.ListenConfig
		var err error
		if ln, err = lc.Listen(ctx, "tcp", a.cfg.Listen); err != nil {
			return fmt.Errorf("admin: %w", err)
		}
	}
	srv := &http.Server{
		Handler:           a.handler(),
		ReadTimeout:       10 * time.Second,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(a.cfg.Logger.Handler(), slog.LevelWarn),
	}

	var wg sync.WaitGroup
	defer wg.Wait()
	served := make(chan struct{})
	wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-served:
		}
		// Answers are small, so requests under way end at once or never.
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if srv.Shutdown(stop) != nil {
			srv.Close()
		}
	})
	err := srv.Serve(ln)
	close(served)
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin: %w", err)
	}
	return nil
}

func (a *Admin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		adminText(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s := a.cfg.Status(); !s.Ready {
			adminText(w, http.StatusServiceUnavailable, "not ready: "+s.Reason)
			return
		}
		adminText(w, http.StatusOK, "ready")
	})
	mux.HandleFunc("GET /status", a.status)
	if a.cfg.Page != nil {
		mux.HandleFunc("GET /preview", a.preview)
		mux.HandleFunc("POST /preview", a.preview)
	}
	return localHost(http.NewCrossOriginProtection().Handler(mux))
}

// localHost refuses requests that were sent to another name. Without it, a web
// page could read the answers through a browser on this machine, by giving its
// own name our address (DNS rebinding).
func localHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			adminText(w, http.StatusMisdirectedRequest, "this listener answers to loopback names only")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a *Admin) status(w http.ResponseWriter, _ *http.Request) {
	s := a.cfg.Status()
	// Lists that are empty read as [] and not as null.
	if s.Rooms == nil {
		s.Rooms = []node.RoomStatus{}
	}
	if s.Peers == nil {
		s.Peers = []node.PeerStatus{}
	}
	all := struct {
		node.Status
		Origins      []upstream.Status `json:"origins"`
		Certificates []certs.Status    `json:"certificates"`
		Secrets      any               `json:"secrets,omitempty"`
	}{s, []upstream.Status{}, []certs.Status{}, nil}
	if a.cfg.Secrets != nil {
		all.Secrets = a.cfg.Secrets()
	}
	if a.cfg.Origins != nil {
		all.Origins = a.cfg.Origins()
	}
	if a.cfg.Certificates != nil {
		all.Certificates = append(all.Certificates, a.cfg.Certificates()...)
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		a.cfg.Logger.Error("status cannot be written", "error", err)
		adminText(w, http.StatusInternalServerError, "status cannot be written")
		return
	}
	adminHeader(w, "application/json")
	w.Write(append(b, '\n'))
}

func adminText(w http.ResponseWriter, code int, text string) {
	adminHeader(w, "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, text)
}

func adminHeader(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}
