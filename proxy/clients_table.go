package proxy

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
)

const anyClient = "*"

// client is a Client as it is used: its sources are parsed, and what holds for every client holds for it. It is
// immutable.
type client struct {
	Client
	conversation, user, installation, subAgent sources
	side                                       []sideRule
}

type sideRule struct {
	Side
	source sources // of one; nil = none
}

func newClient(c Client, all ...Client) *client {
	for _, a := range all {
		c.Side = slices.Concat(c.Side, a.Side)
		c.Harness = slices.Concat(c.Harness, a.Harness)
		c.Preambles = slices.Concat(c.Preambles, a.Preambles)
		c.Wrappers = slices.Concat(c.Wrappers, a.Wrappers)
		c.Directory = slices.Concat(c.Directory, a.Directory)
		c.SubAgent = slices.Concat(c.SubAgent, a.SubAgent)
		c.Conversation = slices.Concat(c.Conversation, a.Conversation)
		c.User = slices.Concat(c.User, a.User)
		c.Installation = slices.Concat(c.Installation, a.Installation)
	}
	c.Match = slices.Clone(c.Match)
	for i := range c.Match {
		c.Match[i].Header = http.CanonicalHeaderKey(c.Match[i].Header)
	}
	out := &client{
		Client: c, conversation: parseSources(c.Conversation), user: parseSources(c.User),
		installation: parseSources(c.Installation), subAgent: parseSources(c.SubAgent),
	}
	for _, s := range c.Side {
		rule := sideRule{Side: s}
		if s.Source != "" {
			rule.source = parseSources([]string{s.Source})
		}
		out.side = append(out.side, rule)
	}
	return out
}

// clients is the table in use. It is immutable.
type clients struct {
	known []*client // with a match
	none  *client   // an unknown one
}

// newClients puts the configured clients before the known ones, in whose place they stand where names are alike.
func newClients(configured []Client) *clients {
	list, all := slices.Clone(configured), []Client(nil)
	for _, k := range DefaultClients() {
		if k.Name == anyClient || !slices.ContainsFunc(configured, func(c Client) bool { return c.Name == k.Name }) {
			list = append(list, k)
		}
	}
	for _, c := range list {
		if c.Name == anyClient {
			all = append(all, c)
		}
	}
	t := &clients{none: newClient(Client{}, all...)}
	for _, c := range list {
		if c.Name != anyClient {
			t.known = append(t.known, newClient(c, all...))
		}
	}
	return t
}

// of returns the client that sent h; it is never nil. Rules that look at the system prompt need req; without it they
// don't match.
func (t *clients) of(h http.Header, req *dialect.Request) *client {
	var name string // most rules look at the same header as the one before
	var values []string
	for _, c := range t.known {
		if slices.ContainsFunc(c.Match, func(m Match) bool {
			if m.Header != name {
				name, values = m.Header, h[m.Header]
			}
			return len(values) > 0 && len(values[0]) >= len(m.Prefix) && strings.EqualFold(values[0][:len(m.Prefix)], m.Prefix) &&
				(m.System == "" || req != nil && beginsOne(req.SystemPrefixes(systemBegin), m.System))
		}) {
			return c
		}
	}
	return t.none
}

// systemBegin is how much of each text of a system prompt rules are compared with, in bytes.
const systemBegin = 512

// beginsOne says whether one of the texts begins with prefix, white space aside.
func beginsOne(texts []string, prefix string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.HasPrefix(strings.TrimLeft(t, " \t\r\n"), prefix) })
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

// sources are places to look at, in order.
type sources []source

// parseSources leaves out what Validate refuses.
func parseSources(texts []string) sources {
	var list sources
	for _, text := range texts {
		if s, err := parseSource(text); err == nil {
			list = append(list, s)
		}
	}
	return list
}

// first is what stands at the first of the sources at which something stands.
func (list sources) first(h http.Header, req *dialect.Request) string {
	for _, s := range list {
		if v := s.read(h, req); v != "" {
			return v
		}
	}
	return ""
}

// all is whatever stands at any of the sources. Marks are looked for in it: a mark that stands twice is one, while of two
// ids none is.
func (list sources) all(h http.Header, req *dialect.Request) []string {
	var values []string
	for _, s := range list {
		at := []string{s.value(h, req)}
		if s.header != "" {
			at = h[s.header]
		}
		for _, v := range at {
			if v = s.of(v); v != "" {
				values = append(values, v)
			}
		}
	}
	return values
}

// read returns what stands at the source, "" where nothing does, or where a header stands twice.
func (s source) read(h http.Header, req *dialect.Request) string { return s.of(s.value(h, req)) }

// value is the header, where it stands once, or the field of the body.
func (s source) value(h http.Header, req *dialect.Request) string {
	switch s.field {
	case "prompt_cache_key":
		return req.CacheKey
	case "user":
		return req.User
	case "conversation":
		return req.Conversation
	case "metadata.user_id":
		return req.MetadataUser
	}
	if len(h[s.header]) == 1 {
		return h[s.header][0]
	}
	return ""
}

// of is the part of value that the source names.
func (s source) of(value string) string {
	if s.member == "" || value == "" {
		return value
	}
	if ids, ok := joinedIDs(value); ok {
		return strings.Clone(ids[s.member])
	}
	return dialect.Member(value, s.member)
}

// joinedIDs reads what Claude Code sent before it sent an object: user_ID_account_ID_session_ID.
func joinedIDs(value string) (map[string]string, bool) {
	rest, ok := strings.CutPrefix(value, "user_")
	device, rest, ok1 := strings.Cut(rest, "_account_")
	account, session, ok2 := strings.Cut(rest, "_session_")
	return map[string]string{"device_id": device, "account_uuid": account, "session_id": session}, ok && ok1 && ok2
}
