package httpfront

import (
	"net/netip"
	"sync"

	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/room"
)

// request is what is kept of a request once its head was found in order. It
// owns all its bytes: those of the connection are recycled, and a slice of them
// kept too long would show one visitor's cookie in another's answer.
//
// A request comes from newRequest and is good until release.
type request struct {
	parsed
	message
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

// parsed is the head of a request as the guard has read it.
type parsed struct {
	method string
	target []byte // origin form or "*", as sent
	host   string // that the visitor asked for: lower case, without port and trailing dot; "" if not known
	path   room.Path
	fields []field // in order, as sent
	http11 bool

	hostField []byte // as sent, port included
	head      []byte // backing bytes of target and fields
}

// message is what a head says of its message, and what the client wants of the connection.
type message struct {
	length      int64 // of the body; lengthChunked or lengthNone
	upgrade     bool  // asks for WebSocket
	close       bool  // the connection shall be closed afterwards
	expectation bool  // the client waits to be told before it sends a body
	trailers    bool  // whether the client wants trailers
	preflight   bool  // asks for a browser whether a page of another site may ask
	logsIn      bool  // by a scheme that is about the connection
	cookies     bool  // whether there is a Cookie field

	accept         []byte // all Accept fields, joined by commas
	acceptLanguage []byte // all Accept-Language fields, joined by commas
	loop           []byte // the nodes that it has passed, as they wrote it
}

// sender is where a request came from.
type sender struct {
	edge   *edgeConn  // that it came on; nil if not known
	memory *memory    // of the connection; nil: it has none
	peer   netip.Addr // the TCP peer
	secure bool       // the visitor's side is TLS
	via    forwarded  // what a trusted proxy said
}

// limiting is what rate limits have to do with a request.
type limiting struct {
	limits  []askedLimit  // that it was held against
	values  []byte        // by which they tell it from others
	answer  answerHeaders // of the response, for those that ask about it
	limited bool          // one of them keeps it from the origin
	again   bool          // they have counted it
}

// reserved are the fields that visitors may not send, and what becomes of them.
type reserved struct {
	told      fieldNames // by which trusted proxies tell of visitors, in lower case
	proofName string     // of the field that only we may send
	withheld  fieldNames // that are in no trailer: proofName and told, which come too late there
	traces    bool       // this front traces requests
}

// field is one header field. Both slices belong to the request.
type field struct{ name, value []byte }

const (
	lengthNone    = -1
	lengthChunked = -2
)

var requests = sync.Pool{New: func() any { return new(request) }}

func newRequest() *request { return requests.Get().(*request) }

// release gives r back. Nothing taken from r may be used afterwards, except its
// strings.
func (r *request) release() {
	clear(r.fields)
	clear(r.limits)
	clear(r.answer)
	*r = request{
		parsed:    parsed{fields: r.fields[:0], head: r.head[:0]},
		message:   message{accept: r.accept[:0], acceptLanguage: r.acceptLanguage[:0]},
		sender:    sender{via: forwarded{chain: r.via.chain[:0]}},
		limiting:  limiting{limits: r.limits[:0], values: r.values[:0], answer: r.answer[:0]},
		setCookie: r.setCookie[:0],
		scratch:   r.scratch[:0],
	}
	requests.Put(r)
}

// all calls yield with the value of every field of the given lower-case name.
func (r *request) all(name string) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := range r.fields {
			if equalFold(r.fields[i].name, name) && !yield(r.fields[i].value) {
				return
			}
		}
	}
}

// first returns the value of the first field of that lower-case name.
func (r *request) first(name string) []byte {
	for v := range r.all(name) {
		return v
	}
	return nil
}

// asks reports whether the request goes to the origin all at once, since it has no body.
func (r *request) asks() bool {
	return !r.hasBody() && !r.upgrade && (r.record == nil || r.record.trace == nil)
}

// use is what a connection to the origin is for.
func (r *request) use() upstream.Use {
	if r.preflight {
		return upstream.Preflight
	}
	return upstream.Request
}

// isSafe reports whether the request may be repeated by a browser that reloads.
func (r *request) isSafe() bool {
	return r.method == "GET" || r.method == "HEAD" || r.method == "OPTIONS"
}
