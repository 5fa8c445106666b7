package httpfront

import (
	"sync"

	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/httpfront/gate/visitor"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// request is what is kept of a request once its head was found in order. It
// owns all its bytes: those of the connection are recycled, and a slice of them
// kept too long would show one visitor's cookie in another's answer.
//
// A request comes from newRequest and is good until release.
type request struct {
	http1.Request
	fresh
	limiting
	via visitor.Sender // who asks, and what a trusted proxy said of it

	setCookie []byte // backing bytes of the cookie in its answer
	scratch   []byte // for as long as a call
}

// fresh is what is zero when a request begins. What is needed again once the origin has answered comes first and stands
// together: by then the processor has forgotten the request.
type fresh struct {
	edge   *client     // that it came on; nil if not known
	record *record     // nil: nobody wants to know
	made   *answer     // what answer returns; nil: nobody has asked for it
	before *memory     // the request before on its connection; nil: there was none
	input  requestBody // what the client sends behind the head

	proof       string // the value of the field proofName; "" for none
	traceparent string // of the part that the origin has; "": it is not traced

	reserved
	facts   expr.Request // what rules see, once Front.describe was called
	country [2]byte      // backing bytes of facts.Country
}

// limiting is what rate limits have to do with a request.
type limiting struct {
	limits   []askedLimit // that it was held against
	values   []byte       // by which they tell it from others
	answered expr.Pairs   // the fields of the response, for those that ask about it
	limited  bool         // one of them keeps it from the origin
	again    bool         // they have counted it
}

// reserved are the fields that visitors may not send, and what becomes of them.
type reserved struct {
	told      fieldNames // by which trusted proxies tell of visitors, in lower case
	proofName string     // of the field that only we may send
	withheld  fieldNames // that are in no trailer: proofName and told, which come too late there
	traces    bool       // this front traces requests
}

var requests = sync.Pool{New: func() any { return new(request) }}

// newRequest returns a request that nothing is known of. It is made so here and not in release: then the processor has
// it at hand.
func newRequest() *request {
	r := requests.Get().(*request)
	r.Request.Reset()
	r.via.Reset()
	clear(r.limits)
	clear(r.answered)
	r.limiting = limiting{limits: r.limits[:0], values: r.values[:0], answered: r.answered[:0]}
	r.fresh = fresh{}
	r.setCookie, r.scratch = r.setCookie[:0], r.scratch[:0]
	return r
}

// answer is the answer to r. It comes as late as can be: while a request waits for its origin, it holds no memory of one.
func (r *request) answer() *answer {
	if r.made == nil {
		r.made = newAnswer()
	}
	return r.made
}

// release gives r back. Nothing taken from r may be used afterwards, except its
// strings.
func (r *request) release() {
	if r.made != nil {
		r.made.release()
		r.made = nil
	}
	requests.Put(r)
}

// asks reports whether the request goes to the origin all at once, since it has no body.
func (r *request) asks() bool {
	return !r.HasBody() && !r.Upgrade && (r.record == nil || r.record.trace == nil)
}

// use is what a connection to the origin is for.
func (r *request) use() upstream.Use {
	switch {
	case r.Preflight:
		return upstream.Preflight
	case r.HasBody() && (r.Length < 0 || r.Length > int64(r.edge.in.Buffered())):
		return upstream.Upload
	}
	return upstream.Request
}
