package export

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// grpcCollector answers exports over gRPC: with the body, if any, the status
// and the message. It returns its address and what it was sent.
func grpcCollector(t *testing.T, body, status, message string) (endpoint string, sent func() string) {
	var mu sync.Mutex
	var all bytes.Buffer
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		mu.Lock()
		all.WriteString(r.URL.Path)
		all.Write(got)
		mu.Unlock()
		h := w.Header()
		h.Set("Content-Type", "application/grpc")
		h.Set("Trailer", "Grpc-Status, Grpc-Message")
		if status == "0" {
			prefix := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))
			_, _ = w.Write(append(prefix, body...))
		}
		h.Set("Grpc-Status", status)
		h.Set("Grpc-Message", message)
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
}

// What goes over gRPC arrives, and what the collector says of it stays out of
// the log.
func TestTelemetryOverGRPC(t *testing.T) {
	const key = "the-collectors-key"
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "500")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "700")
	partial := "\x08\x01\x12" + string(rune(len(key))) + key // 1 span rejected, and why
	for _, test := range []struct{ name, body, status, message, want string }{
		{"taken", "", "0", "", ""},
		{"partial", "\x0a" + string(rune(len(partial))) + partial, "0", "", "the collector rejected 1 spans"},
		{"unauthenticated", "", "16", "no such key: " + key, "the collector answers Unauthenticated"},
		{"away for now", "", "14", "gone: " + key, "the collector is away, or answers Unavailable"},
		{"unknown status", "", "99", key, "the collector answers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			endpoint, sent := grpcCollector(t, test.body, test.status, test.message)
			logged := exportOne(t, endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
			if !strings.Contains(sent(), "TraceService/Export") || !strings.Contains(sent(), "one span") {
				t.Errorf("the collector got %q", sent())
			}
			if strings.Contains(logged, key) || !strings.Contains(logged, test.want) || (test.want == "") != (logged == "") {
				t.Errorf("the log says %q, want %q", logged, test.want)
			}
		})
	}
	t.Run("over HTTP, away for now", func(t *testing.T) {
		collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "gone: "+key, http.StatusServiceUnavailable)
		}))
		defer collector.Close()
		logged := exportOne(t, collector.URL)
		if strings.Contains(logged, key) || !strings.Contains(logged, "the collector does not take them now") {
			t.Errorf("the log says %q", logged)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		start := time.Now()
		logged := exportOne(t, "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
		if !strings.Contains(logged, "the collector is away") || time.Since(start) > 5*time.Second {
			t.Errorf("after %s the log says %q", time.Since(start), logged)
		}
	})
}
