package identity

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Client describes one program that talks to LLMs: how it is recognised, where
// it puts its ids, which of its requests are not turns of a conversation, and
// which of its texts no person typed. clients.json holds those that Remora
// knows; a configuration may add to them.
//
// A source is "header:NAME" or "body:FIELD", FIELD being prompt_cache_key,
// user, conversation or metadata.user_id. A "#member" after it selects a member
// of the JSON object in that string.
type Client struct {
	// Name is unique; a configured client replaces the known one of that name.
	// "*" applies to every client in addition to its own description.
	Name  string  `json:"name"`
	Match []Match `json:"match,omitempty"` // any of them
	// Conversation and User are sources, tried in order after those that every
	// client may use.
	Conversation []string `json:"conversation,omitempty"`
	User         []string `json:"user,omitempty"`
	// Installation identifies the user if nothing else does.
	Installation []string `json:"installation,omitempty"`
	// SubAgent: if one of these has a value, a helper of the agent speaks, not
	// the user.
	SubAgent []string `json:"subAgent,omitempty"`
	// Side are the requests that are not turns: titles, memory extraction,
	// compaction, warming up.
	Side []Side `json:"side,omitempty"`
	// Harness are texts with role user that no person typed: a message, or one
	// of several texts in it.
	Harness []Opening `json:"harness,omitempty"`
	// Preambles are what the client puts before a person's words in the same
	// text.
	Preambles []Preamble `json:"preambles,omitempty"`
	// Wrappers are the names of elements that hold nothing a person typed, in
	// addition to the known ones (text/wrappers.txt).
	Wrappers []string `json:"wrappers,omitempty"`
	// Directory are marks that precede the agent's working directory in a
	// system prompt or a message of the harness.
	Directory []string `json:"directory,omitempty"`
	// WebSocketFallback: after a 426 to its WebSocket for Responses the client
	// continues over HTTP at once.
	WebSocketFallback bool `json:"webSocketFallback,omitempty"`
}

// Match recognises a client by a request that has the header, whose value
// begins with Prefix, ignoring case, and whose system prompt begins with
// System.
type Match struct {
	Header string `json:"header"`
	Prefix string `json:"prefix,omitempty"`
	System string `json:"system,omitempty"`
}

// Side recognises a request that is not a turn: all of its conditions must
// hold. A person may begin a message as a client begins its own, so name what
// else is known about the client's requests.
type Side struct {
	// Source has one of Values.
	Source string   `json:"source,omitempty"`
	Values []string `json:"values,omitempty"`
	// System begins a text of the system prompt.
	System string `json:"system,omitempty"`
	// User begins the newest user message, without its wrappers; with Whole it
	// is all of it. Holds is contained in it.
	User  string `json:"user,omitempty"`
	Whole bool   `json:"whole,omitempty"`
	Holds string `json:"holds,omitempty"`
	// Alone: there is no other message except a system prompt.
	Alone bool `json:"alone,omitempty"`
	// NoTools: no tools are offered. NoStream: no stream is asked for.
	NoTools  bool `json:"noTools,omitempty"`
	NoStream bool `json:"noStream,omitempty"`
	// MaxTokens: the request limits its answer to at most that; 0 = any.
	MaxTokens int64 `json:"maxTokens,omitempty"`
}

// Opening recognises a text by its beginning and, if Holds is set, by what else
// it contains. With Whole there is nothing else but white space.
type Opening struct {
	Begins string `json:"begins"`
	Whole  bool   `json:"whole,omitempty"`
	Holds  string `json:"holds,omitempty"`
}

// Preamble is cut from a text that begins with Begins, up to and including the
// last Ends.
type Preamble struct {
	Begins string `json:"begins"`
	Ends   string `json:"ends"`
}

// maxClients limits the clients of a configuration: each request is matched
// against all of them.
const maxClients = 64

//go:embed clients.json
var clientsJSON []byte

// knownClients returns the table of known clients.
func knownClients() []Client {
	var list []Client
	if err := json.Unmarshal(clientsJSON, &list); err != nil {
		panic("identity: clients.json: " + err.Error()) // a test decodes it
	}
	return list
}

// problems returns all problems, each with its key.
func (c Client) problems() (errs []error) {
	if c.Name == "" {
		errs = append(errs, errors.New("name: must not be empty"))
	}
	if len(c.Match) == 0 && c.Name != anyClient {
		errs = append(errs, errors.New("match: must hold at least one rule"))
	}
	if c.Name == anyClient && (len(c.Match) > 0 || c.WebSocketFallback) {
		errs = append(errs, errors.New(`match: must be empty for "*", and so must webSocketFallback`))
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
			errs = append(errs, fmt.Errorf("side[%d].values: must be set if and only if source is", i))
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
			errs = append(errs, fmt.Errorf("preambles[%d]: must have begins and ends", i))
		}
	}
	for key, list := range map[string][]string{"wrappers": c.Wrappers, "directory": c.Directory} {
		if i := slices.Index(list, ""); i >= 0 {
			errs = append(errs, fmt.Errorf("%s[%d]: must not be empty", key, i))
		}
	}
	return errs
}

// ValidateClients reports all problems of a list, each with its key.
func ValidateClients(list []Client) error {
	var errs []error
	if len(list) > maxClients {
		errs = append(errs, fmt.Errorf("clients: must hold at most %d", maxClients))
	}
	names := map[string]bool{}
	for i, c := range list {
		for _, err := range c.problems() {
			errs = append(errs, fmt.Errorf("clients[%d].%w", i, err))
		}
		if names[c.Name] {
			errs = append(errs, fmt.Errorf("clients[%d].name: is used twice", i))
		}
		names[c.Name] = true
	}
	return errors.Join(errs...)
}
