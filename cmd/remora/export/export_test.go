package export

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// environment returns a getenv over pairs of names and values.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func options(env ...string) Options {
	return Options{Getenv: environment(env...), Stdout: io.Discard, Log: slog.New(slog.DiscardHandler), Version: "v0"}
}

func TestTelemetryIsOffUnlessAsked(t *testing.T) {
	for _, test := range []struct {
		name                  string
		env                   []string
		traces, metrics, logs string
	}{
		{"nothing set", nil, Off, Off, Off},
		{"none", []string{"OTEL_TRACES_EXPORTER", "none", "OTEL_METRICS_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"}, Off, Off, Off},
		{"disabled", []string{"OTEL_SDK_DISABLED", "true", "OTEL_TRACES_EXPORTER", "console", "OTEL_LOGS_EXPORTER", "otlp"}, Off, Off, Off},
		{"endpoint", []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"}, "otlp over http/protobuf", "otlp over http/protobuf", Off},
		{"traces endpoint and protocol", []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, "otlp over grpc", Off, Off},
		{"a protocol for metrics", []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"}, "otlp over http/protobuf", "otlp over grpc", Off},
		{"console", []string{"OTEL_TRACES_EXPORTER", "console"}, Console, Off, Off},
		{"prometheus", []string{"OTEL_METRICS_EXPORTER", "prometheus"}, Off, Off, Off},
		{"logs", []string{"OTEL_LOGS_EXPORTER", "otlp"}, Off, Off, "otlp over http/protobuf"},
		{"logs over grpc", []string{"OTEL_LOGS_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc"}, Off, Off, "otlp over grpc"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Open(t.Context(), options(test.env...))
			if err != nil {
				t.Fatal(err)
			}
			stopped, stop := context.WithCancel(t.Context())
			stop() // nobody is there to send to
			defer got.Shutdown(stopped)
			if got.TracesTo != test.traces || got.MetricsTo != test.metrics || got.LogsTo != test.logs {
				t.Errorf("got %q, %q, %q", got.TracesTo, got.MetricsTo, got.LogsTo)
			}
			if (got.Traces == nil) != (test.traces == Off) || got.Sends != (test.metrics != Off) || (got.logs == nil) != (test.logs == Off) {
				t.Errorf("providers don't fit: %+v", got)
			}
			log := slog.New(slog.DiscardHandler)
			if (got.Logger(log) == log) != (test.logs == Off) {
				t.Error("the logger sends where it should not, or does not where it should")
			}
		})
	}
	for _, env := range [][]string{
		{"OTEL_TRACES_EXPORTER", "zipkin"},
		{"OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"},
		{"OTEL_LOGS_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/json"},
	} {
		_, err := Open(t.Context(), options(env...))
		if err == nil || !strings.Contains(err.Error(), env[len(env)-2]) {
			t.Errorf("%v: got %v, want an error that names the variable", env, err)
		}
	}
}

// Exporters of metrics and logs that others have leave the signal off. What is
// logged names the variable, not its value.
func TestOtherExporters(t *testing.T) {
	for _, env := range [][2]string{
		{"OTEL_METRICS_EXPORTER", "console"}, {"OTEL_METRICS_EXPORTER", "hush"}, {"OTEL_LOGS_EXPORTER", "console"}, {"OTEL_LOGS_EXPORTER", "hush"},
	} {
		var logged bytes.Buffer
		o := options(env[0], env[1])
		o.Log = slog.New(slog.NewTextHandler(&logged, nil))
		got, err := Open(t.Context(), o)
		if err != nil {
			t.Errorf("%v prevents the start: %v", env, err)
			continue
		}
		if err := got.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if got.MetricsTo != Off || got.LogsTo != Off || got.Sends || got.logs != nil {
			t.Errorf("%v: metrics %s, logs %s", env, got.MetricsTo, got.LogsTo)
		}
		if text := logged.String(); strings.Count(text, "variable="+env[0]) != 1 || strings.Contains(text, env[1]) {
			t.Errorf("%v: the log says %q", env, text)
		}
	}
}

// A signal that hangs at the end keeps no other from being sent.
func TestSignalsEndTogether(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	telemetry := Telemetry{Ends: []func(context.Context) error{hangs, func(context.Context) error { stop(); return nil }}}
	if err := telemetry.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
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
	tracing, err := Open(t.Context(), options("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL, "OTEL_METRICS_EXPORTER", "none"))
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracing.Traces.Tracer("test").Start(t.Context(), "one span")
	span.End()
	if err := tracing.Shutdown(t.Context()); err != nil {
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
	given := environment(append(env, "OTEL_EXPORTER_OTLP_ENDPOINT", endpoint, "OTEL_METRICS_EXPORTER", "none")...)
	getenv := func(name string) string { return cmp.Or(given(name), os.Getenv(name)) }
	tracing, err := Open(t.Context(), Options{Getenv: getenv, Stdout: io.Discard, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracing.Traces.Tracer("test").Start(t.Context(), "one span")
	span.End()
	_ = tracing.Shutdown(t.Context())
	return logged.String()
}
