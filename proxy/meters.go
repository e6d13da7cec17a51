package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/remora-proxy/remora/telemetry"
)

// meters are the histograms of exchanges. Counters cost less and are in Stats.
type meters struct {
	operation, firstChunk, tokens, recall metric.Float64Histogram

	models   telemetry.Models
	searches [searchOutcomes]metric.MeasurementOption

	mu    sync.RWMutex
	known map[measured]metric.MeasurementOption // at most maxMeasured
}

// measured are the attributes of a measurement.
type measured struct{ provider, model, failure, token string }

// maxMeasured bounds the attribute sets that are kept for reuse. More are made
// again each time.
const maxMeasured = 1024

// Values of gen_ai.token.type.
const (
	tokensIn  = "input"
	tokensOut = "output"
)

// newMeters returns the histograms, nil where there is no provider.
func newMeters(provider metric.MeterProvider, redact func(string) string) (*meters, error) {
	if provider == nil {
		return nil, nil
	}
	m := &meters{known: map[measured]metric.MeasurementOption{}}
	m.models.Redact = redact
	var errs []error
	for name, at := range map[string]*metric.Float64Histogram{
		telemetry.OperationDuration: &m.operation, telemetry.FirstChunk: &m.firstChunk, telemetry.TokenUsage: &m.tokens, telemetry.RecallDuration: &m.recall,
	} {
		var err error
		*at, err = telemetry.NewHistogram(provider, name)
		errs = append(errs, err)
	}
	for o := range searchOutcomes {
		m.searches[o] = metric.WithAttributeSet(attribute.NewSet(telemetry.AttrOutcome.String(o.String())))
	}
	return m, errors.Join(errs...)
}

// attributes returns those of a measurement of an exchange. token is "" except
// where tokens are counted.
func (m *meters) attributes(s *exchangeSpan, failure, token string) metric.MeasurementOption {
	key := measured{s.provider, m.models.Name(s.request, s.accepted), failure, token}
	m.mu.RLock()
	known, ok := m.known[key]
	m.mu.RUnlock()
	if ok {
		return known
	}
	attrs := []attribute.KeyValue{telemetry.AttrOperation.String(telemetry.SpanChat), telemetry.AttrProvider.String(key.provider)}
	for _, a := range [...]struct {
		key   attribute.Key
		value string
	}{{telemetry.AttrModel, key.model}, {telemetry.AttrError, key.failure}, {telemetry.AttrTokenType, key.token}} {
		if a.value != "" {
			attrs = append(attrs, a.key.String(a.value))
		}
	}
	made := metric.WithAttributeSet(attribute.NewSet(attrs...))
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) < maxMeasured {
		m.known[key] = made
	}
	return made
}

// searchOutcome is how a search for memories ended.
type searchOutcome int

const (
	searchFound searchOutcome = iota
	searchEmpty
	searchTimeout
	searchFailed
	searchOutcomes
	searchLeft // by its client; it is not counted
)

func (o searchOutcome) String() string {
	return [...]string{"found", "empty", "timeout", "failed"}[o]
}

// countSearch counts a search for memories, and how long it took, unless its
// client has left.
func countSearch(ctx context.Context, h *Handler, o searchOutcome, memories int, took time.Duration) {
	if o == searchLeft {
		return
	}
	if o == searchFound && memories == 0 {
		o = searchEmpty
	}
	h.stats.searches[o].Add(1)
	h.stats.Recalled.Add(int64(memories))
	if h.meters != nil {
		h.meters.recall.Record(ctx, took.Seconds(), h.meters.searches[o])
	}
}
