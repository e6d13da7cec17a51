package lives

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Waiting for Remora.
const (
	startLimit  = 30 * time.Second
	settleLimit = 30 * time.Second
	requestTime = time.Minute
	look        = 10 * time.Millisecond
	// handedIn is how long after its answer a turn is counted as waiting.
	handedIn = 25 * time.Millisecond
	// quiet is how long a conversation must be quiet before its audit: longer
	// than the next turn takes, so that each is audited once, when it is over.
	quiet = "150ms"
)

// remora is a `remora serve` with a clock that can be set, in front of an
// upstream that answers what a test sets.
type remora struct {
	binary, dir string
	config      string
	addr        string // of the reverse listener
	control     string // of the control plane
	token       string // of its admin
	proc        *exec.Cmd
	ended       chan struct{}
	exit        error // how it ended
	upstream    *httptest.Server
	client      http.Client

	mu     sync.Mutex
	answer map[string]any // of the next request
	seen   []byte         // body of the last
}

type object = map[string]any

// start runs Remora over an empty store in dir. settings are added to those
// that the run needs.
func start(ctx context.Context, binary, dir string, settings object) (started *remora, err error) {
	r := &remora{binary: binary, dir: dir, config: filepath.Join(dir, "config.json"), client: http.Client{Timeout: requestTime}}
	defer func() {
		if err != nil {
			r.stop()
		}
	}()
	r.upstream = httptest.NewServer(http.HandlerFunc(r.serve))
	for _, addr := range []*string{&r.addr, &r.control} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*addr = l.Addr().String()
		_ = l.Close() // it is Remora's from here on
	}
	if err := r.setClock(time.Now()); err != nil {
		return nil, err
	}
	all := merge(object{
		"listen": r.addr, "upstreams": []object{{"name": "lives", "url": r.upstream.URL, "paths": []string{"/"}}},
		"api":     object{"listen": r.control},
		"storage": object{"isolation": "inline", "dir": r.data(), "keyFile": filepath.Join(dir, "key"), "clockFile": r.clockFile()},
		"persist": object{"turnsPerSecond": 0, "audit": object{"debounce": quiet, "interval": quiet}},
		"recall":  object{"deadline": "2s", "firstDeadline": "5s"},
		"log":     object{"level": "warn"},
	}, settings)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(r.config, text, 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has its own
	r.proc = r.command(context.WithoutCancel(ctx), "serve")
	r.proc.Stdout, r.proc.Stderr = log, log
	if err := r.proc.Start(); err != nil {
		return nil, err
	}
	r.ended = make(chan struct{})
	go func() {
		r.exit = r.proc.Wait()
		close(r.ended)
	}()
	return r, r.awaitStart(ctx)
}

func (r *remora) data() string      { return filepath.Join(r.dir, "data") }
func (r *remora) clockFile() string { return filepath.Join(r.dir, "clock") }

// command is a command of Remora without the settings of the caller's
// environment.
func (r *remora) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.binary, append(args, "--config", r.config)...)
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !strings.HasPrefix(name, "REMORA_") && !strings.HasPrefix(name, "OTEL_") && !strings.HasPrefix(name, "XDG_") && name != "HOME" {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+r.dir)
	return cmd
}

func (r *remora) stop() {
	if r.proc != nil && r.proc.Process != nil {
		_ = r.proc.Process.Kill() // its data are not needed any more
		<-r.ended
	}
	if r.upstream != nil {
		r.upstream.Close()
	}
}

// awaitStart waits until memory is on.
func (r *remora) awaitStart(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		if token, err := os.ReadFile(filepath.Join(r.data(), "admin.token")); err == nil {
			r.token = strings.TrimSpace(string(token))
		}
		var health struct {
			System struct {
				StoreOpen bool `json:"store_open"`
			} `json:"system"`
		}
		err := r.metrics(limit, &health)
		if err == nil && health.System.StoreOpen {
			return nil
		}
		select {
		case <-r.ended:
			return fmt.Errorf("remora has ended: %w\n%s", errors.Join(r.exit), r.log())
		case <-limit.Done():
			return fmt.Errorf("remora does not serve: %w\n%s", errors.Join(err, limit.Err()), r.log())
		case <-time.After(look):
		}
	}
}

func (r *remora) log() string {
	text, _ := os.ReadFile(filepath.Join(r.dir, "log"))
	return string(text)
}

// setClock sets Remora's clock.
func (r *remora) setClock(t time.Time) error {
	next := r.clockFile() + ".next"
	if err := os.WriteFile(next, []byte(time.Until(t).Round(time.Second).String()+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, r.clockFile())
}

// metrics reads the numbers of the control plane.
func (r *remora) metrics(ctx context.Context, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.control+"/v1/metrics", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("metrics: status %d", resp.StatusCode)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// settle waits until all that was said is stored and audited.
func (r *remora) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	pause := handedIn
	for {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("turns are not audited: %w", ctx.Err())
		}
		var m struct {
			Pipeline struct {
				Health struct {
					TurnsUnaudited *int `json:"turns_unaudited"`
				} `json:"health"`
			} `json:"pipeline"`
		}
		err := r.metrics(ctx, &m)
		switch waiting := m.Pipeline.Health.TurnsUnaudited; {
		case err != nil:
			return err
		case waiting == nil:
			return errors.New("this build of remora does not say how many turns are not audited yet")
		case *waiting == 0:
			return nil
		}
		pause = look
	}
}

// serve is the upstream.
func (r *remora) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.seen = body
	message := r.answer
	r.mu.Unlock()
	reason := "stop"
	if message["tool_calls"] != nil {
		reason = "tool_calls"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object{
		"id": "c", "object": "chat.completion", "created": 1, "model": "m",
		"choices": []object{{"index": 0, "message": message, "finish_reason": reason}},
		"usage":   object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	})
}

// ask sends a request, which is answered with a message, and returns the block
// that the upstream saw, "" = none, and X-Remora-Status.
func (r *remora) ask(ctx context.Context, user, memory string, messages []object, answer map[string]any) (block, status string, err error) {
	r.mu.Lock()
	r.answer, r.seen = answer, nil
	r.mu.Unlock()
	body, err := json.Marshal(object{"model": "m", "messages": messages})
	if err != nil {
		return "", "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.addr+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", "", err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer sk-test-lives", "X-Remora-User": user, "X-Remora-Memory": memory} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return "", "", err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return "", "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", "", fmt.Errorf("status %d", resp.StatusCode)
	}
	var sent struct {
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := json.Unmarshal(r.seen, &sent); err != nil {
		return "", "", fmt.Errorf("what the upstream got: %w", err)
	}
	for _, m := range sent.Messages {
		if found := blockOf(textOf(m.Content)); found != "" {
			block = found
		}
	}
	return block, resp.Header.Get("X-Remora-Status"), nil
}

// textOf returns the text of a message's content, a string or parts.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts) // it holds no text then
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n")
}

// list returns what is stored of a user, as `remora list --json` prints it.
func (r *remora) list(ctx context.Context, user string, args ...string) (out []json.RawMessage, err error) {
	cmd := r.command(ctx, append([]string{"list", "--json", "--user", user}, args...)...)
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("remora list: %w", err)
	}
	out = []json.RawMessage{}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out = append(out, json.RawMessage(line))
		}
	}
	return out, nil
}

// merge adds the settings of b to a, section by section.
func merge(a, b object) object {
	for k, v := range b {
		own, ok := a[k].(object)
		if added, both := v.(object); ok && both {
			a[k] = merge(own, added)
			continue
		}
		a[k] = v
	}
	return a
}
