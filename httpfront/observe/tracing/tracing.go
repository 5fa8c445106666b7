// Package tracing sends traces of some requests to a collector, by OpenTelemetry's protocol
// over HTTP (OTLP).
//
// Which requests are traced is said by chance, or by who asked: where a proxy that is
// trusted sends a traceparent (W3C Trace Context), its choice counts. The rest of requests cost
// a random number each.
//
// Nobody waits for a collector: spans are put into a queue of bounded size, and those for which
// there is no place are dropped. [Tracer.Run] sends them.
//
// A nil *Tracer traces nothing, and all methods of a nil *Trace and *Call do nothing. Otherwise a
// Tracer may be used by many goroutines at once, a Trace and its Calls by one at a time.
package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config says what is traced, and who gets it.
type Config struct {
	// Endpoint is the address of the collector, such as http://127.0.0.1:4318, without
	// /v1/traces. Empty: what the variables OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and
	// OTEL_EXPORTER_OTLP_ENDPOINT say.
	Endpoint string
	// Sample is the part of requests that are traced, from 0 to 1, of those about which
	// nobody else has decided.
	Sample float64
	// Node, Site and Version name where spans are from. OTEL_SERVICE_NAME and
	// OTEL_RESOURCE_ATTRIBUTES say more.
	Node, Site, Version string
	// Logger takes what goes wrong: once, until it is right again. The default is
	// slog.Default().
	Logger *slog.Logger
}

// Tracer makes traces. It must be made by New.
type Tracer struct {
	sample   float64
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// endTime is how long the last spans may take to be sent when the process stops.
const endTime = 5 * time.Second

// New returns a Tracer. Nothing is sent before Run.
func New(ctx context.Context, cfg Config) (*Tracer, error) {
	if cfg.Sample < 0 || cfg.Sample > 1 {
		return nil, fmt.Errorf("traces: sample is %v, allowed are 0 to 1", cfg.Sample)
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	var opts []otlptracehttp.Option
	if cfg.Endpoint != "" {
		to, err := url.Parse(cfg.Endpoint)
		if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
			return nil, fmt.Errorf("traces: the collector is at %q; allowed is http:// or https://, a host, perhaps a port", cfg.Endpoint)
		}
		opts = append(opts, otlptracehttp.WithEndpointURL(to.JoinPath("v1", "traces").String()))
	}
	exporter, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "ropeline"), attribute.String("service.version", cfg.Version),
		attribute.String("service.instance.id", cfg.Node), attribute.String("ropeline.site", cfg.Site),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t := &Tracer{sample: cfg.Sample}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithBatcher(&patient{SpanExporter: exporter, log: cfg.Logger}))
	t.tracer = t.provider.Tracer("github.com/ropeline/ropeline/httpfront")
	return t, nil
}

// Run returns when ctx has ended and what was left is sent, or a few seconds later.
func (t *Tracer) Run(ctx context.Context) error {
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := t.provider.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("traces: %w", err)
	}
	return nil // that a collector does not answer is no reason to fail
}

// patient tells of a collector that does not take spans once, and not for each batch.
type patient struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	told bool // the last attempt failed; one goroutine exports
}

// ExportSpans sends spans.
func (p *patient) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := p.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && !p.told {
		p.log.Warn("traces cannot be sent; they are dropped until the collector takes them again", "error", err)
	}
	if err == nil && p.told {
		p.log.Info("traces are sent again")
	}
	p.told = err != nil
	return nil
}

// Parent is what somebody says of the trace that a request belongs to.
type Parent interface {
	// Get returns the value of a header field, "" if there is none.
	Get(field string) string
}

// carrier lets the library read a Parent.
type carrier struct{ Parent }

// Set does nothing.
func (carrier) Set(string, string) {}

// Keys returns nothing; nobody asks.
func (carrier) Keys() []string { return nil }

// Trace is one request that is traced; nil: it is not.
type Trace struct {
	tracer *Tracer
	ctx    context.Context // of span, which is how the library finds it
	span   trace.Span
}

// Begin begins the trace of a request that came at began, or returns nil. parent is what a
// proxy says that is trusted; nil: there is none.
func (t *Tracer) Begin(began time.Time, parent Parent) *Trace {
	if t == nil {
		return nil
	}
	ctx := context.Background()
	if parent != nil {
		ctx = propagation.TraceContext{}.Extract(ctx, carrier{parent})
	}
	if from := trace.SpanContextFromContext(ctx); from.IsValid() {
		if !from.IsSampled() {
			return nil
		}
	} else if t.sample < 1 && rand.Float64() >= t.sample {
		return nil
	}
	ctx, span := t.tracer.Start(ctx, "request", trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindServer))
	return &Trace{t, ctx, span}
}

// Part notes what has taken from one time to another.
func (t *Trace) Part(name string, from, to time.Time) {
	if t == nil {
		return
	}
	_, span := t.tracer.tracer.Start(t.ctx, name, trace.WithTimestamp(from))
	span.End(trace.WithTimestamp(to))
}

// Request is what is told of a request. Header fields, the query and who asked are not: they
// tell of visitors.
type Request struct {
	Method, Host, Path string
	Room               string // "": none
	Outcome            string // what became of it, in one word
	Status             int    // 0: there was no answer
}

// End ends the trace: the answer is out.
func (t *Trace) End(r *Request, ended time.Time) {
	if t == nil {
		return
	}
	t.span.SetName(r.Method)
	t.span.SetAttributes(attribute.String("http.request.method", r.Method), attribute.String("server.address", text(r.Host)),
		attribute.String("url.path", text(r.Path)), attribute.String("ropeline.outcome", r.Outcome))
	if r.Room != "" {
		t.span.SetAttributes(attribute.String("ropeline.room", text(r.Room)))
	}
	if r.Status != 0 {
		t.span.SetAttributes(attribute.Int("http.response.status_code", r.Status))
	}
	if r.Status >= 500 {
		t.span.SetStatus(codes.Error, "")
	}
	t.span.End(trace.WithTimestamp(ended))
}

// maxText bounds what of a text is told, in bytes.
const maxText = 512

// text makes what a request says fit to be told: a batch that has bytes which are no UTF-8
// cannot be sent.
func text(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxText)], "\uFFFD") }

// Call is the part of a request that an origin has; nil: it is not traced.
type Call struct{ span trace.Span }

// Call begins it.
func (t *Trace) Call(origin string) *Call {
	if t == nil {
		return nil
	}
	_, span := t.tracer.tracer.Start(t.ctx, "origin", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("server.address", origin)))
	return &Call{span}
}

// Traceparent returns the value of the header field that the origin is to get; "" for none.
func (c *Call) Traceparent() string {
	if c == nil {
		return ""
	}
	fields := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), c.span), fields)
	return fields["traceparent"]
}

// Answered notes the code of the origin's answer.
func (c *Call) Answered(status int) {
	if c != nil {
		c.span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
}

// End ends it. failed says that the origin did not answer, or not to the end.
func (c *Call) End(failed bool) {
	if c == nil {
		return
	}
	if failed {
		c.span.SetStatus(codes.Error, "")
	}
	c.span.End()
}
