package httpfront

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
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
	t   *testing.T
	srv *httptest.Server

	mu    sync.Mutex // guards the following
	spans []*spans.Span
	about string
	fails bool
}

func newCollector(t *testing.T) *collected {
	c := &collected{t: t}
	c.srv = httptest.NewServer(c)
	t.Cleanup(c.srv.Close)
	return c
}

// ServeHTTP takes spans.
func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			c.t.Error(err)
			return
		}
		body = z
	}
	b, err := io.ReadAll(body)
	var batch collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(b, &batch)
	}
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

// tracer returns a Tracer that sends to c all that it has when stop is called.
func (c *collected) tracer(sample float64) (t *tracing.Tracer, stop func()) {
	c.t.Helper()
	t, err := tracing.New(c.t.Context(), tracing.Config{Endpoint: c.srv.URL, Sample: sample, Node: "a1", Site: "a", Version: "1.2", Logger: testLogger(c.t)})
	if err != nil {
		c.t.Fatal(err)
	}
	return t, run(c.t, t.Run)
}

// watch starts a front that sends traces to c, and returns what ends both.
func (c *collected) watch(sample float64, rooms Rooms, origin http.Handler, change ...func(*Config)) (f *front, end func()) {
	c.t.Helper()
	tracer, stop := c.tracer(sample)
	f = serve(c.t, rooms, origin, append(change, func(cfg *Config) { cfg.Tracer = tracer })...)
	return f, func() {
		f.stop()
		stop()
	}
}

// of returns the span of a name, and its attributes as text.
func (c *collected) of(name string) (*spans.Span, string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *spans.Span
	for _, s := range c.spans {
		if s.Name == name && found != nil {
			c.t.Errorf("there are two spans %s", name)
		}
		if s.Name == name {
			found = s
		}
	}
	if found == nil {
		c.t.Fatalf("there is no span %s among %v", name, c.spans)
	}
	var all []string
	for _, a := range found.Attributes {
		v := a.Value.GetStringValue()
		if v == "" {
			v = fmt.Sprint(a.Value.GetIntValue())
		}
		all = append(all, a.Key+"="+v)
	}
	return found, strings.Join(all, " ")
}

// asksCounter says that it had to ask a counter before it lets somebody in.
func asksCounter(p node.Pass, known bool, now time.Time) node.Verdict {
	since := time.Now()
	time.Sleep(time.Millisecond) // for its answer
	v := always(p, known, now)
	v.Asked, v.Word = time.Since(since), "counter"
	return v
}

// TestTraceOfARequest: one span, with parts for the decision, the call that it made, and the
// origin, which is told of its own part.
func TestTraceOfARequest(t *testing.T) {
	c := newCollector(t)
	f, end := c.watch(1, fakeRooms{room: newRoom(asksCounter)}, http.HandlerFunc(echo))
	got := f.get("/a%FFb?secret", "Traceparent", "00-11111111111111111111111111111111-2222222222222222-01", "Tracestate", "x=1", "Cookie", "secret=1")
	end()
	request, about := c.of("GET")
	decision, _ := c.of("decision")
	call, _ := c.of("counter call")
	origin, answered := c.of("origin")
	for _, part := range []*spans.Span{decision, call, origin} {
		if !bytes.Equal(part.ParentSpanId, request.SpanId) || !bytes.Equal(part.TraceId, request.TraceId) ||
			part.StartTimeUnixNano < request.StartTimeUnixNano || part.EndTimeUnixNano > request.EndTimeUnixNano || part.EndTimeUnixNano <= part.StartTimeUnixNano {
			t.Errorf("%s is no part of the request: %v of %v", part.Name, part, request)
		}
	}
	if len(request.ParentSpanId) > 0 || hex.EncodeToString(request.TraceId) == strings.Repeat("1", 32) {
		t.Errorf("a visitor has named the trace: %v", request)
	}
	if want := "http.request.method=GET server.address=127.0.0.1 url.path=/a\uFFFDb ropeline.outcome=admitted ropeline.room=shop http.response.status_code=200"; about != want {
		t.Errorf("the request says %s, want %s", about, want)
	}
	if !strings.Contains(answered, "http.response.status_code=200") || request.Kind != spans.Span_SPAN_KIND_SERVER || origin.Kind != spans.Span_SPAN_KIND_CLIENT {
		t.Errorf("the origin's part says %s", answered)
	}
	want := fmt.Sprintf("Traceparent: 00-%x-%x-01\n", request.TraceId, origin.SpanId)
	if !strings.Contains(got.body, want) || strings.Count(strings.ToLower(got.body), "traceparent") != 1 || strings.Contains(strings.ToLower(got.body), "tracestate") {
		t.Errorf("the origin was told\n%s\nwant %s", got.body, want)
	}
	for _, is := range []string{"ropeline", "1.2", "a1"} {
		if !strings.Contains(c.about, is) {
			t.Errorf("%q is not told of who sends: %s", is, c.about)
		}
	}
	if text := fmt.Sprint(c.spans); strings.Contains(text, "secret") {
		t.Errorf("what a visitor carries is told: %s", text)
	}
}

// TestTraceOfATrustedProxy: its choice counts, and its trace goes on.
func TestTraceOfATrustedProxy(t *testing.T) {
	const trace, span = "11111111111111111111111111111111", "2222222222222222"
	for _, c := range []struct {
		sample float64
		parent string
		traced bool
		told   string // to the origin
	}{
		{0, "00-" + trace + "-" + span + "-01", true, "00-" + trace},
		{1, "00-" + trace + "-" + span + "-00", false, "00-" + trace + "-" + span + "-00"},
		{0, "", false, ""},
		{1, "nonsense", true, "00-"},
		{0, "nonsense", false, "nonsense"},
	} {
		to := newCollector(t)
		f, end := to.watch(c.sample, fakeRooms{room: newRoom(always)}, http.HandlerFunc(echo), trustLoopback)
		header := []string{"Tracestate", "x=1"}
		if c.parent != "" {
			header = append(header, "Traceparent", c.parent)
		}
		got := f.get("/", header...)
		end()
		if (len(to.spans) > 0) != c.traced {
			t.Errorf("%+v: %d spans", c, len(to.spans))
		}
		if c.traced && c.sample == 0 {
			if s, _ := to.of("GET"); hex.EncodeToString(s.TraceId) != trace || hex.EncodeToString(s.ParentSpanId) != span {
				t.Errorf("%+v: the request's span is %v", c, s)
			}
		}
		if !strings.Contains(got.body, "Tracestate: x=1\n") || strings.Contains(got.body, "Traceparent: ") != (c.told != "") || !strings.Contains(got.body, c.told) {
			t.Errorf("%+v: the origin was told\n%s", c, got.body)
		}
	}
}

// TestTraceOfAnOriginThatFails has a part for each attempt, and says that they failed.
func TestTraceOfAnOriginThatFails(t *testing.T) {
	c := newCollector(t)
	f, end := c.watch(1, fakeRooms{room: newRoom(never)}, http.HandlerFunc(echo))
	f.get("/")
	end()
	if _, about := c.of("GET"); !strings.Contains(about, "ropeline.outcome=queued") || len(c.spans) != 2 {
		t.Errorf("of who waits: %s, %v", about, c.spans)
	}

	c = newCollector(t)
	f, end = c.watch(1, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		func(cfg *Config) { cfg.Retries = -1 })
	f.get("/")
	end()
	request, about := c.of("GET")
	origin, _ := c.of("origin")
	if !strings.Contains(about, "ropeline.outcome=failed") || !strings.Contains(about, "status_code=502") ||
		request.Status.Code != spans.Status_STATUS_CODE_ERROR || origin.Status.Code != spans.Status_STATUS_CODE_ERROR {
		t.Errorf("of an origin that breaks off: %s, %v, %v", about, request, origin)
	}
}

// TestTraceOfAHead: that its connection is not used again is no failure.
func TestTraceOfAHead(t *testing.T) {
	c := newCollector(t)
	f, end := c.watch(1, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "5") }))
	f.do("HEAD", "/", nil)
	end()
	if origin, about := c.of("origin"); origin == nil || origin.Status.GetCode() == spans.Status_STATUS_CODE_ERROR {
		t.Errorf("got %s, %v", about, origin)
	}
}

// TestTraceOfAQuestion: what another proxy asks about is traced by chance; whose trace it is
// in the visitor may have made up.
func TestTraceOfAQuestion(t *testing.T) {
	c := newCollector(t)
	tracer, stop := c.tracer(1)
	peer := netip.MustParseAddr("192.0.2.1")
	f := judges(t, fakeRooms{room: newRoom(asksCounter)}, func(cfg *Config) {
		cfg.Tracer, cfg.TrustedProxies = tracer, []netip.Prefix{netip.PrefixFrom(peer, 32)}
	})
	f.Judge(&Question{Peer: peer, Method: "GET", Target: "/", Host: "a", Fields: func(yield func(name, value string) bool) {
		yield("traceparent", "00-11111111111111111111111111111111-2222222222222222-01")
	}})
	stop()
	request, about := c.of("GET")
	if len(request.ParentSpanId) > 0 || !strings.Contains(about, "ropeline.outcome=admitted") || len(c.spans) != 3 {
		t.Errorf("got %s, %v", about, c.spans)
	}
}

// TestNothingIsTraced where nobody wants it: what visitors send goes on as it came.
func TestNothingIsTraced(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(always)}, http.HandlerFunc(echo))
	got := f.get("/", "Traceparent", "00-11111111111111111111111111111111-2222222222222222-01", "Tracestate", "x=1")
	if !strings.Contains(got.body, "Traceparent: 00-1111") || !strings.Contains(got.body, "Tracestate: x=1") {
		t.Errorf("the origin was told\n%s", got.body)
	}
}

// TestACollectorThatFails is told of once, and costs no visitor anything.
func TestACollectorThatFails(t *testing.T) {
	c := newCollector(t)
	c.fails = true
	var log lockedLog
	tracer, err := tracing.New(t.Context(), tracing.Config{Endpoint: c.srv.URL + "/", Sample: 1, Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, tracer.Run)
	f := serve(t, fakeRooms{room: newRoom(always)}, http.HandlerFunc(echo), func(cfg *Config) { cfg.Tracer = tracer })
	for range 3000 { // more than the queue has places
		tracer.Begin(time.Now(), nil).End(&tracing.Request{Method: "GET"}, time.Now())
	}
	if resp := f.get("/"); resp.StatusCode != 200 {
		t.Errorf("got %d", resp.StatusCode)
	}
	f.stop()
	stop()
	if n := strings.Count(log.text(), "traces cannot be sent"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.text())
	}
}

// TestTracersAreChecked refuses what cannot be meant.
func TestTracersAreChecked(t *testing.T) {
	for _, cfg := range []tracing.Config{
		{Endpoint: "http://a", Sample: -0.1}, {Endpoint: "http://a", Sample: 1.1}, {Endpoint: "collector:4318"}, {Endpoint: "grpc://a"}, {Endpoint: "http://"}, {Endpoint: ":"},
	} {
		if _, err := tracing.New(context.Background(), cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
