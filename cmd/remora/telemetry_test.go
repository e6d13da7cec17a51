package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTelemetryIsOffUnlessAsked(t *testing.T) {
	for _, test := range []struct {
		name string
		env  []string
		want string
	}{
		{"nothing set", nil, "off"},
		{"none", []string{"OTEL_TRACES_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"}, "off"},
		{"disabled", []string{"OTEL_SDK_DISABLED", "true", "OTEL_TRACES_EXPORTER", "console"}, "off"},
		{"endpoint", []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"}, "otlp over http/protobuf"},
		{"traces endpoint and protocol", []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, "otlp over grpc"},
		{"console", []string{"OTEL_TRACES_EXPORTER", "console"}, "console"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := openTelemetry(t.Context(), environment(test.env...), io.Discard, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer got.shutdown(context.Background())
			if got.destination != test.want {
				t.Errorf("got %q, want %q", got.destination, test.want)
			}
			if (got.traces == nil) != (test.want == "off") {
				t.Errorf("tracer provider: got %v where traces are %s", got.traces, test.want)
			}
		})
	}
	for _, env := range [][]string{{"OTEL_TRACES_EXPORTER", "zipkin"}, {"OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}} {
		_, err := openTelemetry(t.Context(), environment(env...), io.Discard, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), env[len(env)-2]) {
			t.Errorf("%v: got %v, want an error that names the variable", env, err)
		}
	}
}

// What a collector gets must say which service it is from, and shutdown must send what is queued.
func TestSpansAreFlushed(t *testing.T) {
	var sent bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&sent, r.Body)
	}))
	defer collector.Close()
	// The SDK reads these itself.
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_SERVICE_NAME", "remora-of-ada")
	tracing, err := openTelemetry(t.Context(), environment("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL), io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracing.traces.Tracer("test").Start(t.Context(), "one span")
	span.End()
	if err := tracing.shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one span", "remora-of-ada"} {
		if !strings.Contains(sent.String(), want) {
			t.Errorf("the collector did not get %q", want)
		}
	}
}
