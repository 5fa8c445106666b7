package verdict

import (
	"net/http"
	"strings"

	"github.com/ropeline/ropeline/httpfront"
)

// envoyPrefix is the path_prefix that Envoy puts before the visitor's path.
const envoyPrefix = "/envoy"

// envoy is what ext_authz understands over HTTP: exactly 200 lets the visitor in; any
// other answer that is not 5xx is handed to the visitor; 5xx is an error, upon which
// everybody is let in where failure_mode_allow is set. Method, Host and path are the
// visitor's own. See envoy/extensions/filters/http/ext_authz/v3/ext_authz.proto,
// HttpService. Implementations of the Gateway API's ExternalAuth filter ask the same
// way.
var envoy = &dialect{name: "envoy", read: readEnvoy, write: writeEnvoy, queued: http.StatusTooManyRequests}

func readEnvoy(r *http.Request, q *httpfront.Question) error {
	q.Method, q.Host = r.Method, r.Host
	q.Target = strings.TrimPrefix(r.RequestURI, envoyPrefix)
	// Not one of those that Envoy sends unasked: without it, visitors come by plain
	// HTTP as far as we know.
	q.Scheme = r.Header.Get("X-Forwarded-Proto")
	return nil
}

// writeEnvoy differs for who is let in: Envoy adds fields of this answer to that of the
// site, Cache-Control among them if it is told to, so there is one only if the answer
// must not be stored.
func writeEnvoy(w http.ResponseWriter, d *dialect, a *httpfront.Answer) {
	if a.Outcome != httpfront.Admitted {
		writeAnswer(w, d, a)
		return
	}
	h := w.Header()
	if a.Cookie != "" {
		h.Set("Set-Cookie", a.Cookie)
		h.Set("Cache-Control", privateAnswer)
	}
	if a.Proof != "" {
		h.Set(a.ProofField, a.Proof)
	} else if a.ProofField != "" {
		h.Set("X-Envoy-Auth-Headers-To-Remove", a.ProofField)
	}
	w.WriteHeader(http.StatusOK)
}
