package export

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

func scrape(t *testing.T, h http.Handler, accept string) (contentType, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("code %d: %s", w.Code, w.Body)
	}
	return w.Header().Get("Content-Type"), w.Body.String()
}

// What Prometheus gets, in both formats, of every kind of instrument.
func TestScrape(t *testing.T) {
	got, err := Open(t.Context(), options())
	if err != nil {
		t.Fatal(err)
	}
	defer got.Shutdown(t.Context())
	meter := got.Meters.Meter("test")
	observed := func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(7, metric.WithAttributes(attribute.String("the.reason", "a \"b\"\\\n\xff")))
		o.Observe(3)
		return nil
	}
	if _, err := meter.Int64ObservableCounter("remora.things", metric.WithUnit("{thing}"), metric.WithDescription("things \\ of\nall kinds"), metric.WithInt64Callback(observed)); err != nil {
		t.Fatal(err)
	}
	gauge, _ := meter.Float64ObservableGauge("remora.lag", metric.WithUnit("s"), metric.WithDescription("lag"))
	if _, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error { o.ObserveFloat64(gauge, 1.5); return nil }, gauge); err != nil {
		t.Fatal(err)
	}
	took, _ := meter.Float64Histogram("remora.took", metric.WithUnit("s"), metric.WithDescription("time"), metric.WithExplicitBucketBoundaries(0.5, 2))
	sampled := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}, TraceFlags: trace.FlagsSampled,
	}))
	took.Record(t.Context(), 0.25)
	took.Record(sampled, 1)
	took.Record(t.Context(), 9)

	common := []string{
		`remora_things_total{the_reason="a \"b\"\\\n?"} 7`, "remora_things_total 3", "remora_lag_seconds 1.5",
		`remora_took_seconds_bucket{le="0.5"} 1`, `remora_took_seconds_bucket{le="+Inf"} 3`, "remora_took_seconds_sum 10.25", "remora_took_seconds_count 3",
	}
	for _, test := range []struct {
		name, accept, contentType string
		want                      []string
		not                       []string
	}{
		{"text", "text/plain", typeText, append([]string{
			"# TYPE remora_things_total counter", `# HELP remora_things_total things \\ of\nall kinds`, `remora_took_seconds_bucket{le="2.0"} 2`,
		}, common...), []string{"# EOF", "# UNIT", "trace_id"}},
		{"OpenMetrics", openMetrics, typeOpenMetrics, append([]string{
			"# TYPE remora_things counter", "# UNIT remora_lag_seconds seconds", "# EOF",
		}, common...), []string{"# TYPE remora_things_total"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			contentType, text := scrape(t, got.Scrape(), test.accept)
			if contentType != test.contentType {
				t.Errorf("content type %q", contentType)
			}
			lines := "\n" + text
			for _, want := range test.want {
				if !strings.Contains(lines, "\n"+want+"\n") {
					t.Errorf("there is no line %q", want)
				}
			}
			for _, not := range test.not {
				if strings.Contains(lines, not) {
					t.Errorf("there is %q", not)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
	_, text := scrape(t, got.Scrape(), openMetrics)
	exemplar := regexp.MustCompile(`(?m)^remora_took_seconds_bucket\{le="2\.0"\} 2 # \{trace_id="0102[0-9a-f]{28}",span_id="03[0-9a-f]{14}"\} 1 \d{10,}\.\d{3}$`)
	if !exemplar.MatchString(text) || strings.Count(text, "trace_id") != 1 {
		t.Errorf("there is not one exemplar, that of the trace:\n%s", text)
	}
	if !strings.HasSuffix(text, "\n# EOF\n") {
		t.Error("it does not end as OpenMetrics does")
	}
}

func TestScrapeAccepts(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "text/plain": false, openMetrics: true, openMetrics + ";q=0": false,
		"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1": true,
		"application/openmetrics-text;q=0.2, text/plain;q=0.9":                                     false,
		"application/openmetrics-text; version=1.0.0; escaping=allow-utf-8;q=0.5,text/plain;q=0.2": true,
		"application/openmetrics-text;q=high,text/plain":                                           false,
	} {
		if got := accepts([]string{accept}); got != want {
			t.Errorf("%q: got %v", accept, got)
		}
	}
}

// Without metrics there is nothing to scrape.
func TestScrapeOfNothing(t *testing.T) {
	var none Telemetry
	w := httptest.NewRecorder()
	none.Scrape().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("code %d", w.Code)
	}
	if err := none.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
