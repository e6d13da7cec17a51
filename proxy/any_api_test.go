package proxy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/recall/fence"
)

// anyServer speaks one of the APIs. Where that binds its answers, each has a
// signature over all that stood before it, which must come back with the same.
// Where the server keeps the conversation, it continues only what it knows.
type anyServer struct {
	t    *testing.T
	api  api
	held bool // requests continue the last response by its id

	mu      sync.Mutex
	bodies  []string // of accepted requests, whole conversations
	refused int
	kept    map[string][]piece // by the id of the response
}

// unsigned is the signature that a Gemini server takes for any.
const unsignedPart = "skip_thought_signature_validator"

func (s *anyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pieces := s.api.pieces(s.t, string(raw))
	var ask struct {
		Previous string `json:"previous_response_id"`
	}
	_ = json.Unmarshal(raw, &ask)
	switch before, known := s.kept[ask.Previous]; {
	case ask.Previous != "" && !known:
		s.refuse(w, "Previous response with id '"+ask.Previous+"' not found.")
		return
	case s.held:
		pieces = append(before[:len(before):len(before)], pieces...)
	}
	signature, bad := s.sign(string(raw))
	if bad {
		s.refuse(w, "Thought signature is not valid.")
		return
	}
	s.bodies = append(s.bodies, string(raw))
	id := fmt.Sprintf("resp_%d", len(s.bodies))
	answer := s.api.answer(id, "fine")
	line := "assistant: fine"
	if last := pieces[len(pieces)-1].line; strings.HasSuffix(last, "Use tools.") {
		answer, line = strings.Replace(s.api.calling, "resp_call", id, 1), "call: c"
	}
	s.kept[id] = append(pieces, piece{line: line})
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, strings.ReplaceAll(answer, "c2ln", signature))
}

func (s *anyServer) refuse(w http.ResponseWriter, message string) {
	s.refused++
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = fmt.Fprintf(w, `{"error":{"code":400,"message":%q,"status":"INVALID_ARGUMENT"}}`, message)
}

// sign returns the signature of an answer to body, and whether one in it is not
// over what stands before it.
func (s *anyServer) sign(body string) (signature string, bad bool) {
	if s.api.name != "gemini" {
		return "", false
	}
	var ask struct {
		SystemInstruction json.RawMessage
		Contents          []struct {
			Role  string
			Parts []map[string]any
		}
	}
	if err := json.Unmarshal([]byte(body), &ask); err != nil {
		s.t.Error(err)
	}
	prefix := sha256.New()
	_, _ = prefix.Write(ask.SystemInstruction)
	sum := func() string { return base64.StdEncoding.EncodeToString(prefix.Sum(nil)) }
	for _, c := range ask.Contents {
		for _, p := range c.Parts {
			if had, ok := p["thoughtSignature"].(string); ok && had != unsignedPart && had != sum() {
				bad = true
			}
			delete(p, "thoughtSignature")
		}
		turn, _ := json.Marshal(c)
		_, _ = prefix.Write(turn)
	}
	return sum(), bad
}

// anyTalk is a client of any API.
type anyTalk struct {
	*process
	server *anyServer
	lines  []string // of the conversation
	answer []string // its own part of each answer, as it came
	last   string   // id of the last response
	sent   int      // lines that the server has
	asked  int      // requests
}

func newAnyTalk(t *testing.T, a api, held bool) *anyTalk {
	s := &anyServer{t: t, api: a, held: held, kept: map[string][]piece{}}
	return &anyTalk{process: newProcess(t, s), server: s, lines: []string{"system: Be brief."}}
}

// body returns the request, with the signatures that the answers had.
func (c *anyTalk) body() string {
	a := c.server.api
	switch {
	case a.name == "gemini":
		body := a.body(c.lines...)
		for _, signature := range c.answer {
			before, after, _ := strings.Cut(body, `{"role":"model","parts":[{"`)
			part, rest, _ := strings.Cut(after, `}]}`)
			if strings.HasPrefix(part, "functionCall") {
				part = strings.Replace(part, "c2ln", signature, 1)
			} else {
				part += `,"thoughtSignature":"` + signature + `"`
			}
			body = before + "{\"role\":\"model\",\"parts\":[ {\"" + part + "}]}" + rest // the space marks what is done
		}
		return strings.ReplaceAll(body, "[ {", "[{")
	case c.server.held && c.last != "":
		body := a.body(append(c.lines[:1:1], c.lines[c.sent:]...)...)
		return strings.Replace(body, `"store":false,`, `"store":true,"previous_response_id":"`+c.last+`",`, 1)
	}
	return strings.Replace(a.body(c.lines...), `"store":false`, fmt.Sprintf(`"store":%v`, c.server.held), 1)
}

// say goes on until the model has answered. between is called before it has the
// result of a tool.
func (c *anyTalk) say(text string, between func()) error {
	c.lines = append(c.lines, "user: "+text)
	for {
		req := httptest.NewRequest("POST", c.server.api.path, strings.NewReader(c.body()))
		req.Header.Set("Authorization", "Bearer sk-rig")
		req.Header.Set("Content-Type", "application/json")
		req.RemoteAddr, req.Host = "127.0.0.1:1", "127.0.0.1"
		if c.mode != "" {
			req.Header.Set(headerMemory, c.mode)
		}
		w := httptest.NewRecorder()
		c.asked++
		if c.h.ServeHTTP(w, req); w.Code != http.StatusOK {
			return fmt.Errorf("got %d %s, status %s", w.Code, w.Body, w.Header().Get(headerStatus))
		}
		_, signature, _ := strings.Cut(w.Body.String(), `"thoughtSignature":"`)
		signature, _, _ = strings.Cut(signature, `"`)
		c.answer = append(c.answer, signature)
		_, c.last, _ = strings.Cut(w.Body.String(), `"id":"resp_`)
		c.last, _, _ = strings.Cut(c.last, `"`)
		c.last = "resp_" + c.last
		c.sent = len(c.lines) + 1
		if !strings.Contains(w.Body.String(), "fine") {
			c.lines = append(c.lines, "call: c", "result: c")
			if between != nil {
				between()
			}
			continue
		}
		c.lines = append(c.lines, "assistant: fine")
		return nil
	}
}

// said returns what the server has of the conversation, without memories.
func (c *anyTalk) said() (lines []string) {
	s := c.server
	for _, p := range s.kept[fmt.Sprintf("resp_%d", len(s.bodies))] {
		line := shorten(strings.Replace(p.line, "\n\n"+fence.Rule, "", 1))
		if role, text, _ := strings.Cut(line, ": "); strings.HasPrefix(text, "[") {
			_, text, _ = strings.Cut(text, "]")
			line = role + ": " + strings.TrimSpace(text)
		}
		if !strings.HasSuffix(line, ": ") && !strings.HasSuffix(line, fence.Rule) {
			lines = append(lines, line)
		}
	}
	return lines
}

// In every API the conversation goes on, whatever happens between two of its
// requests or in the middle of a tool loop: the server gets all that was said,
// in one request for each of the client's, and the bytes before what is new stay
// the same unless the change itself changes them.
func TestConversationsGoOnInEveryAPI(t *testing.T) {
	held := apis[3]
	held.name = "responses held"
	for _, a := range append(apis[:len(apis):len(apis)], held) {
		for _, change := range changes {
			for _, tools := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/tools=%v", a.name, change.name, tools), func(t *testing.T) {
					t.Parallel()
					c := newAnyTalk(t, a, a.name == "responses held")
					defer c.close()
					question := "What is it?"
					if tools {
						question = "What is it? Use tools."
					}
					for _, q := range []string{question, "And now?"} {
						if err := c.say(q, nil); err != nil {
							t.Fatal(err)
						}
					}
					changed := 0
					happen := func() {
						if changed == 0 {
							change.do(c.process)
							changed = len(c.server.bodies)
						}
					}
					if !tools {
						happen()
					}
					for _, q := range []string{question, "And then?", question} {
						if err := c.say(q, happen); err != nil {
							t.Fatal(err)
						}
					}
					extra := 0
					if a.name == "gemini" {
						extra = change.extra
					}
					if c.server.refused > extra || len(c.server.bodies) != c.asked {
						t.Errorf("%d of %d requests were refused, %d accepted; want at most %d", c.server.refused, c.asked, len(c.server.bodies), extra)
					}
					c.check(change.extra > 0, changed)
					if change.name == "nothing" && !strings.Contains(strings.Join(c.server.bodies, ""), "The user's number is") {
						t.Error("nothing was inserted: the test shows nothing")
					}
					if change.name == "forget" && c.server.refused != extra {
						t.Errorf("%d requests were refused, want %d: the test shows nothing", c.server.refused, extra)
					}
				})
			}
		}
	}
}

// check compares what the server has with what the client said. breaks says
// that the request after the first changed ones may begin otherwise.
func (c *anyTalk) check(breaks bool, changed int) {
	c.server.t.Helper()
	want, got := c.lines, c.said()
	if c.server.held { // instructions come with every request
		instructions := want[0]
		want = want[1:]
		got = slices.DeleteFunc(got, func(l string) bool { return l == instructions })
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.server.t.Errorf("the server has (-want +got):\n%s", diff)
	}
	for i := 1; i < len(c.server.bodies) && !c.server.held; i++ {
		if !breaks || i != changed {
			c.server.api.grows(c.server.t, c.server.bodies[i-1], c.server.bodies[i])
		}
	}
}

// randomAnyTalk is a random conversation in a random API.
func randomAnyTalk(t *testing.T, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 26))
	a := apis[rng.IntN(len(apis))]
	c := newAnyTalk(t, a, a.name == "responses" && rng.IntN(2) == 0)
	defer c.close()
	var log []string
	for range 2 + rng.IntN(5) {
		text := "Say something."
		if rng.IntN(2) == 0 {
			text = "Say something. Use tools."
		}
		if a.name != "gemini" && !c.server.held && rng.IntN(6) == 0 { // the client takes its last question back
			for i, l := range slices.Backward(c.lines) {
				if strings.HasPrefix(l, "user: ") {
					c.lines = c.lines[:i]
					break
				}
			}
			log = append(log, "edit")
		}
		if err := c.say(text, func() { c.happen(rng, &log) }); err != nil {
			return fmt.Errorf("%s, after %s: %w", a.name, strings.Join(log, ", "), err)
		}
		c.happen(rng, &log)
	}
	want, got := c.lines[1:], slices.DeleteFunc(c.said(), func(l string) bool { return l == c.lines[0] })
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s, after %s: the server has (-want +got):\n%s", a.name, strings.Join(log, ", "), diff)
	}
	return nil
}
