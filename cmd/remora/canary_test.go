package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/export"
	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/storage"
)

// canary is something that a redaction rule must find; package redact keeps one
// for every rule.
type canary struct{ Rule, Text, Value string }

func readCanaries(t *testing.T) []canary {
	t.Helper()
	raw, err := os.ReadFile("../../redact/testdata/canaries.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []canary
	if err := json.Unmarshal(raw, &all); err != nil || len(all) < 100 {
		t.Fatalf("got %d canaries: %v", len(all), err)
	}
	return all
}

// needle is the part of a value that stands as it is wherever it is quoted.
func (c canary) needle() string {
	longest := ""
	for part := range strings.FieldsFuncSeq(c.Value, func(r rune) bool { return strings.ContainsRune("\n\r\t\"\\<>&", r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// lockedBuffer gathers what the program writes while others read it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// flock is the whole program between a client and a model that says what it was
// told, with all that it writes kept.
type flock struct {
	t          *testing.T
	llm        *proxytest.LLM
	url, data  string
	log, spans lockedBuffer
	remora     *system
	stop       func()
}

func newFlock(t *testing.T) *flock {
	f := &flock{t: t, data: filepath.Join(t.TempDir(), "data")}
	f.llm = &proxytest.LLM{Keep: 10_000, Answer: func(r proxytest.Recorded) proxytest.Reply {
		last := r.Messages[len(r.Messages)-1].Text
		if strings.HasPrefix(last, "Which ") {
			return proxytest.Reply{Text: "I can't tell."}
		}
		return proxytest.Reply{Text: "You said: " + last}
	}}
	model := httptest.NewServer(f.llm)
	t.Cleanup(model.Close)
	closed, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.json")
	settings := fmt.Sprintf(`{"listen": "127.0.0.1:0", "log": {"level": "debug"}, "identity": {"tenant": "tests", "anonymous": "keyHolder"},
		"persist": {"turnsPerSecond": 0}, "storage": {"dir": %q, "keyFile": %q, "hangTimeout": %q},
		"recall": {"deadline": %[3]q, "firstDeadline": %[3]q},
		"upstreams": [{"name": "model", "url": %q, "paths": ["/"]}, {"name": "gone", "url": %q, "paths": ["/gone"]}]}`,
		f.data, filepath.Join(t.TempDir(), "store.key"), patience.String(), model.URL, "http://"+closed) // a busy machine must not decide
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	env := environment("OTEL_TRACES_EXPORTER", "console")
	c, err := config.Load(config.Overrides{File: file}, env, config.Place{})
	if err != nil {
		t.Fatal(err)
	}
	log := newLogger(c.Log, &f.log, false)
	tracing, err := export.Open(t.Context(), export.Options{Getenv: env, Stdout: &f.spans, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if f.remora, err = newSystem(c, log, tracing); err != nil {
		t.Fatal(err)
	}
	f.url = "http://" + f.remora.server.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.remora.run(ctx) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		f.remora.farewell(nil)
	})
	t.Cleanup(f.stop)
	if err := until(t.Context(), func() bool { return f.remora.store.Status().Open }); err != nil {
		t.Fatal(err)
	}
	return f
}

// post sends a body and returns the answer, with its headers.
func (f *flock) post(path, body string, header ...string) (code int, answer string) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return response.StatusCode, fmt.Sprint(response.Header) + string(raw)
}

func chatBody(t *testing.T, stream bool, messages ...map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"model": "fake-1", "stream": stream, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func said(role, text string) map[string]any { return map[string]any{"role": role, "content": text} }

// Secrets and personal data of every rule, in whatever part of a conversation
// they stand, are nowhere in what the program keeps, logs, traces, answers of
// its own or recalls.
func TestCanariesOfTheWholeProgram(t *testing.T) {
	canaries := readCanaries(t)
	f := newFlock(t)
	for i, c := range canaries {
		call := map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": "call1", "type": "function", "function": map[string]any{"name": "read", "arguments": "{}"}}}}
		code, _ := f.post("/v1/chat/completions", chatBody(t, i%2 == 0,
			said("system", "The operator's notes: "+c.Text),
			said("user", fmt.Sprintf("Read file %d for me.", i)), call,
			map[string]any{"role": "tool", "tool_call_id": "call1", "content": "It says: " + c.Text},
			said("assistant", "It says: "+c.Text),
			said("user", fmt.Sprintf("Remember falcon record %d, which goes: %s", i, c.Text)),
		), "Authorization", "Bearer "+c.needle(), "X-Remora-Conversation", fmt.Sprintf("c%d", i))
		if code != http.StatusOK {
			t.Fatalf("%s: code %d", c.Rule, code)
		}
	}
	eventually(t, "turns are memories", func() bool { return f.remora.pipeline.Stats().Indexed >= uint64(len(canaries)) })

	all := map[string]*strings.Builder{"an injected block": {}, "an answer of Remora's own": {}}
	told := len(f.llm.Requests())
	injected := 0
	for i := range canaries {
		_, answer := f.post("/v1/chat/completions", chatBody(t, false, said("user", fmt.Sprintf("Which falcon record was number %d?", i))),
			"X-Remora-Conversation", fmt.Sprintf("q%d", i))
		if strings.Contains(answer, "injected") {
			injected++
		}
	}
	for _, r := range f.llm.Requests()[told:] {
		all["an injected block"].Write(r.Body)
	}
	if injected < len(canaries)/2 {
		t.Errorf("%d of %d questions were given memories", injected, len(canaries))
	}
	for _, c := range canaries {
		broken := `{"model": "fake-1", "messages": [` + c.Text
		for _, try := range [][2]string{
			{"/gone/v1/chat/completions", chatBody(t, false, said("user", c.Text))}, {"/gone/x", broken},
		} {
			code, answer := f.post(try[0], try[1], "Authorization", "Bearer "+c.needle())
			if code < 500 {
				t.Errorf("%s: code %d, want an error", try[0], code)
			}
			all["an answer of Remora's own"].WriteString(answer)
		}
	}
	all["a memory"], all["the ledger"] = f.stored()
	all["a record"], all["a backup"] = f.records(), f.backup()
	if n := strings.Count(all["a memory"].String(), "falcon record"); n < 2*len(canaries) {
		t.Errorf("looked at %d memories", n)
	}
	f.stop()
	all["the log"], all["the spans"] = &strings.Builder{}, &strings.Builder{}
	all["the log"].WriteString(f.log.String())
	all["the spans"].WriteString(f.spans.String())
	if !strings.Contains(f.spans.String(), "persist") || !strings.Contains(f.log.String(), "exchange") {
		t.Error("log and spans are not what they should be")
	}
	files := 0
	err := filepath.WalkDir(f.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		files++
		where, _ := filepath.Rel(f.data, path)
		all["file "+where] = &strings.Builder{}
		all["file "+where].Write(raw)
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("looked at %d files: %v", files, err)
	}
	for where, text := range all {
		for _, c := range canaries {
			if strings.Contains(text.String(), c.needle()) {
				t.Errorf("rule %s: the value stands in %s", c.Rule, where)
			}
		}
	}
	if !strings.Contains(all["an injected block"].String(), "falcon record 7, which goes") {
		t.Error("the blocks hold nothing of what was told")
	}
}

// stored reads what the store has, unsealed: the texts of all memories, and the
// ledger.
func (f *flock) stored() (memories, ledger *strings.Builder) {
	f.t.Helper()
	memories, ledger = &strings.Builder{}, &strings.Builder{}
	var page storage.RecordPage
	eventually(f.t, "the ledger is stored", func() bool {
		var err error
		page, err = f.remora.store.AllRecords(f.t.Context(), storage.BucketLedger, "", 1000)
		return err == nil && len(page.Records) > 0
	})
	for _, r := range page.Records {
		ledger.Write(r.Value)
	}
	scope, after := page.Records[0].Scope, ""
	for {
		var page storage.Page
		eventually(f.t, "a scan", func() (ok bool) {
			var err error
			page, err = f.remora.store.Scan(f.t.Context(), scope, storage.Query{After: after})
			return err == nil
		})
		for _, m := range page.Memories {
			memories.WriteString(m.Text + "\n" + m.Provenance.Speaker + "\n")
		}
		if after = page.Next; after == "" {
			return memories, ledger
		}
	}
}

// records reads all that the store has besides memories, unsealed: summaries and
// audit records, too.
func (f *flock) records() *strings.Builder {
	f.t.Helper()
	var b strings.Builder
	for _, bucket := range storage.Buckets() {
		audited := bucket == storage.BucketSummary || bucket == storage.BucketAudit
		for after := ""; ; {
			var page storage.RecordPage
			eventually(f.t, "records of "+string(bucket), func() bool { // audits come when there is time
				var err error
				page, err = f.remora.store.AllRecords(f.t.Context(), bucket, after, 1000)
				// A turn's originals are in the spool, sealed, until it is a
				// memory and its entry is deleted, a moment later.
				waits := bucket == storage.BucketSpool && slices.ContainsFunc(page.Records, func(r storage.Record) bool {
					return !bytes.Contains(r.Value, []byte(`"Due":`))
				})
				return err == nil && !waits && (len(page.Records) > 0 || after != "" || !audited)
			})
			for _, r := range page.Records {
				b.WriteString(r.Key + "\n" + string(r.Value) + "\n")
			}
			if after = page.Next; after == "" {
				break
			}
		}
	}
	return &b
}

// backup is what remora backup writes.
func (f *flock) backup() *strings.Builder {
	f.t.Helper()
	var b strings.Builder
	store, ok := f.remora.store.(storage.Backuper)
	if !ok {
		f.t.Fatal("the store can't be backed up")
	}
	if err := store.Backup(f.t.Context(), &b); err != nil || b.Len() == 0 {
		f.t.Fatalf("backup of %d bytes: %v", b.Len(), err)
	}
	return &b
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	if err := until(ctx, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
