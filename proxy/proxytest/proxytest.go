// Package proxytest has fake language models for tests, demonstrations and
// documentation: [LLM] is OpenAI-compatible, [Claude] speaks Anthropic's
// Messages API. They give the configured answers, refuse like the real servers
// do, and record what they were sent.
package proxytest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Recorded is a request as it arrived.
type Recorded struct {
	Method string
	Target string // path and query as sent
	Header http.Header
	Body   []byte // exact

	// Of a chat completion, else zero.
	Model    string
	Stream   bool
	Messages []Message
}

// Message is one message of a chat completion.
type Message struct {
	Role string
	Text string // string content, or all text parts joined by newlines
}

// Last is the text of the last message of a role, "" where there is none.
func (r Recorded) Last(role string) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == role {
			return m.Text
		}
	}
	return ""
}

// Reply is what to answer. The zero Reply is an empty assistant message.
type Reply struct {
	Text   string
	Calls  []Call // tool calls; finish reason "tool_calls" unless Finish says otherwise
	Finish string // "" = stop
	// Status other than 0 and 200 fails the request with Body as it stands.
	Status int
	Body   string
	// CutAfter > 0 breaks the connection after so many events, or so many bytes
	// of a JSON body.
	CutAfter int
}

// Call is a tool call.
type Call struct {
	ID, Name, Arguments string
}

// Strictness makes the server refuse conversations that many chat templates
// refuse: two user messages in a row, a system message that is not the first,
// or a role other than system, user, assistant and tool. Each refuses in the
// words and with the status of the server that it is named for.
type Strictness uint8

const (
	Lenient  Strictness = iota
	VLLM                // 400, with what the template raised
	LlamaCPP            // 500, with where in the template it was raised
	Mistral             // 400, with the words of Mistral's templates
	LMStudio            // 400, with an error that is no object; a stream with an event of it
)

// DefaultKeep is how many requests an LLM remembers.
const DefaultKeep = 1000

// LLM is the server. Set the fields before it serves; the zero LLM echoes. It
// is safe for concurrent use.
type LLM struct {
	// Answer decides the reply; nil = repeat the last user message.
	Answer func(Recorded) Reply
	// BeforeEvent, if set, is called before each event of a stream, from 0. A
	// test waits in it.
	BeforeEvent func(i int)
	// Delay passes before each event of a stream after the first.
	Delay time.Duration
	// Strict refuses what templates refuse; MaxContext > 0 refuses messages
	// with more characters than that, as OpenAI does.
	Strict     Strictness
	MaxContext int
	// Keep bounds the requests remembered, the newest ones; 0 = DefaultKeep.
	Keep int

	mu       sync.Mutex
	recorded []Recorded
	served   int
}

// Requests returns the newest requests, oldest first.
func (l *LLM) Requests() []Recorded {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.recorded)
}

// Reset forgets the requests.
func (l *LLM) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded = nil
}

// maxRequest bounds what is read of a body.
const maxRequest = 64 << 20

// ServeHTTP answers chat completions and the list of models, and echoes the
// body of any other request.
func (l *LLM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "", "cannot read the request body")
		return
	}
	rec := Recorded{Method: r.Method, Target: r.RequestURI, Header: r.Header.Clone(), Body: body}
	chat := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions")
	var ask request
	if chat {
		ask, err = parse(r.Header.Get("Content-Encoding"), body)
		rec.Model, rec.Stream, rec.Messages = ask.Model, ask.Stream, ask.messages()
	}
	n := l.record(rec)
	switch {
	case chat && err != nil:
		writeError(w, http.StatusBadRequest, "invalid_request_error", "", "the body is not a chat completion request")
	case chat:
		l.complete(w, rec, ask, fmt.Sprintf("chatcmpl-%d", n))
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
			map[string]any{"id": "fake-1", "object": "model", "created": created, "owned_by": "remora"},
		}})
	default:
		if t := r.Header.Get("Content-Type"); t != "" {
			w.Header().Set("Content-Type", t)
		}
		_, _ = w.Write(body)
	}
}

// record keeps r and returns its number, from 1.
func (l *LLM) record(r Recorded) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	keep := l.Keep
	if keep <= 0 {
		keep = DefaultKeep
	}
	if len(l.recorded) >= keep {
		l.recorded = slices.Delete(l.recorded, 0, len(l.recorded)-keep+1)
	}
	l.recorded = append(l.recorded, r)
	l.served++
	return l.served
}

func (l *LLM) complete(w http.ResponseWriter, rec Recorded, ask request, id string) {
	if l.refuse(w, rec) {
		return
	}
	reply := Reply{Text: "You said: " + rec.Last("user")}
	if l.Answer != nil {
		reply = l.Answer(rec)
	}
	if reply.Status != 0 && reply.Status != http.StatusOK {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(reply.Status)
		_, _ = io.WriteString(w, reply.Body)
		return
	}
	if reply.Finish == "" {
		reply.Finish = "stop"
		if len(reply.Calls) > 0 {
			reply.Finish = "tool_calls"
		}
	}
	c := completion{id: id, model: ask.Model, reply: reply, usage: usage(rec, reply)}
	if ask.Stream {
		l.stream(w, c, ask.Options.IncludeUsage)
		return
	}
	whole := c.whole()
	if cut := reply.CutAfter; cut > 0 && cut < len(whole) {
		w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(whole[:cut])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(whole)
}

func (l *LLM) stream(w http.ResponseWriter, c completion, includeUsage bool) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	flusher := http.NewResponseController(w)
	for i, event := range c.events(includeUsage) {
		if i > 0 && l.Delay > 0 {
			time.Sleep(l.Delay)
		}
		if l.BeforeEvent != nil {
			l.BeforeEvent(i)
		}
		if c.reply.CutAfter > 0 && i >= c.reply.CutAfter {
			panic(http.ErrAbortHandler)
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", event); err != nil {
			return
		}
		_ = flusher.Flush()
	}
}

// request is what matters of a chat completion request.
type request struct {
	Model   string `json:"model"`
	Stream  bool   `json:"stream"`
	Options struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

func parse(encoding string, body []byte) (request, error) {
	var ask request
	if encoding == "gzip" {
		zr, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return ask, err
		}
		if body, err = io.ReadAll(io.LimitReader(zr, maxRequest)); err != nil {
			return ask, err
		}
	}
	return ask, json.Unmarshal(body, &ask)
}

func (r request) messages() []Message {
	var out []Message
	for _, m := range r.Messages {
		msg := Message{Role: m.Role}
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(m.Content, &msg.Text) != nil && json.Unmarshal(m.Content, &parts) == nil {
			for i, p := range parts {
				if i > 0 {
					msg.Text += "\n"
				}
				msg.Text += p.Text
			}
		}
		out = append(out, msg)
	}
	return out
}
