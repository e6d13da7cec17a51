//go:build unix && !race

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// pageToken is the admin token of a pageRig.
const pageToken = "page-admin-token-0123456789abcdef"

// pageOptions say what a pageRig has.
type pageOptions struct {
	prices  string // api.prices as JSON, "" = none
	hostile bool   // seed attack strings and markup, too
	many    int    // memories of a user of their own, pageCrowd; 0 = no such user
	empty   bool   // nothing is seeded
}

// pageRig is a Remora in processes of its own, between requests and a fake
// model, with what was said stored.
type pageRig struct {
	t     *testing.T
	url   string // of the control plane
	proxy string
	dir   string // of the store
	model *pageModel
	serve *exec.Cmd
	log   *lockedBuffer
	ended chan error

	conversations map[string]*pageConversation
}

// startPage starts a Remora and seeds it as the options say. It ends with the
// test.
func startPage(t *testing.T, o pageOptions) *pageRig {
	t.Helper()
	return startPageFor(t, t, o)
}

// startPageFor starts a Remora that ends with owner. What goes wrong at the
// start fails t.
func startPageFor(t, owner *testing.T, o pageOptions) *pageRig {
	t.Helper()
	r := &pageRig{t: t, dir: filepath.Join(owner.TempDir(), "remora"), model: newPageModel(), log: &lockedBuffer{}, conversations: map[string]*pageConversation{}}
	upstream := httptest.NewServer(r.model)
	owner.Cleanup(upstream.Close)
	r.launch(owner, r.configure(owner, upstream.URL, o))
	for _, url := range []string{r.proxy + "/.remora/livez", r.url + "/readyz"} {
		if err := awaitOK(url, patience); err != nil {
			t.Fatalf("%s: %v\n%s", url, err, r.log)
		}
	}
	if !o.empty {
		r.seed(o)
	}
	return r
}

// configure writes the configuration and returns the file's name.
func (r *pageRig) configure(owner *testing.T, upstream string, o pageOptions) string {
	r.t.Helper()
	var free addresses
	var at [2]string
	for i := range at {
		var err error
		if at[i], err = free.next(); err != nil {
			r.t.Fatal(err)
		}
	}
	r.proxy, r.url = "http://"+at[0], "http://"+at[1]
	type object = map[string]any
	plane := object{"listen": at[1], "token": pageToken}
	if o.prices != "" {
		plane["prices"] = json.RawMessage(o.prices)
	}
	persist := object{"turnsPerSecond": 0, "audit": object{"debounce": "20ms", "interval": "50ms"}}
	settings, err := json.Marshal(object{
		"listen": at[0], "api": plane, "persist": persist,
		"upstreams": []any{
			object{"name": "anthropic", "url": upstream, "paths": []string{"/v1/messages"}},
			object{"name": "openai", "url": upstream, "paths": []string{"/"}},
		},
		"identity": object{"tenant": "tests", "anonymous": "keyHolder"},
		"storage":  object{"dir": r.dir, "keyFile": r.dir + ".key", "reserveBytes": 0, "hangTimeout": patience.String()},
		"recall":   object{"deadline": patience.String(), "firstDeadline": patience.String()}, // a busy machine must not decide
		"log":      object{"level": "warn", "format": "text"},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	file := filepath.Join(owner.TempDir(), "config.json")
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return file
}

// command returns a command of the program, which is this test binary under
// another name.
func (r *pageRig) command(owner *testing.T, args ...string) *exec.Cmd {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	home := owner.TempDir()
	link := filepath.Join(home, "remora")
	if err := os.Symlink(self, link); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(link, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GORACE=" + os.Getenv("GORACE"), "TMPDIR=" + os.TempDir()}
	return cmd
}

func (r *pageRig) launch(owner *testing.T, file string) {
	r.t.Helper()
	r.serve = r.command(owner, "serve", "--config", file)
	r.serve.Stdout, r.serve.Stderr = r.log, r.log
	r.serve.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt from the terminal is for the test
	if err := r.serve.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.ended = make(chan error, 1)
	go func() { r.ended <- r.serve.Wait() }()
	owner.Cleanup(func() {
		_ = r.serve.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-r.ended:
			if err != nil {
				owner.Errorf("serve: %v\n%s", err, r.log)
			}
		case <-time.After(patience):
			_ = r.serve.Process.Kill()
			owner.Errorf("serve does not stop\n%s", r.log)
		}
	})
}

// awaitOK returns once a URL answers 200.
func awaitOK(url string, patience time.Duration) error {
	const pause = 10 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		response, err := http.Get(url)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("status %d", response.StatusCode)
		}
		if waited >= patience {
			return err
		}
		time.Sleep(pause)
	}
}

// rest sends a request to the control plane as the admin and decodes the answer
// into out, if that is not nil. A body that is no string or reader is sent as
// JSON. It returns the status.
func (r *pageRig) rest(method, path string, body, out any, header ...string) int {
	r.t.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	case io.Reader:
		content = b
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			r.t.Fatal(err)
		}
		content, header = bytes.NewReader(raw), append([]string{"Content-Type", "application/json"}, header...)
	}
	request, err := http.NewRequest(method, r.url+path, content)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+pageToken)
	for pair := range slices.Chunk(header, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err == nil && out != nil && response.StatusCode < 300 {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		r.t.Fatalf("%s %s: %d, %v", method, path, response.StatusCode, err)
	}
	return response.StatusCode
}

// must is rest where any status but 2xx fails the test.
func (r *pageRig) must(method, path string, body, out any, header ...string) {
	r.t.Helper()
	if code := r.rest(method, path, body, out, header...); code >= 300 {
		r.t.Fatalf("%s %s: status %d", method, path, code)
	}
}

// pageTurn is one request through the proxy. Its conversation continues with
// what was said there before.
type pageTurn struct {
	user, conversation string
	client             string // User-Agent
	model              string // one of Anthropic's goes to the Messages API
	mode               string // X-Remora-Memory, "" = on
	text               string
	want               string // X-Remora-Status, "" = any
}

type pageConversation struct{ messages []demoMessage }

const (
	pageGPT    = "gpt-5.1"
	pageClaude = "claude-sonnet-4-5"

	pageOpenCode   = "opencode/1.0.134"
	pageClaudeCode = "claude-cli/2.0.76 (external, cli)"
)

// say makes the request of a turn and returns its status.
func (r *pageRig) say(turn pageTurn) string {
	r.t.Helper()
	key := turn.user + "\x00" + turn.conversation
	c := r.conversations[key]
	if c == nil {
		c = &pageConversation{}
		r.conversations[key] = c
	}
	c.messages = append(c.messages, demoMessage{"user", turn.text})
	path, fields := "/v1/chat/completions", map[string]any{"model": turn.model, "messages": c.messages}
	if strings.HasPrefix(turn.model, "claude") {
		path = "/v1/messages"
		fields["max_tokens"] = 1024
	}
	body, err := json.Marshal(fields)
	if err != nil {
		r.t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, r.proxy+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	head := map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer sk-of-everybody", "User-Agent": turn.client,
		"X-Remora-User": turn.user, "X-Remora-Conversation": turn.conversation, "X-Remora-Memory": turn.mode,
	}
	for name, value := range head {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		r.t.Fatalf("a request of %s: %d, %v", turn.user, response.StatusCode, err)
	}
	c.messages = append(c.messages, demoMessage{"assistant", pageAnswer(raw)})
	got := response.Header.Get("X-Remora-Status")
	if turn.want != "" && got != turn.want {
		r.t.Fatalf("%q of %s: status %s, want %s\n%s", turn.text, turn.user, got, turn.want, r.log)
	}
	return got
}

// pageAnswer returns the text of an answer of either API.
func pageAnswer(raw []byte) string {
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
		Content []struct{ Text string }
	}
	_ = json.Unmarshal(raw, &answer)
	for _, c := range answer.Choices {
		return c.Message.Content
	}
	for _, c := range answer.Content {
		return c.Text
	}
	return ""
}

// pageModel is a fake of both APIs. It reports tokens of a prompt cache.
type pageModel struct {
	chat   proxytest.LLM
	claude proxytest.Claude
}

// Tokens that the fake Chat Completions reports besides those of the messages:
// those of a client's instructions, which later requests read from the cache.
const (
	pagePrefixTokens = 4200
	pageCachedTokens = 4096
)

func newPageModel() *pageModel {
	return &pageModel{
		chat: proxytest.LLM{Answer: func(proxytest.Recorded) proxytest.Reply { return proxytest.Reply{Text: pageReply} }},
		claude: proxytest.Claude{Unbound: true, Answer: func(proxytest.ClaudeRequest) []proxytest.ClaudeBlock {
			return []proxytest.ClaudeBlock{{Text: pageReply}}
		}},
	}
}

const pageReply = "All right. What would you like to do next?"

// pageRecorded is the path at which the fake tells which bodies of Chat
// Completions it has received, byte for byte, as a list of strings.
const pageRecorded = "/recorded"

// ServeHTTP answers Messages and Chat Completions. Only the latter's JSON is
// given cached tokens; streams pass as they are.
func (m *pageModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v1/messages") {
		m.claude.ServeHTTP(w, r)
		return
	}
	if r.URL.Path == pageRecorded {
		var bodies []string
		for _, recorded := range m.chat.Requests() {
			bodies = append(bodies, string(recorded.Body))
		}
		_ = json.NewEncoder(w).Encode(bodies)
		return
	}
	answer := httptest.NewRecorder()
	m.chat.ServeHTTP(answer, r)
	body := answer.Body.Bytes()
	var fields map[string]any
	if json.Unmarshal(body, &fields) == nil {
		if usage, ok := fields["usage"].(map[string]any); ok {
			prompt, _ := usage["prompt_tokens"].(float64)
			total, _ := usage["total_tokens"].(float64)
			usage["prompt_tokens"], usage["total_tokens"] = prompt+pagePrefixTokens, total+pagePrefixTokens
			usage["prompt_tokens_details"] = map[string]any{"cached_tokens": pageCachedTokens}
			body, _ = json.Marshal(fields)
		}
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body)
}
