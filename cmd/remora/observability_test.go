package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/telemetry"
)

// start runs a program until the test ends. What it prints is returned, and
// shown if the test fails.
func start(t *testing.T, name string, args ...string) *lockedBuffer {
	t.Helper()
	out := &lockedBuffer{}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text := out.String()
			t.Logf("%s said:\n%s", filepath.Base(name), text[max(len(text)-4000, 0):])
		}
	})
	return out
}

// The real OpenTelemetry Collector receives every metric of the table, the
// spans and the log, over both protocols.
func TestCollectorReceivesAll(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the Collector")
	}
	program := filepath.Join(t.TempDir(), "collector")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("export", "testdata", "collector")
	if out, err := build.CombinedOutput(); err != nil {
		lacking(t, "the Collector can't be built, for which its modules are needed: %v\n%s", err, out)
	}
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			addresses := map[string]string{}
			for _, name := range []string{"http/protobuf", "grpc"} {
				address, err := freeAddress()
				if err != nil {
					t.Fatal(err)
				}
				addresses[name] = address
			}
			file := filepath.Join(t.TempDir(), "collector.yaml")
			pipelines := ""
			for _, signal := range []string{"traces", "metrics", "logs"} {
				pipelines += "    " + signal + ": {receivers: [otlp], exporters: [debug]}\n"
			}
			settings := fmt.Sprintf("receivers: {otlp: {protocols: {http: {endpoint: %q}, grpc: {endpoint: %q}}}}\n"+
				"exporters: {debug: {verbosity: detailed}}\nservice:\n  pipelines:\n%s", addresses["http/protobuf"], addresses["grpc"], pipelines)
			if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}
			out := start(t, program, "--config", file)
			eventually(t, "the Collector runs", func() bool { return strings.Contains(out.String(), "Everything is ready") })
			o := startObserved(t, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+addresses[protocol], "OTEL_EXPORTER_OTLP_PROTOCOL", protocol, "OTEL_LOGS_EXPORTER", "otlp")
			o.run()
			o.exercise()
			o.stop()
			want := []string{`Name +: chat fake-1`, `Name +: search_memory`, `Name +: upsert_memory`, `Body: Str\(exchange\)`, `Body: Str\(tokens\)`, `service.name: Str\(remora\)`}
			for _, r := range telemetry.Table() {
				want = append(want, `-> Name: `+regexp.QuoteMeta(r.Name)+`\n`)
			}
			for _, pattern := range want {
				eventually(t, pattern, func() bool { return regexp.MustCompile(pattern).MatchString(out.String()) })
			}
			if text := out.String(); strings.Contains(text, "Perdita") || strings.Contains(text, "sk-owner") {
				t.Error("the Collector got content or a key")
			}
		})
	}
}

// The real Prometheus reads the health listener, keeps exemplars of traces, and
// evaluates the alert rules.
func TestPrometheusReadsAll(t *testing.T) {
	prometheus := debianTool(t, "prometheus")
	o := startObserved(t, "OTEL_TRACES_EXPORTER", "console")
	o.run()
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(filepath.Join("../..", alertsFile))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	settings := fmt.Sprintf("global: {scrape_interval: 200ms, evaluation_interval: 200ms}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: remora, static_configs: [{targets: [%q]}]}]\n", rules, strings.TrimPrefix(o.health, "http://"))
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, prometheus, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(t.TempDir(), "tsdb"), "--web.listen-address="+address, "--enable-feature=exemplar-storage")
	if err := await("http://"+address+"/-/ready", patience); err != nil {
		t.Fatal(err)
	}
	o.exercise()
	ask := func(path string, query url.Values, into any) bool {
		code, text := o.get("http://" + address + path + "?" + query.Encode())
		return code == http.StatusOK && json.Unmarshal([]byte(text), into) == nil
	}
	for _, r := range telemetry.Table() {
		name := r.PrometheusName()
		switch r.Kind {
		case telemetry.Counter:
			name += "_total"
		case telemetry.Histogram:
			name += "_bucket"
		}
		eventually(t, name+" is in Prometheus", func() bool {
			var found struct{ Data struct{ Result []any } }
			return ask("/api/v1/query", url.Values{"query": {name}}, &found) && len(found.Data.Result) > 0
		})
	}
	eventually(t, "an exemplar", func() bool {
		var found struct {
			Data []struct {
				Exemplars []struct{ Labels map[string]string }
			}
		}
		now := time.Now()
		query := url.Values{
			"query": {"gen_ai_client_operation_duration_seconds_bucket"},
			"start": {now.Add(-time.Hour).Format(time.RFC3339)}, "end": {now.Add(time.Hour).Format(time.RFC3339)},
		}
		if !ask("/api/v1/query_exemplars", query, &found) || len(found.Data) == 0 {
			return false
		}
		id := found.Data[0].Exemplars[0].Labels["trace_id"]
		return len(id) == 32 && strings.Contains(o.spans.String(), id)
	})
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			query := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(target.Expr)
			if code, text := o.get("http://" + address + "/api/v1/query?" + url.Values{"query": {query}}.Encode()); code != http.StatusOK {
				t.Errorf("the panel %q asks %s: %s", p.Title, query, text)
			}
		}
	}
	var evaluated struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, State string }
			}
		}
	}
	eventually(t, "the rules are evaluated", func() bool {
		if !ask("/api/v1/rules", nil, &evaluated) || len(evaluated.Data.Groups) == 0 {
			return false
		}
		for _, g := range evaluated.Data.Groups {
			for _, r := range g.Rules {
				if r.Health != "ok" {
					return false
				}
			}
		}
		return true
	})
	for _, g := range evaluated.Data.Groups {
		for _, r := range g.Rules {
			if r.State == "firing" {
				t.Errorf("%s fires for a Remora with which nothing is wrong", r.Name)
			}
		}
	}
}

// In curated mode no turn is remembered, on purpose, and the metrics say so:
// RemoraNothingIsRemembered goes by it.
func TestCuratedTurnsAreSkipped(t *testing.T) {
	o := startObserved(t, "REMORA_MEMORY_MODE", "curated")
	o.run()
	o.chat("fake-1", false, "My falcon is called Perdita.", "Authorization", "Bearer sk-owner-of-the-falcon")
	for _, line := range []string{`remora_turns_skipped_total{remora_reason="curated"} 1`, "remora_turns_accepted_total 0"} {
		eventually(t, line, func() bool {
			_, text := o.get(o.health + "/metrics")
			return strings.Contains(text, "\n"+line+"\n")
		})
	}
}

// Whether requests fail, the metrics say for all of them: those of paths that
// Remora passes without reading, and those that it refuses.
func TestFailuresAreCounted(t *testing.T) {
	o := startObserved(t)
	o.run()
	o.shows(`remora_failures_total{error_type="upstream-unreachable"} 0`, `remora_failures_total{error_type="own-path"} 0`)
	o.model.Close()
	for path, want := range map[string]int{"/v1/models": http.StatusBadGateway, "/v1/embeddings": http.StatusBadGateway, "/.remora/nothing": http.StatusNotFound} {
		if code, _ := o.get(o.url + path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	o.shows(`remora_failures_total{error_type="upstream-unreachable"} 2`, `remora_failures_total{error_type="own-path"} 1`)
}

// Requests in progress and those that wait for them are in the metrics. The
// limit is that of all listeners: while there are as many connections as there
// may be, the forward listener takes no more either.
func TestExchangesInProgress(t *testing.T) {
	o := startObserved(t, "REMORA_LIMITS_EXCHANGES", "2", "REMORA_FORWARD_LISTEN", "127.0.0.1:0")
	hang := make(chan struct{})
	release := sync.OnceFunc(func() { close(hang) })
	o.model.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang })
	o.run()
	t.Cleanup(release)
	o.shows("remora_exchanges_active 0", "remora_exchanges_waiting 0", "remora_exchanges_limit 2")
	var requests sync.WaitGroup
	for range 3 {
		requests.Go(func() {
			if r, err := http.Get(o.url + "/v1/models"); err == nil {
				_ = r.Body.Close()
			}
		})
	}
	o.shows("remora_exchanges_active 2", "remora_exchanges_waiting 1")
	first, err := net.Dial("tcp", o.sys.forward.Addr().String()) // it has been waited for
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	answered := make(chan error, 1)
	go func() {
		r, err := http.Get("http://" + o.sys.forward.Addr().String() + "/.remora/livez")
		if err == nil {
			_ = r.Body.Close()
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Errorf("the forward listener takes more connections than there may be: %v", err)
	case <-time.After(300 * time.Millisecond):
		release()
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	release()
	requests.Wait()
	o.shows("remora_exchanges_active 0", "remora_exchanges_waiting 0")
}

// What is deployed next to Remora to watch it. The chart installs the alerts and
// the dashboard, so they are in its directory.
const (
	alertsFile     = "deploy/helm/remora/observability/alerts.yaml"
	dashboardFile  = "deploy/helm/remora/observability/dashboard.json"
	alertTestsFile = "deploy/observability/alerts_test.yaml"
)

// alertName finds the alerts of a rule file, or of the table in the
// documentation.
var (
	alertRule = regexp.MustCompile(`(?m)^\s*-? ?alert: (Remora\w+)$`)
	alertRow  = regexp.MustCompile("(?m)^\\| `(Remora\\w+)` \\|")
	seriesRef = regexp.MustCompile(`\b(?:remora|gen_ai|go|process)_[a-z0-9_]+`)
)

// The rules hold what their tests say, each alert has such a test, and the
// documentation lists them all.
func TestAlerts(t *testing.T) {
	rules, tests := readRoot(t, alertsFile), readRoot(t, alertTestsFile)
	docs, procedures := readRoot(t, "docs/telemetry.md"), readRoot(t, "docs/operations.md")
	alerts := map[string]int{}
	for _, m := range alertRule.FindAllStringSubmatch(rules, -1) {
		alerts[m[1]] = 1
		if fires := regexp.MustCompile(`alertname: ` + m[1] + `\n\s+exp_alerts:\n`); !fires.MatchString(tests) {
			t.Errorf("no test has %s fire", m[1])
		}
		if quiet := regexp.MustCompile(`alertname: ` + m[1] + `\n\s+exp_alerts: \[\]\n`); !quiet.MatchString(tests) {
			t.Errorf("no test has %s not fire", m[1])
		}
		if !strings.Contains(procedures, "\n### "+m[1]+"\n") {
			t.Errorf("docs/operations.md does not say what to do about %s", m[1])
		}
	}
	for _, m := range alertRow.FindAllStringSubmatch(docs, -1) {
		alerts[m[1]] += 2
	}
	for name, in := range alerts {
		if in != 3 {
			t.Errorf("%s is only in %s", name, []string{"", "the rules", "the documentation"}[in])
		}
	}
	if len(alerts) < 10 {
		t.Errorf("found %d alerts", len(alerts))
	}
	promtool := debianTool(t, "promtool")
	for _, args := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", alertTestsFile}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", args[0], err, out)
		}
	}
}

// Rules and dashboard ask for metrics that there are.
func TestObservabilityAsksForMetricsOfTheTable(t *testing.T) {
	known := map[string]bool{}
	for _, r := range telemetry.Table() {
		name := r.PrometheusName()
		switch r.Kind {
		case telemetry.Counter:
			known[name+"_total"] = true
		case telemetry.Histogram:
			known[name+"_bucket"], known[name+"_sum"], known[name+"_count"] = true, true, true
		default:
			known[name] = true
		}
		for _, a := range r.Attributes {
			known[strings.ReplaceAll(string(a), ".", "_")] = true
		}
	}
	for _, file := range []string{alertsFile, alertTestsFile, dashboardFile} {
		text := readRoot(t, file)
		found := seriesRef.FindAllString(text, -1)
		for _, name := range found {
			if !known[name] {
				t.Errorf("%s asks for %s, which is not in the table", file, name)
			}
		}
		if len(found) < 10 {
			t.Errorf("%s asks for %d metrics", file, len(found))
		}
	}
	board := readDashboard(t)
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d, %q, is incomplete, or another has its number", p.ID, p.Title)
		}
		ids[p.ID] = true
	}
	if board.UID == "" || len(board.Panels) < 10 {
		t.Errorf("the dashboard has %d panels", len(board.Panels))
	}
}

// The dashboard shows the share of duplicates as the alert computes it.
func TestDashboardShowsDuplicates(t *testing.T) {
	m := regexp.MustCompile(`alert: RemoraEverythingIsDuplicate\n\s+expr: >-\n([^>]+) > `).FindStringSubmatch(readRoot(t, alertsFile))
	if m == nil {
		t.Fatal("the alert has no limit")
	}
	want := strings.Join(strings.Fields(m[1]), " ")
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			if strings.ReplaceAll(target.Expr, `{instance=~"$instance"}`, "") == want {
				return
			}
		}
	}
	t.Errorf("no panel shows %s", want)
}

// dashboard is Grafana's file, as far as it is tested.
type dashboard struct {
	UID    string
	Panels []struct {
		ID      int
		Title   string
		Type    string
		Targets []struct{ Expr string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(readRoot(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}
