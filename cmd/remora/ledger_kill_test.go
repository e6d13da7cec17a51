//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/storage/process"
)

// TestKilledBetweenTurns kills the proxy, or the proxy and its store, as soon as
// the client has an answer, over and over: what was inserted for it is repeated
// by the next process, so that the server accepts the thinking that is bound to
// it.
func TestKilledBetweenTurns(t *testing.T) {
	t.Parallel()
	if !process.Supported {
		t.Skip("the store has no process of its own here")
	}
	rounds := storeRounds(4, 12)
	claude := &proxytest.Claude{}
	var inserted atomic.Int64
	claude.Answer = func(r proxytest.ClaudeRequest) []proxytest.ClaudeBlock {
		if first := r.Messages[0].Text(); strings.Contains(first, "Okafor") && strings.Contains(first, "Who is my dentist?") {
			inserted.Add(1)
		}
		return []proxytest.ClaudeBlock{{Thinking: "Who was it?"}, {Text: "I see."}}
	}
	model := httptest.NewServer(claude)
	defer model.Close()
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	k := killedPrograms{t: t, dir: rigDir(t), address: address, upstream: model.URL, acknowledged: map[string]bool{}}
	serve := k.launch()
	if err := await("http://"+k.address+"/.remora/livez", patience); err != nil {
		t.Fatal(err)
	}
	for status := ""; status != "empty"; time.Sleep(20 * time.Millisecond) {
		status, _ = k.ask("write", `{"role":"user","content":"My dentist is Dr. Okafor in Lagos."}`)
	}
	k.awaitMemory()
	claude.Reset()
	inserted.Store(0)
	var conversation []string
	for round := range rounds {
		conversation = append(conversation, `{"role":"user","content":"Who is my dentist?"}`)
		status, content := k.ask("", conversation...)
		if status != "injected" && status != "replayed" {
			t.Fatalf("round %d: status %s", round, status)
		}
		conversation = append(conversation, `{"role":"assistant","content":`+content+`}`)
		if child := childOf(serve.Process.Pid); child > 0 && round%2 == 1 {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
		_ = serve.Process.Kill()
		_ = serve.Wait()
		serve = k.launch()
		k.awaitMemory()
	}
	if claude.Refused() > 0 || inserted.Load() < int64(rounds) {
		t.Errorf("%d requests were refused, %d got a memory", claude.Refused(), inserted.Load())
	}
	_ = serve.Process.Signal(syscall.SIGTERM)
	_ = serve.Wait()
}

// awaitMemory asks in new conversations until one gets a memory.
func (k *killedPrograms) awaitMemory() {
	k.t.Helper()
	if err := await("http://"+k.address+"/.remora/livez", patience); err != nil {
		k.t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		status, _ := k.ask("read", fmt.Sprintf(`{"role":"user","content":"Who is my dentist? I asked %d times."}`, k.serial.Add(1)))
		if status == "injected" {
			return
		}
		if time.Since(began) > patience {
			k.t.Fatalf("status %s, want injected", status)
		}
	}
}

// ask sends a conversation and returns the status and the content of the answer.
func (k *killedPrograms) ask(mode string, messages ...string) (status, content string) {
	k.t.Helper()
	body := `{"model":"claude-opus-5-5","max_tokens":100,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` + strings.Join(messages, ",") + `]}`
	req, err := http.NewRequestWithContext(k.t.Context(), http.MethodPost, "http://"+k.address+"/v1/messages", strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "sk-ant-tests")
	if mode != "" {
		req.Header.Set("X-Remora-Memory", mode)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		k.t.Fatalf("got %d %s, %v", resp.StatusCode, b, err)
	}
	var message struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(b, &message); err != nil {
		k.t.Fatal(err)
	}
	return resp.Header.Get("X-Remora-Status"), string(message.Content)
}
