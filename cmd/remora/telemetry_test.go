package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/export"
	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/telemetry"
)

// observedRemora is a Remora with a health listener whose telemetry goes where
// the environment says.
type observedRemora struct {
	t                   *testing.T
	sys                 *system
	model               *httptest.Server
	url, health, admin  string
	log, spans, answers lockedBuffer
	stop                func()
}

// startObserved starts one. env are variables, set for the SDK as well.
func startObserved(t *testing.T, env ...string) *observedRemora {
	t.Helper()
	model := httptest.NewServer(&proxytest.LLM{Answer: func(proxytest.Recorded) proxytest.Reply { return proxytest.Reply{Text: "Noted."} }})
	t.Cleanup(model.Close)
	file := filepath.Join(t.TempDir(), "config.json")
	settings := fmt.Sprintf(`{"listen": "127.0.0.1:0", "api": {"listen": "127.0.0.1:0"}, "health": {"listen": "127.0.0.1:0"}, "log": {"level": "debug"},
		"identity": {"tenant": "key", "anonymous": "keyHolder"}, "persist": {"turnsPerSecond": 0},
		"storage": {"dir": %q, "keyFile": %q, "hangTimeout": %q}, "recall": {"deadline": %[3]q, "firstDeadline": %[3]q},
		"upstreams": [{"name": "model", "url": %q, "paths": ["/"]}]}`,
		filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "store.key"), patience.String(), model.URL)
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(env); i += 2 {
		t.Setenv(env[i], env[i+1])
	}
	c, err := config.Load(config.Overrides{File: file}, environment(env...), config.Place{})
	if err != nil {
		t.Fatal(err)
	}
	o := &observedRemora{t: t, model: model}
	log := slog.New(slog.NewJSONHandler(&o.log, &slog.HandlerOptions{Level: c.Log.SlogLevel()}))
	opened, err := export.Open(t.Context(), export.Options{Getenv: environment(env...), Stdout: &o.spans, Log: log, Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	if o.sys, err = newSystem(c, opened.Logger(log), opened); err != nil {
		t.Fatal(err)
	}
	o.url, o.health = "http://"+o.sys.server.Addr().String(), "http://"+o.sys.probes.Addr().String()
	o.admin = "http://" + o.sys.control.Addr().String()
	return o
}

// run runs it until stop, or until the test ends.
func (o *observedRemora) run() {
	o.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.sys.run(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			o.t.Errorf("run: %v", err)
		}
		o.sys.farewell(nil)
	})
	o.t.Cleanup(o.stop)
	eventually(o.t, "the store is open", func() bool { return o.sys.store.Status().Open })
}

// get returns an answer; header is a name and a value, or nothing.
func (o *observedRemora) get(url string, header ...string) (code int, text string) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// chat sends one message, and returns X-Remora-Status.
func (o *observedRemora) chat(model string, stream bool, text string, header ...string) (status string) {
	o.t.Helper()
	body, err := json.Marshal(map[string]any{"model": model, "stream": stream, "messages": []any{said("user", text)}})
	if err != nil {
		o.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, o.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(&o.answers, response.Body); err != nil {
		o.t.Fatal(err)
	}
	return response.Header.Get("X-Remora-Status")
}

// exercise has every metric measured: a search that finds something, one that
// does not, a stream.
func (o *observedRemora) exercise() {
	o.t.Helper()
	owner := []string{"Authorization", "Bearer sk-owner-of-the-falcon"}
	o.chat("fake-1", false, "My falcon is called Perdita and she is afraid of thunder.", append(owner, "X-Remora-Conversation", "a")...)
	eventually(o.t, "the turn is searchable", func() bool { return o.sys.pipeline.Stats().Indexed > 0 })
	if status := o.chat("fake-1", true, "What is my falcon called?", append(owner, "X-Remora-Conversation", "b")...); status != "injected" {
		o.t.Errorf("status %q, want injected", status)
	}
	o.chat("fake-1", false, "Which planets have rings?", append(owner, "X-Remora-Conversation", "c")...)
	eventually(o.t, "answers are read", func() bool { return o.sys.handler.Stats().Assembled.Load() >= 3 })
}

// metricTypes are the names of metrics in Prometheus's format, with their kind.
func metricTypes(text string) map[string]string {
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		found[m[1]] = m[2]
	}
	return found
}

// Every metric of the table is there, nothing else is, and each has the
// attributes that the table names.
func TestMetricsAreThoseOfTheTable(t *testing.T) {
	o := startObserved(t)
	o.run()
	o.exercise()
	_, text := o.get(o.health + "/metrics")
	want := map[string]string{}
	for _, r := range telemetry.Table() {
		name := r.PrometheusName()
		if r.Kind == telemetry.Counter {
			name += "_total"
		}
		want[name] = string(r.Kind)
		var labels []string
		for _, a := range r.Attributes {
			labels = append(labels, strings.ReplaceAll(string(a), ".", "_"))
		}
		for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:_bucket|_sum|_count)?(?:\{(.*)\})? `).FindAllStringSubmatch(text, -1) {
			for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[1], -1) {
				if !slices.Contains(labels, label[1]) && label[1] != "le" {
					t.Errorf("%s has %s, which the table does not name", name, label[1])
				}
			}
		}
	}
	if got := metricTypes(text); !maps.Equal(got, want) {
		for name, kind := range got {
			if want[name] != kind {
				t.Errorf("%s is a %s, in the table %q", name, kind, want[name])
			}
		}
		for name := range want {
			if got[name] == "" {
				t.Errorf("%s is only in the table", name)
			}
		}
	}
	for _, line := range []string{
		`remora_exchanges_total{remora_status="injected"} 1`, `remora_recall_searches_total{remora_outcome="found"} 1`, "remora_store_open 1",
		`gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="model",gen_ai_request_model="fake-1"} 3`,
		`gen_ai_client_operation_time_to_first_chunk_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="model",gen_ai_request_model="fake-1"} 1`,
		"remora_turns_indexed_total 3",
	} {
		eventually(t, line, func() bool {
			_, text := o.get(o.health + "/metrics")
			return strings.Contains(text, "\n"+line+"\n")
		})
	}
}

// Every span is one of the table and has the attributes that the table names:
// no others, all that are always set, and of the rest each in some span, unless
// this run does not meet its condition.
func TestSpansAreThoseOfTheTable(t *testing.T) {
	o := startObserved(t, "OTEL_TRACES_EXPORTER", "console")
	o.run()
	o.exercise()
	o.stop()
	type key struct {
		span      string
		attribute attribute.Key
	}
	seen := map[key]bool{}
	for decode := json.NewDecoder(strings.NewReader(o.spans.String())); decode.More(); {
		var span struct {
			Name       string
			SpanKind   trace.SpanKind
			Attributes []struct{ Key attribute.Key }
		}
		if err := decode.Decode(&span); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(span.Name, " ")
		all := telemetry.Spans()
		i := slices.IndexFunc(all, func(s telemetry.Span) bool { return s.Name == name })
		if i < 0 || all[i].Kind != span.SpanKind {
			t.Errorf("%q of kind %s is not in the table", span.Name, span.SpanKind)
			continue
		}
		got := map[attribute.Key]bool{}
		for _, a := range span.Attributes {
			got[a.Key], seen[key{name, a.Key}] = true, true
		}
		for _, a := range all[i].Attributes {
			if a.When == "" && !got[a.Key] {
				t.Errorf("%q lacks %s", span.Name, a.Key)
			}
			delete(got, a.Key)
		}
		for a := range got {
			t.Errorf("%q has %s, which the table does not name", span.Name, a)
		}
	}
	unmet := []attribute.Key{telemetry.AttrError, telemetry.AttrVectors, telemetry.AttrCachedTokens, telemetry.AttrWrittenTokens}
	for _, s := range telemetry.Spans() {
		for _, a := range s.Attributes {
			if set := seen[key{s.Name, a.Key}]; set == slices.Contains(unmet, a.Key) {
				t.Errorf("%s of %s is set: %v, want %v", a.Key, s.Name, set, !set)
			}
		}
	}
}

// promtool finds nothing to object to, in names, units and helps.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	promtool := debianTool(t, "promtool")
	o := startObserved(t)
	o.run()
	o.exercise()
	_, text := o.get(o.health + "/metrics")
	cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// debianTool returns the path of a program of Debian's package prometheus.
func debianTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		lacking(t, "%s is not installed; it is in Debian's package prometheus", name)
	}
	return path
}

// lacking skips a test that lacks something, and fails it where everything is
// to be tested.
func lacking(t *testing.T, format string, values ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, values...)
	}
	t.Skipf(format, values...)
}

// The health listener serves probes and metrics, and nothing else. The store
// does not count for the probes.
func TestHealthListener(t *testing.T) {
	o := startObserved(t)
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { served <- o.sys.probes.Serve(ctx) }()
	probe := func(path string, want int) {
		t.Helper()
		if code, text := o.get(o.health + path); code != want {
			t.Errorf("%s: code %d, want %d: %s", path, code, want, text)
		}
	}
	probe("/livez", http.StatusOK)
	for _, path := range []string{"/readyz", "/startupz"} {
		probe(path, http.StatusServiceUnavailable) // no traffic passes
	}
	running, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- o.sys.whileAccepting(func(ctx context.Context) error { <-ctx.Done(); return nil })(running)
	}()
	eventually(t, "ready", func() bool { code, _ := o.get(o.health + "/readyz"); return code == http.StatusOK })
	probe("/startupz", http.StatusOK)
	if o.sys.store.Status().Open {
		t.Error("the store is open, so this test shows nothing")
	}
	for _, path := range []string{"/", "/v1/metrics", "/v1/chat/completions", "/page", "/mcp", "/metrics/x"} {
		probe(path, http.StatusNotFound)
	}
	_, text := o.get(o.health + "/metrics")
	if !strings.Contains(text, "\nremora_store_open 0\n") {
		t.Error("the metrics don't show that the store is not open")
	}
	end()
	eventually(t, "not ready at the end", func() bool { code, _ := o.get(o.health + "/readyz"); return code == http.StatusServiceUnavailable })
	if err := <-ended; err != nil {
		t.Error(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A page in a browser that reaches the health listener by a name of its own, or
// from its own site, reads no metrics. Off loopback any name leads there.
func TestHealthListenerAndBrowsers(t *testing.T) {
	o := startObserved(t)
	ask := func(host string, header ...string) int {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		o.sys.healthHandler().ServeHTTP(w, r)
		return w.Code
	}
	o.sys.config.API.Hosts = []string{"remora.example"}
	for _, host := range []string{"127.0.0.1:8789", "localhost", "[::1]:8789", "remora.example"} {
		if code := ask(host); code != http.StatusOK {
			t.Errorf("by %s: code %d", host, code)
		}
	}
	if code := ask("evil.example:8789"); code != http.StatusForbidden {
		t.Errorf("by the name of another site: code %d", code)
	}
	if code := ask("localhost", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"); code != http.StatusForbidden {
		t.Errorf("from another site: code %d", code)
	}
	o.sys.config.Health = ":8789"
	if code := ask("10.1.2.3:8789"); code != http.StatusOK {
		t.Errorf("off loopback, by the address of a pod: code %d", code)
	}
}

// On the control plane, metrics are the admin's.
func TestMetricsOfTheControlPlane(t *testing.T) {
	o := startObserved(t)
	o.run()
	for _, test := range []struct {
		header []string
		want   int
	}{
		{nil, http.StatusUnauthorized},
		{[]string{"Authorization", "Bearer of something else"}, http.StatusUnauthorized},
		{[]string{"Authorization", "Bearer " + o.sys.plane.token}, http.StatusOK},
	} {
		code, text := o.get(o.admin+"/metrics", test.header...)
		if code != test.want || (code == http.StatusOK) != strings.Contains(text, "remora_store_open") {
			t.Errorf("%v: code %d, want %d", len(test.header), code, test.want)
		}
	}
}

// sink is a collector that keeps the bytes that it got, by path.
func sink(t *testing.T) (url string, got func() map[string]string) {
	var mu sync.Mutex
	all := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		all[r.URL.Path] += string(body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	return server.URL, func() map[string]string { mu.Lock(); defer mu.Unlock(); return maps.Clone(all) }
}

// No key, header, content, or name of a user or a conversation is in traces,
// metrics or logs, wherever they go.
func TestTelemetryNamesNobody(t *testing.T) {
	url, got := sink(t)
	o := startObserved(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_LOGS_EXPORTER", "otlp")
	o.run()
	canaries := readCanaries(t)
	const user, conversation, header = "zqfalconer-of-oslo", "zqconversation-77", "zqheader-value"
	secrets := []string{user, conversation, header, "peregrine zqcontent"}
	for i, c := range canaries {
		key := "sk-zqkey-" + fmt.Sprint(i)
		secrets = append(secrets, c.needle(), key)
		model := "fake-1"
		if i%5 == 0 {
			model = c.Text // a client may send anything as the name of a model
		}
		o.chat(model, i%2 == 0, "My peregrine zqcontent says: "+c.Text, "Authorization", "Bearer "+key, "X-Custom", header,
			"X-Remora-User", user, "X-Remora-Conversation", conversation)
	}
	eventually(t, "turns are memories", func() bool {
		s := o.sys.pipeline.Stats()
		return s.Indexed > 0 && s.QueueTurns == 0
	})
	all := map[string]string{}
	_, all["/metrics as text"] = o.get(o.health+"/metrics", "Accept", "text/plain")
	_, all["/metrics as OpenMetrics"] = o.get(o.health+"/metrics", "Accept", "application/openmetrics-text")
	o.stop()
	sent := got()
	for path, mark := range map[string]string{"/v1/traces": "chat fake-1", "/v1/metrics": "remora.exchanges", "/v1/logs": "exchange"} {
		if !strings.Contains(sent[path], mark) {
			t.Errorf("%s got nothing of what it should", path)
		}
	}
	maps.Copy(all, sent)
	all["the log"] = o.log.String()
	for where, text := range all {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%q stands in %s", secret, where)
			}
		}
	}
}

// A collector that hangs at the end costs its spans and the time that it is
// given, and the run has not failed for it.
func TestHungCollectorFailsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{log: slog.New(slog.DiscardHandler), telemetry: export.Telemetry{Ends: []func(context.Context) error{func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second) // to wind up
			return ctx.Err()
		}}}}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := runStages(ctx, s.log, s.telemetryStage()); err != nil {
			t.Error(err)
		}
	})
}
