package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

// What a collector gets must say which service it is from, and shutdown must
// send what is queued.
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

// Collectors quote the key that they refuse, and the SDK the variable that it
// can't read.
func TestTelemetryFailuresTellNoKey(t *testing.T) {
	const key = "the-collectors-key"
	for name, answer := range map[string]func(http.ResponseWriter){
		"401": func(w http.ResponseWriter) { http.Error(w, "no such key: "+key, http.StatusUnauthorized) },
		"partial": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			message := "\x08\x01\x12" + string(rune(len(key))) + key // 1 span rejected, and why
			_, _ = w.Write([]byte("\x0a" + string(rune(len(message))) + message))
		},
	} {
		collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		got := exportOne(t, collector.URL)
		collector.Close()
		if strings.Contains(got, key) || !strings.Contains(got, "the collector ") {
			t.Errorf("%s: the log says %s", name, got)
		}
	}
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS": key, "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "authorization=%ZZ" + key, "OTEL_EXPORTER_OTLP_TIMEOUT": key,
		"OTEL_TRACES_SAMPLER": key, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://%zz" + key, "OTEL_EXPORTER_OTLP_CERTIFICATE": "/none/" + key,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if got := exportOne(t, "http://127.0.0.1:1"); strings.Contains(got, key) || !strings.Contains(got, "variable="+name) {
				t.Errorf("the log says %s", got)
			}
		})
	}
}

// exportOne sends one span and returns what is logged.
func exportOne(t *testing.T, endpoint string, env ...string) string {
	var logged bytes.Buffer
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint) // the SDK reads it itself
	given := environment(append(env, "OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)...)
	getenv := func(name string) string { return cmp.Or(given(name), os.Getenv(name)) }
	tracing, err := openTelemetry(t.Context(), getenv, io.Discard, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracing.traces.Tracer("test").Start(t.Context(), "one span")
	span.End()
	_ = tracing.shutdown(t.Context())
	return logged.String()
}

// A collector that hangs at the end costs its spans and the time that it is
// given, and the run has not failed for it.
func TestHungCollectorFailsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{log: slog.New(slog.DiscardHandler), telemetry: telemetry{shutdown: func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second) // to wind up
			return ctx.Err()
		}}}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := runStages(ctx, s.log, s.telemetryStage()); err != nil {
			t.Error(err)
		}
	})
}
