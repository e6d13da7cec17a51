package persist

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/remora-proxy/remora/storage"
)

// provider returns the same recorder for every name.
type provider struct {
	embedded.TracerProvider
	recorder *recorder
}

func (p provider) Tracer(string, ...trace.TracerOption) trace.Tracer { return p.recorder }

// recorder keeps the spans that ended.
type recorder struct {
	embedded.Tracer
	mu    sync.Mutex
	ended []*recorded
}

type recorded struct {
	trace.Span
	recorder *recorder
	name     string
	attrs    map[string]int64
	text     string
	status   codes.Code
}

func (r *recorder) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := &recorded{Span: noop.Span{}, recorder: r, name: name, attrs: make(map[string]int64)}
	cfg := trace.NewSpanStartConfig(opts...)
	s.SetAttributes(cfg.Attributes()...)
	return ctx, s
}

func (s *recorded) SetAttributes(kv ...attribute.KeyValue) {
	for _, a := range kv {
		s.attrs[string(a.Key)] = a.Value.AsInt64()
		s.text += fmt.Sprint(a.Key, "=", a.Value.String(), " ")
	}
}

func (s *recorded) SetStatus(c codes.Code, text string) { s.status = c; s.text += text }

func (s *recorded) End(...trace.SpanEndOption) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	s.recorder.ended = append(s.recorder.ended, s)
}

func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, spans := newFaulty(), &recorder{}
		store.setFault(func(method string, n int) (error, bool) {
			if method == "Put" && n == 1 {
				return storage.ErrUnavailable, false
			}
			return nil, false
		})
		p := start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, provider{recorder: spans}))
		mustEnqueue(t, p.Pipeline, turnOf(testScope, "t1", "private words", "answer"), turnOf(testScope, "t2", "private words", ""))
		mustFlush(t, p.Pipeline)
		p.stop()

		if got := len(spans.ended); got != 2 {
			t.Fatalf("spans: got %d, want the failed and the successful batch", got)
		}
		failed, done := spans.ended[0], spans.ended[1]
		if failed.status != codes.Error || done.status == codes.Error {
			t.Errorf("status: %v, %v", failed.status, done.status)
		}
		if got := failed.attrs["gen_ai.memory.record.count"]; got != 3 || !strings.Contains(failed.text, "error.type=unavailable ") || strings.Contains(done.text, "error.type") {
			t.Errorf("the failed span has %d records attempted and says %s; the other says %s", got, failed.text, done.text)
		}
		for name, want := range map[string]int64{"remora.turns": 2, "gen_ai.memory.record.count": 3, "remora.added": 2, "remora.replaced": 0, "remora.unchanged": 0} {
			if got := done.attrs[name]; got != want {
				t.Errorf("%s: got %d, want %d", name, got, want)
			}
		}
		for _, s := range spans.ended {
			if s.name != "upsert_memory" || strings.Contains(s.text, "private") {
				t.Errorf("span %s: %s", s.name, s.text)
			}
		}
	})
}
