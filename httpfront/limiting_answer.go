package httpfront

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/page/lang"
)

// The fields that tell of rate limits (draft-ietf-httpapi-ratelimit-headers-10), each a list
// with a member for every rule that the request was held against.
const (
	policyField = "RateLimit-Policy"
	limitField  = "RateLimit"
)

// stateLimited is a value of stateField: a rate limit says that the client comes too often.
const stateLimited = "limited"

// tellLimits adds the fields that tell of rate limits to an answer. What an origin says of
// its own stays.
func (r *request) tellLimits(h *head) {
	if len(r.limits) == 0 {
		return
	}
	b := r.scratch[:0]
	for i := range r.limits {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, r.limits[i].by.policy...)
	}
	policies := len(b)
	for i := range r.limits {
		a := &r.limits[i]
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, '"')
		b = append(b, a.by.rule.Name...) // a name needs no escapes
		b = append(b, `";r=`...)
		b = strconv.AppendInt(b, int64(a.verdict.Remaining), 10)
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, seconds(a.verdict.Reset), 10)
	}
	r.scratch = b
	h.SetBytes(policyField, b[:policies])
	h.SetBytes(limitField, b[policies:])
}

// seconds returns a span in whole seconds, rounded up.
func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// refuseLimited answers a request that a rule blocks.
func refuseLimited(w *answer, r *request, a *askedLimit) {
	answer := &a.by.rule.Response
	h := w.begin(answer.StatusCode)
	h.forOneOnly()
	h.Set(stateField, stateLimited)
	after := max(seconds(a.verdict.Reset), 1)
	h.Set("Retry-After", strconv.FormatInt(after, 10))
	r.tellLimits(h)
	switch {
	case answer.Content != "":
		h.Set("Content-Type", answer.ContentType+"; charset=utf-8")
		w.write(answer.Content)
	case page.PrefersJSON(r.Accept):
		h.Set("Content-Type", "application/json")
		w.write(`{"error":"too many requests","limit":"` + a.by.rule.Name + `","retry_after":` + strconv.FormatInt(after, 10) + "}\n")
	default:
		l, reloads := lang.Match(r.AcceptLanguage, lang.English), r.Method == http.MethodGet
		if reloads {
			h.Set("Refresh", strconv.FormatInt(after, 10))
		}
		w.notice(page.Notice{
			Lang: l, Title: l.Text(lang.TitleLimited), Text: l.Text(lang.MessageLimited),
			Code: strconv.Itoa(answer.StatusCode), Frames: "'self'", Reloads: reloads,
		})
	}
}
