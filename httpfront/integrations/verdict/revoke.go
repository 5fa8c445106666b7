package verdict

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ropeline/ropeline/httpfront"
)

// revoke ends the session of a visitor because the site says so. In front of a site
// that stands behind another proxy, no answer of the site passes through us, in which
// it could say so.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request, peer netip.Addr) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		text(w, http.StatusMethodNotAllowed, "a session is ended with POST")
		return
	}
	q := &httpfront.Question{Peer: peer, Method: http.MethodGet, Target: "/", Fields: fieldsOf(r.Header), NoPage: true}
	q.For = strings.Join(r.Header.Values("X-Forwarded-For"), ", ") // tells which of several schemes is the visitor's
	var err error
	if q.Host, err = told(r, "X-Forwarded-Host"); err == nil {
		q.Scheme, err = told(r, "X-Forwarded-Proto")
	}
	if err != nil {
		text(w, http.StatusBadRequest, "revoke: "+err.Error())
		return
	}
	if uri := r.Header.Get("X-Forwarded-Uri"); uri != "" {
		q.Target = uri
	}
	cookie, err := s.cfg.Judge.Revoke(q)
	switch {
	case errors.Is(err, httpfront.ErrRevokeDisabled):
		text(w, http.StatusForbidden, err.Error())
	case err != nil:
		text(w, http.StatusNotFound, err.Error())
	default:
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Set-Cookie", cookie)
		w.WriteHeader(http.StatusNoContent)
	}
}
