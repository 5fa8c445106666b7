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
	sender
	limiting
	reserved

	input requestBody // what the client sends behind the head

	facts   expr.Request // what rules see, once Front.describe was called
	country [2]byte      // backing bytes of facts.Country

	proof       string  // the value of the field proofName; "" for none
	traceparent string  // of the part that the origin has; "": it is not traced
	record      *record // nil: nobody wants to know

	setCookie []byte // backing bytes of the cookie in its answer
	scratch   []byte // for as long as a call
}

// sender is where a request came from.
type sender struct {
	edge   *client        // that it came on; nil if not known
	before *memory        // the request before on it; nil: there was none
	via    visitor.Sender // who asks, and what a trusted proxy said of it
}

// limiting is what rate limits have to do with a request.
type limiting struct {
	limits  []askedLimit // that it was held against
	values  []byte       // by which they tell it from others
	answer  expr.Pairs   // the fields of the response, for those that ask about it
	limited bool         // one of them keeps it from the origin
	again   bool         // they have counted it
}

// reserved are the fields that visitors may not send, and what becomes of them.
type reserved struct {
	told      fieldNames // by which trusted proxies tell of visitors, in lower case
	proofName string     // of the field that only we may send
	withheld  fieldNames // that are in no trailer: proofName and told, which come too late there
	traces    bool       // this front traces requests
}

var requests = sync.Pool{New: func() any { return new(request) }}

func newRequest() *request { return requests.Get().(*request) }

// release gives r back. Nothing taken from r may be used afterwards, except its
// strings.
func (r *request) release() {
	r.Request.Reset()
	clear(r.limits)
	clear(r.answer)
	r.via.Reset()
	*r = request{
		Request:   r.Request,
		sender:    sender{via: r.via},
		limiting:  limiting{limits: r.limits[:0], values: r.values[:0], answer: r.answer[:0]},
		setCookie: r.setCookie[:0],
		scratch:   r.scratch[:0],
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
