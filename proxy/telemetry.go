package proxy

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/telemetry"
)

const instrumentation = "github.com/remora-proxy/remora/proxy"

// exchangeSpan is the span of one exchange, and what is measured of it. Its
// methods accept a nil receiver: neither traced nor measured.
type exchangeSpan struct {
	span     trace.Span // one that records nothing if the exchange is not traced
	meters   *meters    // nil = not measured
	start    time.Time
	provider string
	request  string // model
	failure  string // class
	accepted bool   // the upstream has not refused the request
	redact   func(text string) string
}

// startSpan starts the exchange's span as a child of the client's. The upstream
// learns of it only if the client sent a traceparent: no header is added.
func (c *call) startSpan() {
	span := trace.Span(noop.Span{})
	if c.h.tracer != nil {
		carrier := propagation.HeaderCarrier(c.r.Header)
		c.ctx, span = c.h.tracer.Start(c.h.w3c.Extract(c.r.Context(), carrier), telemetry.SpanChat, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(c.start))
		if span.IsRecording() && c.r.Header.Get("Traceparent") != "" {
			c.h.w3c.Inject(c.ctx, carrier)
		}
	}
	if !span.IsRecording() && c.h.meters == nil {
		return
	}
	c.trace = &exchangeSpan{span: span, meters: c.h.meters, start: c.start, provider: c.up.Name, redact: c.h.deps.Redact}
	if span.IsRecording() {
		attrs := []attribute.KeyValue{telemetry.AttrOperation.String(telemetry.SpanChat), telemetry.AttrProvider.String(c.up.Name)}
		span.SetAttributes(append(attrs, serverAttrs(c.up.URL)...)...)
	}
}

func serverAttrs(u *url.URL) []attribute.KeyValue {
	port := 443
	if u.Scheme == "http" {
		port = 80
	}
	if p, err := strconv.Atoi(u.Port()); err == nil {
		port = p
	}
	return []attribute.KeyValue{telemetry.AttrServerAddress.String(u.Hostname()), telemetry.AttrServerPort.Int(port)}
}

func (s *exchangeSpan) model(model string) {
	if s == nil || model == "" {
		return
	}
	s.request = model
	if !s.span.IsRecording() {
		return
	}
	if model = s.shown(model); model == "" {
		return
	}
	s.span.SetName(telemetry.SpanChat + " " + model)
	s.span.SetAttributes(telemetry.AttrModel.String(model))
}

// shown returns what may be shown of a text that clients and upstreams choose.
func (s *exchangeSpan) shown(text string) string {
	if len(text) > maxShown {
		return ""
	}
	if s.redact == nil || text == "" {
		return text
	}
	return s.redact(text)
}

// Limits in bytes on what clients and upstreams choose. What is longer is not
// shown.
const (
	maxShown       = 256
	maxShownFinish = 64 // a finish reason
)

// token is what ids of answers and finish reasons look like.
var token = regexp.MustCompile(`^[A-Za-z0-9_.:/+=-]+$`)

// shownToken returns an id or a reason that an upstream has chosen, or "" if it
// does not look like one, is too long, or has something that must not be shown.
func (s *exchangeSpan) shownToken(text string, limit int) string {
	if len(text) > limit || !token.MatchString(text) || s.shown(text) != text {
		return ""
	}
	return text
}

func (s *exchangeSpan) memory(status Status, memories int) {
	if s == nil || !s.span.IsRecording() {
		return
	}
	s.span.SetAttributes(telemetry.AttrStatus.String(string(status)), telemetry.AttrMemories.Int(memories))
}

func (s *exchangeSpan) answered(code int) {
	if s == nil {
		return
	}
	if s.span.IsRecording() {
		s.span.SetAttributes(telemetry.AttrHTTPStatus.Int(code))
	}
	if s.accepted = code < http.StatusBadRequest; !s.accepted {
		s.failed(strconv.Itoa(code))
	}
}

// failed records a class of failure: a status code or a fixed word.
func (s *exchangeSpan) failed(class string) {
	if s == nil {
		return
	}
	s.failure = class
	if s.span.IsRecording() {
		s.span.SetAttributes(telemetry.AttrError.String(class))
		s.span.SetStatus(codes.Error, "")
	}
}

// errorReported is the class of an error that an answer reports without a
// status: as an event of a stream, or in place of an answer with status 200.
const errorReported = "error_event"

// reported records that the upstream reports an error in its answer, with a
// status or 0, unless a failure is known already.
func (s *exchangeSpan) reported(status int) {
	switch {
	case s == nil || s.failure != "":
	case status >= http.StatusBadRequest && status <= 599:
		s.failed(strconv.Itoa(status))
	default:
		s.failed(errorReported)
	}
}

// taken records that the upstream has not refused the request, where there is
// no status that would tell.
func (s *exchangeSpan) taken(at time.Time) {
	if s != nil {
		s.accepted = true
		s.firstChunk(at)
	}
}

// firstChunk records when the client had the first bytes of a streamed answer.
func (s *exchangeSpan) firstChunk(at time.Time) {
	if s != nil && s.meters != nil && !at.IsZero() {
		s.meters.firstChunk.Record(s.context(), at.Sub(s.start).Seconds(), s.meters.attributes(s, "", ""))
	}
}

func (s *exchangeSpan) reply(r dialect.Reply) {
	if s == nil || !s.span.IsRecording() {
		return
	}
	for _, a := range [...]struct {
		key   attribute.Key
		value string
	}{{telemetry.AttrResponseModel, s.shown(r.Model)}, {telemetry.AttrResponseID, s.shownToken(r.ID, maxShown)}} {
		if a.value != "" {
			s.span.SetAttributes(a.key.String(a.value))
		}
	}
	if finish := s.shownToken(r.Finish, maxShownFinish); finish != "" {
		s.span.SetAttributes(telemetry.AttrFinishReasons.StringSlice([]string{finish}))
	}
	if u := r.Usage; u != (dialect.Usage{}) {
		s.span.SetAttributes(telemetry.AttrInputTokens.Int64(u.Input), telemetry.AttrOutputTokens.Int64(u.Output))
		if u.Cached > 0 {
			s.span.SetAttributes(telemetry.AttrCachedTokens.Int64(u.Cached))
		}
		if u.Written > 0 {
			s.span.SetAttributes(telemetry.AttrWrittenTokens.Int64(u.Written))
		}
	}
}

// used records the tokens that the upstream has reported.
func (s *exchangeSpan) used(u dialect.Usage) {
	if s == nil || s.meters == nil || u == (dialect.Usage{}) {
		return
	}
	s.meters.tokens.Record(s.context(), float64(u.Input), s.meters.attributes(s, "", tokensIn))
	s.meters.tokens.Record(s.context(), float64(u.Output), s.meters.attributes(s, "", tokensOut))
}

func (s *exchangeSpan) end(at time.Time) {
	if s == nil {
		return
	}
	if s.meters != nil {
		s.meters.operation.Record(s.context(), at.Sub(s.start).Seconds(), s.meters.attributes(s, s.failure, ""))
	}
	s.span.End(trace.WithTimestamp(at))
}

// context has only the span, so that a measurement is found with its trace.
func (s *exchangeSpan) context() context.Context {
	if !s.span.SpanContext().IsSampled() {
		return context.Background()
	}
	return trace.ContextWithSpan(context.Background(), s.span)
}
