package export

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	collectlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// received is what a collector got.
type received struct {
	collecttraces.UnimplementedTraceServiceServer

	mu      sync.Mutex
	spans   []string
	metrics []string
	logs    []*logspb.LogRecord
	service []string // of each request
}

func (r *received) traces(in *collecttraces.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, from := range in.ResourceSpans {
		for _, a := range from.Resource.Attributes {
			if a.Key == "service.name" {
				r.service = append(r.service, a.Value.GetStringValue())
			}
		}
		for _, scope := range from.ScopeSpans {
			for _, span := range scope.Spans {
				r.spans = append(r.spans, span.Name)
			}
		}
	}
}

func (r *received) measured(in *collectmetrics.ExportMetricsServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, from := range in.ResourceMetrics {
		for _, a := range from.Resource.Attributes {
			if a.Key == "service.name" {
				r.service = append(r.service, a.Value.GetStringValue())
			}
		}
		for _, scope := range from.ScopeMetrics {
			for _, m := range scope.Metrics {
				r.metrics = append(r.metrics, m.Name)
			}
		}
	}
}

func (r *received) logged(in *collectlogs.ExportLogsServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, from := range in.ResourceLogs {
		for _, a := range from.Resource.Attributes {
			if a.Key == "service.name" {
				r.service = append(r.service, a.Value.GetStringValue())
			}
		}
		for _, scope := range from.ScopeLogs {
			r.logs = append(r.logs, scope.LogRecords...)
		}
	}
}

// Export takes traces.
func (r *received) Export(_ context.Context, in *collecttraces.ExportTraceServiceRequest) (*collecttraces.ExportTraceServiceResponse, error) {
	r.traces(in)
	return &collecttraces.ExportTraceServiceResponse{}, nil
}

// measurer and logger take the other signals, whose methods have the same name.
type measurer struct {
	collectmetrics.UnimplementedMetricsServiceServer
	*received
}

func (m measurer) Export(_ context.Context, in *collectmetrics.ExportMetricsServiceRequest) (*collectmetrics.ExportMetricsServiceResponse, error) {
	m.measured(in)
	return &collectmetrics.ExportMetricsServiceResponse{}, nil
}

type logger struct {
	collectlogs.UnimplementedLogsServiceServer
	*received
}

func (l logger) Export(_ context.Context, in *collectlogs.ExportLogsServiceRequest) (*collectlogs.ExportLogsServiceResponse, error) {
	l.logged(in)
	return &collectlogs.ExportLogsServiceResponse{}, nil
}

// overGRPC serves r and returns its endpoint.
func (r *received) overGRPC(t *testing.T) (endpoint string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collecttraces.RegisterTraceServiceServer(server, r)
	collectmetrics.RegisterMetricsServiceServer(server, measurer{received: r})
	collectlogs.RegisterLogsServiceServer(server, logger{received: r})
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return "http://" + l.Addr().String()
}

func (r *received) overHTTP(t *testing.T) (endpoint string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		switch q.URL.Path {
		case "/v1/traces":
			in := &collecttraces.ExportTraceServiceRequest{}
			err = proto.Unmarshal(body, in)
			r.traces(in)
		case "/v1/metrics":
			in := &collectmetrics.ExportMetricsServiceRequest{}
			err = proto.Unmarshal(body, in)
			r.measured(in)
		case "/v1/logs":
			in := &collectlogs.ExportLogsServiceRequest{}
			err = proto.Unmarshal(body, in)
			r.logged(in)
		default:
			t.Errorf("asked for %s", q.URL.Path)
		}
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// All three signals arrive over both protocols, with what they are from, and a
// log record has the trace that it belongs to.
func TestAllSignalsArrive(t *testing.T) {
	for _, protocol := range []string{protocolHTTP, protocolGRPC} {
		t.Run(protocol, func(t *testing.T) {
			var got received
			endpoint := got.overHTTP
			if protocol == protocolGRPC {
				endpoint = got.overGRPC
			}
			url := endpoint(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url) // the SDK reads it itself
			opened, err := Open(t.Context(), Options{
				Getenv: environment("OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_EXPORTER_OTLP_PROTOCOL", protocol, "OTEL_LOGS_EXPORTER", "otlp"),
				Stdout: io.Discard, Log: slog.New(slog.DiscardHandler), Version: "v9",
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, span := opened.Traces.Tracer("test").Start(t.Context(), "a span")
			counter, _ := opened.Meters.Meter("test").Int64Counter("a.counter")
			counter.Add(ctx, 1, metric.WithAttributes(attribute.String("a", "b")))
			var local bytes.Buffer
			log := opened.Logger(slog.New(slog.NewTextHandler(&local, nil)))
			log.DebugContext(ctx, "below the level")
			log.With("n", 1).InfoContext(ctx, "a line", "of", "text")
			span.End()
			if err := opened.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.spans, []string{"a span"}) || !slices.Equal(got.metrics, []string{"a.counter"}) {
				t.Errorf("got spans %q, metrics %q", got.spans, got.metrics)
			}
			if len(got.logs) != 1 || got.logs[0].Body.GetStringValue() != "a line" || len(got.logs[0].Attributes) != 2 {
				t.Fatalf("got logs %v", got.logs)
			}
			if id := span.SpanContext().TraceID(); !bytes.Equal(got.logs[0].TraceId, id[:]) {
				t.Errorf("the record has trace %x, want %s", got.logs[0].TraceId, id)
			}
			if !slices.Equal(got.service, []string{"remora", "remora", "remora"}) {
				t.Errorf("the signals are from %q", got.service)
			}
			if !strings.Contains(local.String(), `msg="a line" n=1 of=text`) || strings.Contains(local.String(), "below") {
				t.Errorf("the log itself says %q", local.String())
			}
		})
	}
}

// What a collector says of metrics and logs stays out of the log, and so do the
// values of variables that can't be used. Its failures are not sent to it.
func TestFailuresOfMetricsAndLogs(t *testing.T) {
	const key = "the-collectors-key"
	for _, protocol := range []string{protocolHTTP, protocolGRPC} {
		t.Run(protocol, func(t *testing.T) {
			collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "no such key: "+key, http.StatusUnauthorized)
			}))
			defer collector.Close()
			for name, value := range map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_LOGS_EXPORTER": "otlp", "OTEL_TRACES_EXPORTER": "none",
				"OTEL_EXPORTER_OTLP_TIMEOUT": "500", "OTEL_EXPORTER_OTLP_LOGS_HEADERS": key, "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "authorization=%ZZ" + key,
			} {
				t.Setenv(name, value)
			}
			var logged bytes.Buffer
			local := slog.New(slog.NewTextHandler(&logged, nil))
			opened, err := Open(t.Context(), Options{Getenv: os.Getenv, Stdout: io.Discard, Log: local})
			if err != nil {
				t.Fatal(err)
			}
			opened.Logger(local).Info("a line")
			counter, _ := opened.Meters.Meter("test").Int64Counter("a.counter")
			counter.Add(t.Context(), 1)
			if err := opened.Shutdown(t.Context()); err != nil {
				local.Warn("lost", "error", Failure(err))
			}
			if got := logged.String(); strings.Contains(got, key) || !strings.Contains(got, "the collector ") || !strings.Contains(got, "OTEL_EXPORTER_OTLP_LOGS_HEADERS") {
				t.Errorf("the log says %s", got)
			}
		})
	}
}
