package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage/storagetest"
)

// loadFor returns how long TestLoad lasts: REMORA_LOAD, such as 4h, or little.
func loadFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("REMORA_LOAD")
	if text == "" {
		return 10 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("REMORA_LOAD: %q is no duration", text)
	}
	return d
}

// TestLoad sends requests of all kinds to a Remora in a container of 128 MiB,
// for hours if REMORA_LOAD says so: none fails, and the memory of neither
// process grows.
func TestLoad(t *testing.T) {
	lasts := loadFor(t)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte(`"stream":true`)) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"Noted."},"finish_reason":"stop"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 20 {
			_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"word "}}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(model.Close)
	m := inSmallMachine(t, "load")
	serve := m.launch(model.URL)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}, Timeout: patience}
	defer client.CloseIdleConnections()
	var sent atomic.Int64
	over := make(chan struct{})
	var talking sync.WaitGroup
	for worker := range uint64(16) {
		talking.Go(func() {
			rng := rand.New(rand.NewPCG(worker, 3))
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				if err := loadOnce(client, m.url, rng, n); err != nil {
					t.Errorf("request failed: %v", err)
					return
				}
				sent.Add(1)
				time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
			}
		})
	}
	var samples []int64 // of both processes, what is not of files, or the proxy's alone where there is no group
	for began := time.Now(); time.Since(began) < lasts; time.Sleep(min(lasts/200, 10*time.Second)) {
		bytes := m.group.Anonymous()
		if !m.group.Limited() {
			bytes = storagetest.Resident(serve.Process.Pid)
		}
		samples = append(samples, bytes)
	}
	close(over)
	talking.Wait()
	if m.group.Kills() > 0 {
		t.Errorf("the kernel killed %d processes for memory", m.group.Kills())
	}
	quarter := len(samples) / 4
	second, last := median(samples[quarter:2*quarter]), median(samples[3*quarter:])
	t.Logf("%d requests in %s; MiB in the second quarter %d, in the last %d, at most %d; %s", sent.Load(), lasts, second>>20, last>>20, slices.Max(samples)>>20, m.group)
	if slices.Max(samples) > m.part {
		t.Errorf("%d MiB, want at most %d", slices.Max(samples)>>20, m.part>>20)
	}
	if lasts >= time.Hour && last > second+second/8+(4<<20) { // before that, caches still fill
		t.Error("memory grows")
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-m.read
	if err := serve.Wait(); err != nil {
		t.Errorf("serve: %v", err)
	}
}

func median(of []int64) int64 {
	if len(of) == 0 {
		return 0
	}
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

// loadOnce sends one request: a statement, a question, a conversation of some
// length, or a tool loop, as a stream or not.
func loadOnce(client *http.Client, url string, rng *rand.Rand, n int) error {
	user := fmt.Sprint("u", rng.IntN(500))
	messages := []any{demoMessage{"user", fmt.Sprintf("Item %s lies on shelf %d.", item(n, rng.IntN(1000)), rng.IntN(97))}}
	switch rng.IntN(4) {
	case 0:
		messages = []any{demoMessage{"user", "Where does my item lie?"}}
	case 1:
		for i := range 1 + rng.IntN(30) {
			messages = append(messages, demoMessage{"assistant", strings.Repeat("I see. ", rng.IntN(1000))}, demoMessage{"user", fmt.Sprintf("And question %d?", i)})
		}
	case 2:
		messages = append(messages, map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": "c1", "type": "function", "function": map[string]any{"name": "look", "arguments": "{}"},
		}}}, map[string]any{"role": "tool", "tool_call_id": "c1", "content": strings.Repeat("found ", rng.IntN(20000))})
	}
	body, err := json.Marshal(map[string]any{"model": "m", "stream": rng.IntN(2) == 0, "messages": messages})
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-Remora-User", user)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %d", response.StatusCode)
	}
	return nil
}
