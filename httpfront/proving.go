package httpfront

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/httpfront/gate/proof"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// JWKSPath is where the front serves the public keys of its proofs, of every host, if it
// makes any. Nothing that is asked for there reaches the origin.
const JWKSPath = "/.well-known/ropeline/jwks.json"

// JWKSAge is for how long caches may keep the public keys. A key is published for much
// longer before it is used.
const JWKSAge = time.Minute

// prove gives a request that is admitted its proof. One that cannot be signed costs the
// proof and not the visit: the origin knows what to do with who has none.
func (f *Front) prove(r *request, s *room.Settings, p *node.Pass, now time.Time) {
	if f.cfg.Proof == nil || p.Visitor == (node.VisitorID{}) {
		return
	}
	token, err := f.cfg.Proof.Token(proof.Subject{Room: s.Name, Visitor: p.Visitor, AdmittedAt: p.AcceptedAt}, now)
	if err != nil {
		f.failures.tell(f.cfg.Logger, slog.LevelError, failureKind{title: "proof"}, "a proof of admission cannot be signed", attrError(err))
		return
	}
	r.proof = token
}

// JWKS returns the public keys of proofs as a JWK set, which nobody changes; nil if there
// are no proofs.
func (f *Front) JWKS() []byte {
	if f.cfg.Proof == nil {
		return nil
	}
	return f.cfg.Proof.JWKS()
}

// serveKeys answers a request for the public keys. It reports whether r is one.
func (f *Front) serveKeys(r *request) bool {
	if f.cfg.Proof == nil || r.Path.Decoded != JWKSPath || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	w := r.answer()
	h := w.begin(http.StatusOK)
	h.Set("Content-Type", "application/jwk-set+json")
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(JWKSAge/time.Second)))
	h.Set("Access-Control-Allow-Origin", "*")
	w.write(string(f.cfg.Proof.JWKS()))
	return true
}
