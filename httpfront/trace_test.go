package httpfront

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ropeline/ropeline/httpfront/observe/tracing"
	"github.com/ropeline/ropeline/node"
)

// collected is a collector, with what it was sent.
type collected struct {
	t        *testing.T
	endpoint string
	log      lockedLog // of who sends
	end      func()    // has all be sent

	mu    sync.Mutex // guards the following
	spans []*spans.Span
	about string
	fails bool
}

func newCollector(t *testing.T) *collected {
	c := &collected{t: t}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	c.endpoint = srv.URL
	return c
}

// ServeHTTP takes spans.
func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	var batch collector.ExportTraceServiceRequest
	err = errors.Join(err, proto.Unmarshal(b, &batch))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("%s %s: %v", r.URL, r.Header, err)
	}
	if c.fails {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, from := range batch.ResourceSpans {
		c.about = from.Resource.String()
		for _, s := range from.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// tracer returns a Tracer that sends to c.
func (c *collected) tracer(sample float64) *tracing.Tracer {
	c.t.Helper()
	t := must(tracing.New(c.t.Context(), tracing.Config{Endpoint: c.endpoint, Sample: sample, Node: "a1", Site: "a", Version: "1.2", Logger: c.log.logger()}))
	c.end = run(c.t, t.Run)
	return t
}

// watch starts a front that sends traces to c.
func (c *collected) watch(sample float64, rooms Rooms, origin http.HandlerFunc, change ...func(*Config)) *front {
	c.t.Helper()
	tracer := c.tracer(sample)
	f, end := serve(c.t, rooms, origin, append(change, func(cfg *Config) { cfg.Tracer = tracer })...), c.end
	c.end = func() {
		f.stop()
		end()
	}
	return f
}

// traced starts a front that sends traces to a collector.
func traced(t *testing.T, sample float64, rooms Rooms, origin http.HandlerFunc, change ...func(*Config)) (*collected, *front) {
	t.Helper()
	c := newCollector(t)
	return c, c.watch(sample, rooms, origin, change...)
}

// all returns what is sent, and ends who sends it.
func (c *collected) all() []*spans.Span {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans
}

// span is one that was sent, and its attributes as text.
type span struct {
	*spans.Span
	says string
}

// of returns the one span of a name.
func (c *collected) of(name string) span {
	c.t.Helper()
	var found []span
	for _, s := range c.all() {
		var all []string
		for _, a := range s.Attributes {
			all = append(all, a.Key+"="+cmp.Or(a.Value.GetStringValue(), fmt.Sprint(a.Value.GetIntValue())))
		}
		if s.Name == name {
			found = append(found, span{s, strings.Join(all, " ")})
		}
	}
	if len(found) != 1 {
		c.t.Fatalf("there are %d spans %s among %v, want one", len(found), name, c.spans)
	}
	return found[0]
}

// asksCounter says that it had to ask a counter before it lets somebody in.
func asksCounter(p node.Pass, known bool, now time.Time) node.Verdict {
	since := time.Now()
	time.Sleep(time.Millisecond) // for its answer
	v := always(p, known, now)
	v.Asked, v.Word = time.Since(since), "counter"
	return v
}

// What visitors say of a trace and of their part in it.
const (
	theirTrace = "11111111111111111111111111111111"
	theirSpan  = "2222222222222222"
	sampled    = "00-" + theirTrace + "-" + theirSpan + "-01"
)

// TestTraceOfARequest: one span, with parts for the decision, the call that it made, and the
// origin, which is told of its own part.
func TestTraceOfARequest(t *testing.T) {
	c, f := traced(t, 1, fakeRooms{room: newRoom(asksCounter)}, echo)
	got := f.get("/a%FFb?secret", "Traceparent", sampled, "Tracestate", "x=1", "Cookie", "secret=1")
	request, origin := c.of("GET"), c.of("origin")
	for _, part := range []span{c.of("decision"), c.of("counter call"), origin} {
		if !bytes.Equal(part.ParentSpanId, request.SpanId) || !bytes.Equal(part.TraceId, request.TraceId) ||
			part.StartTimeUnixNano < request.StartTimeUnixNano || part.EndTimeUnixNano > request.EndTimeUnixNano || part.EndTimeUnixNano <= part.StartTimeUnixNano {
			t.Errorf("%s is no part of the request: %v of %v", part.Name, part, request)
		}
	}
	if len(request.ParentSpanId) > 0 || hex.EncodeToString(request.TraceId) == theirTrace {
		t.Errorf("a visitor has named the trace: %v", request)
	}
	equal(t, "the request's part", request.says, "http.request.method=GET server.address=127.0.0.1 url.path=/a\uFFFDb "+
		"ropeline.outcome=admitted ropeline.room=shop http.response.status_code=200")
	has(t, "the origin's part", origin.says, "http.response.status_code=200")
	equal(t, "the kind of a request", request.Kind, spans.Span_SPAN_KIND_SERVER)
	equal(t, "the kind of the origin's part", origin.Kind, spans.Span_SPAN_KIND_CLIENT)
	has(t, "the origin", got.body, fmt.Sprintf("Traceparent: 00-%x-%x-01\n", request.TraceId, origin.SpanId))
	equal(t, "traces that the origin is told of", strings.Count(strings.ToLower(got.body), "traceparent"), 1)
	lacks(t, "the origin", strings.ToLower(got.body), "tracestate")
	has(t, "who sends", c.about, "ropeline", "1.2", "a1")
	lacks(t, "what is told of a visitor", fmt.Sprint(c.spans), "secret")

	_, f = traced(t, 0, nil, echo)
	lacks(t, "the origin, of a request that is not traced", f.get("/", "Traceparent", sampled).body, theirTrace)
}

// TestTraceOfATrustedProxy: its choice counts, and its trace goes on.
func TestTraceOfATrustedProxy(t *testing.T) {
	const unsampled = "00-" + theirTrace + "-" + theirSpan + "-00"
	for _, c := range []struct {
		sample float64
		parent string
		traced bool
		told   string // to the origin
	}{
		{0, sampled, true, "00-" + theirTrace},
		{1, unsampled, false, unsampled},
		{0, "", false, ""},
		{1, "nonsense", true, "00-"},
		{0, "nonsense", false, "nonsense"},
	} {
		to, f := traced(t, c.sample, fakeRooms{room: newRoom(always)}, echo, trustLoopback)
		header := []string{"Tracestate", "x=1"}
		if c.parent != "" {
			header = append(header, "Traceparent", c.parent)
		}
		got := f.get("/", header...)
		equal(t, fmt.Sprintf("%+v: that there are spans", c), len(to.all()) > 0, c.traced)
		if c.traced && c.sample == 0 {
			request := to.of("GET")
			equal(t, "the request's part", fmt.Sprintf("%x %x", request.TraceId, request.ParentSpanId), theirTrace+" "+theirSpan)
		}
		has(t, "the origin", got.body, "Tracestate: x=1\n", c.told)
		equal(t, fmt.Sprintf("%+v: that the origin is told of the trace", c), strings.Contains(got.body, "Traceparent: "), c.told != "")
	}
}

// TestTraceOfAnOriginThatFails has a part for each attempt, and says that they failed.
func TestTraceOfAnOriginThatFails(t *testing.T) {
	c, f := traced(t, 1, fakeRooms{room: newRoom(never)}, echo)
	f.get("/")
	has(t, "who waits", c.of("GET").says, "ropeline.outcome=queued")
	equal(t, "spans of who waits", len(c.all()), 2)

	breaks := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	c, f = traced(t, 1, nil, breaks, func(cfg *Config) { cfg.Retries = -1 })
	f.get("/")
	request := c.of("GET")
	has(t, "an origin that breaks off", request.says, "ropeline.outcome=failed", "status_code=502")
	for _, part := range []span{request, c.of("origin")} {
		equal(t, part.Name, part.Status.Code, spans.Status_STATUS_CODE_ERROR)
	}
}

// TestTraceOfAHead: that its connection is not used again is no failure.
func TestTraceOfAHead(t *testing.T) {
	c, f := traced(t, 1, nil, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "5") })
	f.do("HEAD", "/", nil)
	if origin := c.of("origin"); origin.Status.GetCode() == spans.Status_STATUS_CODE_ERROR {
		t.Errorf("got %v", origin)
	}
}

// TestTraceOfAQuestion: what another proxy asks about is traced by chance; whose trace it is
// in the visitor may have made up.
func TestTraceOfAQuestion(t *testing.T) {
	c := newCollector(t)
	tracer := c.tracer(1)
	f := judges(t, fakeRooms{room: newRoom(asksCounter)}, func(cfg *Config) { cfg.Tracer = tracer })
	f.Judge(asks("GET", "/", "traceparent", sampled))
	request := c.of("GET")
	has(t, "the request", request.says, "ropeline.outcome=admitted")
	equal(t, "what it is a part of", len(request.ParentSpanId), 0)
	equal(t, "spans", len(c.all()), 3)
}

// TestNothingIsTraced where nobody wants it: what visitors send goes on as it came.
func TestNothingIsTraced(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(always)}, http.HandlerFunc(echo))
	f.get("/", "Traceparent", sampled, "Tracestate", "x=1").is(t, 200, "Traceparent: "+sampled+"\n", "Tracestate: x=1\n")
}

// TestACollectorThatFails is told of once, and costs no visitor anything.
func TestACollectorThatFails(t *testing.T) {
	c := newCollector(t)
	c.fails = true
	c.endpoint += "/"
	f := c.watch(1, fakeRooms{room: newRoom(always)}, echo)
	for range 3000 { // more than the queue has places
		f.front.cfg.Tracer.Begin(time.Now(), nil).End(&tracing.Request{Method: "GET"}, time.Now())
	}
	f.get("/").is(t, 200)
	c.end()
	equal(t, "how often it is told", strings.Count(c.log.text(), "traces cannot be sent"), 1)
}

// TestTracersAreChecked refuses what cannot be meant.
func TestTracersAreChecked(t *testing.T) {
	for _, cfg := range []tracing.Config{
		{Endpoint: "http://a", Sample: -0.1}, {Endpoint: "http://a", Sample: 1.1}, {Endpoint: "collector:4318"}, {Endpoint: "grpc://a"}, {Endpoint: "http://"}, {Endpoint: ":"},
	} {
		if _, err := tracing.New(t.Context(), cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
