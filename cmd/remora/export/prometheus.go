package export

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/remora-proxy/remora/telemetry"
)

// Formats of an answer.
const (
	typeText        = "text/plain; version=0.0.4; charset=utf-8"
	typeOpenMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	openMetrics     = "application/openmetrics-text"
)

// scraper answers Prometheus, in OpenMetrics with exemplars if that is asked
// for, and in its older text format otherwise. Names and units are those of
// OpenTelemetry's specification for Prometheus. Metrics are
// collected for one request at a time.
type scraper struct {
	reader *sdkmetric.ManualReader

	mu   sync.Mutex
	data metricdata.ResourceMetrics // used again
}

// ServeHTTP answers GET and HEAD.
func (s *scraper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := exposition{open: accepts(r.Header.Values("Accept"))}
	if err := s.collect(r.Context(), &p); err != nil {
		http.Error(w, "metrics can't be collected", http.StatusServiceUnavailable)
		return
	}
	h := w.Header()
	h.Set("Content-Type", typeText)
	if p.open {
		p.WriteString("# EOF\n")
		h.Set("Content-Type", typeOpenMetrics)
	}
	h.Set("Content-Length", strconv.Itoa(p.Len()))
	_, _ = w.Write(p.Bytes())
}

// collect writes all metrics to p.
func (s *scraper) collect(ctx context.Context, p *exposition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reader.Collect(ctx, &s.data); err != nil {
		return err
	}
	for _, scope := range s.data.ScopeMetrics {
		for i := range scope.Metrics {
			p.metric(&scope.Metrics[i])
		}
	}
	return nil
}

// accepts reports whether Accept prefers OpenMetrics over text.
func accepts(values []string) bool {
	var open, text float64
	for media := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, parameters, _ := strings.Cut(media, ";")
		q := 1.0
		for parameter := range strings.SplitSeq(parameters, ";") {
			if value, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
				q, _ = strconv.ParseFloat(value, 64) // 0 if it is no number
			}
		}
		switch strings.TrimSpace(name) {
		case openMetrics:
			open = max(open, q)
		case "text/plain":
			text = max(text, q)
		}
	}
	return open > 0 && open >= text
}

// exposition is an answer that is being written.
type exposition struct {
	bytes.Buffer
	open bool // it is OpenMetrics
}

// metric writes one metric with all its series.
func (p *exposition) metric(m *metricdata.Metrics) {
	name := telemetry.PrometheusName(m.Name, m.Unit)
	switch data := m.Data.(type) {
	case metricdata.Gauge[int64]:
		p.head(name, name, "gauge", m)
		writePoints(p, name, data.DataPoints)
	case metricdata.Gauge[float64]:
		p.head(name, name, "gauge", m)
		writePoints(p, name, data.DataPoints)
	case metricdata.Sum[int64]:
		p.head(name, name+"_total", "counter", m)
		writePoints(p, name+"_total", data.DataPoints)
	case metricdata.Sum[float64]:
		p.head(name, name+"_total", "counter", m)
		writePoints(p, name+"_total", data.DataPoints)
	case metricdata.Histogram[float64]:
		p.head(name, name, "histogram", m)
		for _, d := range sorted(data.DataPoints, func(d metricdata.HistogramDataPoint[float64]) attribute.Set { return d.Attributes }) {
			p.histogram(name, d)
		}
	}
}

// head writes what a metric is. The two formats name counters differently.
func (p *exposition) head(open, text, kind string, m *metricdata.Metrics) {
	name := text
	if p.open {
		name = open
	}
	p.line("# TYPE ", name, " ", kind)
	if unit := telemetry.PrometheusUnit(m.Unit); p.open && unit != "" {
		p.line("# UNIT ", name, " ", unit)
	}
	p.line("# HELP ", name, " ", escapeHelp.Replace(m.Description))
}

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// writePoints writes the series of a counter or gauge.
func writePoints[N int64 | float64](p *exposition, name string, points []metricdata.DataPoint[N]) {
	for _, d := range sorted(points, func(d metricdata.DataPoint[N]) attribute.Set { return d.Attributes }) {
		p.line(name, labels(d.Attributes, ""), " ", number(float64(d.Value)))
	}
}

// histogram writes one series of a histogram, its buckets cumulated.
func (p *exposition) histogram(name string, d metricdata.HistogramDataPoint[float64]) {
	var below uint64
	lower := math.Inf(-1)
	for i, n := range d.BucketCounts {
		upper := math.Inf(1)
		if i < len(d.Bounds) {
			upper = d.Bounds[i]
		}
		below += n
		p.line(name, "_bucket", labels(d.Attributes, bound(upper)), " ", strconv.FormatUint(below, 10), p.exemplar(d.Exemplars, lower, upper))
		lower = upper
	}
	p.line(name, "_sum", labels(d.Attributes, ""), " ", number(d.Sum))
	p.line(name, "_count", labels(d.Attributes, ""), " ", strconv.FormatUint(d.Count, 10))
}

// exemplar returns the newest exemplar of a bucket as it ends a line of
// OpenMetrics, "" if there is none.
func (p *exposition) exemplar(all []metricdata.Exemplar[float64], lower, upper float64) string {
	var newest *metricdata.Exemplar[float64]
	for i := range all {
		e := &all[i]
		if e.Value > lower && e.Value <= upper && len(e.TraceID) > 0 && (newest == nil || e.Time.After(newest.Time)) {
			newest = e
		}
	}
	if newest == nil || !p.open {
		return ""
	}
	return ` # {trace_id="` + hex.EncodeToString(newest.TraceID) + `",span_id="` + hex.EncodeToString(newest.SpanID) + `"} ` +
		number(newest.Value) + " " + strconv.FormatFloat(float64(newest.Time.UnixMilli())/1000, 'f', 3, 64)
}

// sorted returns points in the order of their labels, so that answers can be
// compared.
func sorted[P any](points []P, of func(P) attribute.Set) []P {
	slices.SortFunc(points, func(a, b P) int { return cmp.Compare(labels(of(a), ""), labels(of(b), "")) })
	return points
}

// labels returns attributes as labels, and le if it is not "".
func labels(attributes attribute.Set, le string) string {
	if attributes.Len() == 0 && le == "" {
		return ""
	}
	var b strings.Builder
	b.WriteByte('{')
	for _, a := range attributes.ToSlice() {
		label(&b, strings.ReplaceAll(string(a.Key), ".", "_"), a.Value.String())
	}
	if le != "" {
		label(&b, "le", le)
	}
	b.WriteByte('}')
	return b.String()
}

func label(b *strings.Builder, name, value string) {
	if b.Len() > 1 {
		b.WriteByte(',')
	}
	b.WriteString(name + `="`)
	_, _ = escapeLabel.WriteString(b, strings.ToValidUTF8(value, "?")) // a Builder takes all
	b.WriteByte('"')
}

// bound returns the upper bound of a bucket. OpenMetrics wants a point in it.
func bound(upper float64) string {
	text := number(upper)
	if !strings.ContainsAny(text, ".eI") {
		text += ".0"
	}
	return text
}

func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// line writes a line.
func (p *exposition) line(parts ...string) {
	for _, part := range parts {
		p.WriteString(part)
	}
	p.WriteByte('\n')
}
