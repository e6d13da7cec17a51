package proxy

import (
	_ "embed" // the table of known clients
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Client says what is known of one program that talks to LLMs: by what it is recognised, where it puts its ids, which of
// its requests are no turns of a conversation, and which of its texts no human typed. It is data: clients.json holds
// those that Remora knows, a configuration may add to them.
//
// A source is "header:NAME" or "body:FIELD", FIELD being prompt_cache_key, user, conversation or metadata.user_id. What
// follows a "#" names a member of the JSON object that stands there as a string.
type Client struct {
	// Name is unique; one that is known already replaces the table's. "*" is every client, beside the one that it is; what
	// is configured of it adds to what is known.
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
	// Harness are texts with role user that no human typed: a message, or one text of several in it.
	Harness []Opening `json:"harness,omitempty"`
	// Preambles are what the client puts before a human's words in one text with them.
	Preambles []Preamble `json:"preambles,omitempty"`
	// Wrappers are the names of elements in whose place nothing stands that a human typed, beside those that are known of
	// (recall/wrappers.txt).
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

// Side recognises a request that is no turn: all that it names holds. A human may begin a message as a client begins its
// own, so what else is known of the client's requests is named, too.
type Side struct {
	// Source has one of Values.
	Source string   `json:"source,omitempty"`
	Values []string `json:"values,omitempty"`
	// System begins a text of the system prompt.
	System string `json:"system,omitempty"`
	// User begins the newest user message, without its wrappers; it is all of it where Whole is set. Holds stands in it.
	User  string `json:"user,omitempty"`
	Whole bool   `json:"whole,omitempty"`
	Holds string `json:"holds,omitempty"`
	// Alone: no other message goes before or after it, but for a system prompt.
	Alone bool `json:"alone,omitempty"`
	// NoTools: no tools are offered. NoStream: the answer is asked for in one piece.
	NoTools  bool `json:"noTools,omitempty"`
	NoStream bool `json:"noStream,omitempty"`
	// MaxTokens is the most that the request lets the answer have; 0 = whatever it does.
	MaxTokens int64 `json:"maxTokens,omitempty"`
}

// Opening recognises a text by how it begins and, where Holds is set, by what else stands in it. Where Whole is set, no more
// than the beginning does, white space aside.
type Opening struct {
	Begins string `json:"begins"`
	Whole  bool   `json:"whole,omitempty"`
	Holds  string `json:"holds,omitempty"`
}

// Preamble is cut from a text that begins with Begins, up to and with the last Ends.
type Preamble struct {
	Begins string `json:"begins"`
	Ends   string `json:"ends"`
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
		if s.Source == "" && s.System == "" && s.User == "" {
			errs = append(errs, fmt.Errorf("side[%d]: must have a source with values, a system or a user text", i))
		}
		if (s.Source == "") != (len(s.Values) == 0) {
			errs = append(errs, fmt.Errorf("side[%d].values: must stand with a source, and a source with values", i))
		}
		if s.User == "" && (s.Whole || s.Holds != "") {
			errs = append(errs, fmt.Errorf("side[%d].user: must not be empty where whole or holds is set", i))
		}
		if s.MaxTokens < 0 {
			errs = append(errs, fmt.Errorf("side[%d].maxTokens: must be >= 0", i))
		}
	}
	for i, o := range c.Harness {
		if o.Begins == "" {
			errs = append(errs, fmt.Errorf("harness[%d].begins: must not be empty", i))
		}
	}
	for i, p := range c.Preambles {
		if p.Begins == "" || p.Ends == "" {
			errs = append(errs, fmt.Errorf("preambles[%d]: must say how it begins and how it ends", i))
		}
	}
	for key, list := range map[string][]string{"wrappers": c.Wrappers, "directory": c.Directory} {
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
