package proxy

import (
	_ "embed" // the table of known clients
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall"
)

// Client says what is known of one program that talks to LLMs: by what it is recognised, where it puts its ids, which of
// its requests are no turns of a conversation, and which of its texts no human typed. It is data: clients.json holds
// those that Remora knows, a configuration may add to them.
//
// A source is "header:NAME" or "body:FIELD", FIELD being prompt_cache_key, user, conversation or metadata.user_id. What
// follows a "#" names a member of the JSON object that stands there as a string.
type Client struct {
	// Name is unique; one that is known already replaces the table's. "*" is every client, beside the one that it is.
	Name  string  `json:"name"`
	Match []Match `json:"match,omitempty"` // any of them
	// Conversation and User name these, in order, where nothing that every client may send does.
	Conversation []string `json:"conversation,omitempty"`
	User         []string `json:"user,omitempty"`
	// Installation names the user where otherwise there would be none.
	Installation []string `json:"installation,omitempty"`
	// SubAgent: where one of these is there, an agent's own helper speaks, not the user.
	SubAgent []string `json:"subAgent,omitempty"`
	// Side are the requests that are no turns: titles, memory extraction, compaction, warming up.
	Side []Side `json:"side,omitempty"`
	// Harness are beginnings of messages with role user that no human typed.
	Harness []string `json:"harness,omitempty"`
	// Wrappers are the names of elements in whose place nothing stands that a human typed, beside those of every client.
	Wrappers []string `json:"wrappers,omitempty"`
	// Directory are what stands before the agent's working directory, in a system prompt or a message of the harness.
	Directory []string `json:"directory,omitempty"`
	// WebSocketFallback: on a 426 to its WebSocket for Responses it goes on over HTTP at once.
	WebSocketFallback bool `json:"webSocketFallback,omitempty"`
}

// Match recognises a client by its request: the header is there, its value begins with Prefix (letter case aside), and
// the system prompt with System.
type Match struct {
	Header string `json:"header"`
	Prefix string `json:"prefix,omitempty"`
	System string `json:"system,omitempty"`
}

// Side recognises a request that is no turn: the source has one of the values, the system prompt begins with System, or
// the newest user message with User (is all of it, where Whole is set).
type Side struct {
	Source string   `json:"source,omitempty"`
	Values []string `json:"values,omitempty"`
	System string   `json:"system,omitempty"`
	User   string   `json:"user,omitempty"`
	Whole  bool     `json:"whole,omitempty"`
}

// maxClients bounds what a configuration may add: each request is matched against all of them.
const maxClients = 64

//go:embed clients.json
var knownClients []byte

// DefaultClients is the table of known clients.
func DefaultClients() []Client {
	var list []Client
	if err := json.Unmarshal(knownClients, &list); err != nil {
		panic("proxy: clients.json: " + err.Error()) // a test decodes it
	}
	return list
}

// Validate reports all problems, each with its key.
func (c Client) Validate() error {
	var errs []error
	if c.Name == "" {
		errs = append(errs, errors.New("name: must not be empty"))
	}
	if len(c.Match) == 0 && c.Name != anyClient {
		errs = append(errs, errors.New("match: must hold at least one rule"))
	}
	for i, m := range c.Match {
		if m.Header == "" || strings.ContainsAny(m.Header, " \t:\r\n") {
			errs = append(errs, fmt.Errorf("match[%d].header: must be a header name", i))
		}
	}
	for key, list := range map[string][]string{
		"conversation": c.Conversation, "user": c.User, "installation": c.Installation, "subAgent": c.SubAgent,
	} {
		for i, s := range list {
			if _, err := parseSource(s); err != nil {
				errs = append(errs, fmt.Errorf("%s[%d]: %w", key, i, err))
			}
		}
	}
	for i, s := range c.Side {
		if s.Source != "" {
			if _, err := parseSource(s.Source); err != nil {
				errs = append(errs, fmt.Errorf("side[%d].source: %w", i, err))
			}
		}
		if (s.Source == "" || len(s.Values) == 0) && s.System == "" && s.User == "" {
			errs = append(errs, fmt.Errorf("side[%d]: must have a source with values, a system or a user text", i))
		}
	}
	for key, list := range map[string][]string{"harness": c.Harness, "wrappers": c.Wrappers, "directory": c.Directory} {
		if i := slices.Index(list, ""); i >= 0 {
			errs = append(errs, fmt.Errorf("%s[%d]: must not be empty", key, i))
		}
	}
	return errors.Join(errs...)
}

func validateClients(list []Client) error {
	var errs []error
	if len(list) > maxClients {
		errs = append(errs, fmt.Errorf("clients: must hold at most %d", maxClients))
	}
	names := map[string]bool{}
	for i, c := range list {
		for _, err := range unjoin(c.Validate()) {
			errs = append(errs, fmt.Errorf("clients[%d].%w", i, err))
		}
		if names[c.Name] {
			errs = append(errs, fmt.Errorf("clients[%d].name: stands twice", i))
		}
		names[c.Name] = true
	}
	return errors.Join(errs...)
}

const anyClient = "*"

// clients is the table in use. It is immutable.
type clients struct {
	known []Client // with a match
	all   *Client  // what holds for every client
	none  *Client  // an unknown one
}

// newClients puts the configured clients before the known ones, in whose place they stand where names are alike.
func newClients(configured []Client) *clients {
	t := &clients{none: &Client{}, all: &Client{}}
	list := slices.Clone(configured)
	for _, k := range DefaultClients() {
		if !slices.ContainsFunc(configured, func(c Client) bool { return c.Name == k.Name }) {
			list = append(list, k)
		}
	}
	for _, c := range list {
		if c.Name == anyClient {
			t.all = &c
			continue
		}
		for i := range c.Match {
			c.Match[i].Header = http.CanonicalHeaderKey(c.Match[i].Header)
		}
		t.known = append(t.known, c)
	}
	return t
}

// of returns the client that sent h; it is never nil. Rules that look at the system prompt need req; without it they
// don't match.
func (t *clients) of(h http.Header, req *dialect.Request) *Client {
	for i := range t.known {
		c := &t.known[i]
		if slices.ContainsFunc(c.Match, func(m Match) bool {
			values := h[m.Header]
			return len(values) > 0 && len(values[0]) >= len(m.Prefix) && strings.EqualFold(values[0][:len(m.Prefix)], m.Prefix) &&
				(m.System == "" || req != nil && strings.HasPrefix(req.System(), m.System))
		}) {
			return c
		}
	}
	return t.none
}

// source is a place in a request where an id or a mark stands.
type source struct {
	header string // canonical; "" = a field of the body
	field  string
	member string // of the JSON object there; "" = the value itself
}

func parseSource(s string) (source, error) {
	var out source
	s, out.member, _ = strings.Cut(s, "#")
	kind, name, _ := strings.Cut(s, ":")
	switch {
	case kind == "header" && name != "" && !strings.ContainsAny(name, " \t\r\n"):
		out.header = http.CanonicalHeaderKey(name)
	case kind == "body" && slices.Contains([]string{"prompt_cache_key", "user", "conversation", "metadata.user_id"}, name):
		out.field = name
	default:
		return out, errors.New(`must be "header:NAME", "body:prompt_cache_key", "body:user", "body:conversation" or "body:metadata.user_id", each perhaps with "#member"`)
	}
	return out, nil
}

// read returns what stands at the source, "" where nothing does, or where a header stands twice.
func (s source) read(h http.Header, req *dialect.Request) string {
	value := ""
	switch s.field {
	case "prompt_cache_key":
		value = req.CacheKey
	case "user":
		value = req.User
	case "conversation":
		value = req.Conversation
	case "metadata.user_id":
		value = req.MetadataUser
	default:
		if len(h[s.header]) == 1 {
			value = h[s.header][0]
		}
	}
	if s.member == "" || value == "" {
		return value
	}
	var object map[string]json.RawMessage
	var member string
	if ids, ok := joinedIDs(value); ok {
		return ids[s.member]
	}
	if json.Unmarshal([]byte(value), &object) != nil || json.Unmarshal(object[s.member], &member) != nil {
		return ""
	}
	return member
}

// joinedIDs reads what Claude Code sent before it sent an object: user_ID_account_ID_session_ID.
func joinedIDs(value string) (map[string]string, bool) {
	rest, ok := strings.CutPrefix(value, "user_")
	device, rest, ok1 := strings.Cut(rest, "_account_")
	account, session, ok2 := strings.Cut(rest, "_session_")
	return map[string]string{"device_id": device, "account_uuid": account, "session_id": session}, ok && ok1 && ok2
}

// first is the first of the sources at which something stands.
func first(sources []string, h http.Header, req *dialect.Request) string {
	for _, text := range sources {
		if s, err := parseSource(text); err == nil {
			if v := s.read(h, req); v != "" {
				return v
			}
		}
	}
	return ""
}

// side says whether the request is no turn of a conversation.
func (t *clients) side(c *Client, h http.Header, req *dialect.Request) bool {
	newest := ""
	if req.Turn >= 0 {
		newest = strings.TrimLeft(c.words(req.Text(req.Turn)), "\"")
	}
	for _, rules := range [...][]Side{c.Side, t.all.Side} {
		for _, s := range rules {
			switch {
			case s.Source != "" && slices.Contains(s.Values, first([]string{s.Source}, h, req)),
				s.System != "" && strings.HasPrefix(strings.TrimLeft(req.System(), " \t\r\n"), s.System),
				s.User != "" && !s.Whole && strings.HasPrefix(newest, s.User),
				s.User != "" && s.Whole && strings.TrimSpace(newest) == s.User:
				return true
			}
		}
	}
	return false
}

// human is what of a message a human typed, "" where that is nothing.
func (c *Client) human(text string) string {
	begin := strings.TrimLeft(text, " \t\r\n")
	for _, h := range c.Harness {
		if strings.HasPrefix(begin, h) {
			return ""
		}
	}
	return c.words(text)
}

// words is a message without its wrappers.
func (c *Client) words(text string) string {
	return strings.TrimSpace(recall.HumanWords(recall.CutElements(text, c.Wrappers)))
}

// maxDirectory bounds a working directory's path, and directoryReach how far into a text it is looked for, in bytes.
const (
	maxDirectory   = 1024
	directoryReach = 64 << 10
)

// directory is the agent's working directory, "" where it tells none.
func (c *Client) directory(req *dialect.Request) string {
	if len(c.Directory) == 0 {
		return ""
	}
	if d := c.directoryIn(req.System()); d != "" {
		return d
	}
	for i := 0; i <= req.Turn && i < 4; i++ { // the harness speaks first
		if req.Messages[i].Role == dialect.RoleUser {
			if d := c.directoryIn(req.Text(i)); d != "" {
				return d
			}
		}
	}
	return ""
}

func (c *Client) directoryIn(text string) string {
	text = text[:min(len(text), directoryReach)]
	for _, mark := range c.Directory {
		_, after, found := strings.Cut(text, mark)
		if !found {
			continue
		}
		end := strings.IndexAny(after, "\n<")
		if end < 0 {
			end = len(after)
		}
		if d := strings.TrimRight(strings.TrimSpace(after[:end]), ".,"); d != "" && len(d) <= maxDirectory {
			return d
		}
	}
	return ""
}
