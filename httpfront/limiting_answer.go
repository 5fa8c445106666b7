package httpfront

import (
	"math"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/lang"
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
func (r *request) tellLimits(h fieldWriter) {
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
	h.AddBytesV(policyField, b[:policies])
	h.AddBytesV(limitField, b[policies:])
}

// seconds returns a span in whole seconds, rounded up.
func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// refuseLimited answers a request that a rule blocks.
func (f *Front) refuseLimited(ctx *fasthttp.RequestCtx, r *request, a *askedLimit, now time.Time) {
	answer := &a.by.rule.Response
	h := begin(ctx, answer.StatusCode, now)
	h.Set("Cache-Control", "private, no-store")
	h.Set(stateField, stateLimited)
	after := max(seconds(a.verdict.Reset), 1)
	h.Set("Retry-After", strconv.FormatInt(after, 10))
	r.tellLimits(h)
	switch {
	case answer.Content != "":
		h.SetContentType(answer.ContentType + "; charset=utf-8")
		ctx.Response.SetBodyString(answer.Content)
	case prefersJSON(r.accept):
		h.SetContentType("application/json")
		ctx.Response.SetBodyString(`{"error":"too many requests","limit":"` + a.by.rule.Name + `","retry_after":` + strconv.FormatInt(after, 10) + "}\n")
	default:
		l := lang.Match(r.acceptLanguage, lang.English)
		h.Set("Vary", "Accept, Accept-Language")
		writeNotice(ctx, notice{
			lang: l, title: l.Text(lang.TitleLimited), text: l.Text(lang.MessageLimited),
			code: strconv.Itoa(answer.StatusCode), frames: "'self'",
		})
	}
}
