package identity

import (
	"net/http"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
)

const anyClient = "*"

// Profile is a client's description in the form that requests are read with:
// its sources are parsed, and what applies to every client is included. It is
// immutable.
type Profile struct {
	Client
	conversation, user, installation, subAgent sources
	side                                       []sideRule
}

type sideRule struct {
	Side
	source sources // of one; nil = none
}

func newProfile(c Client, all ...Client) *Profile {
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
	out := &Profile{
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

// newProfiles returns the profiles of all clients with a match, configured ones
// first, and that of a client which none of them matches.
func newProfiles(configured []Client) (known []*Profile, unknown *Profile) {
	list, all := slices.Clone(configured), []Client(nil)
	for _, k := range knownClients() {
		if k.Name == anyClient || !slices.ContainsFunc(configured, func(c Client) bool { return c.Name == k.Name }) {
			list = append(list, k)
		}
	}
	for _, c := range list {
		if c.Name == anyClient {
			all = append(all, c)
		}
	}
	for _, c := range list {
		if c.Name != anyClient {
			known = append(known, newProfile(c, all...))
		}
	}
	return known, newProfile(Client{}, all...)
}

// Profile returns the profile of the client that sent h, which is never nil.
// Rules on the system prompt need req; without it they don't match.
func (r *Resolver) Profile(h http.Header, req *dialect.Request) *Profile {
	var name string // most rules look at the same header as the one before
	var values []string
	for _, c := range r.profiles {
		if slices.ContainsFunc(c.Match, func(m Match) bool {
			if m.Header != name {
				name, values = m.Header, h[m.Header]
			}
			return len(values) > 0 && len(values[0]) >= len(m.Prefix) && strings.EqualFold(values[0][:len(m.Prefix)], m.Prefix) &&
				(m.System == "" || req != nil && anyBegins(req.SystemPrefixes(maxSystemPrefix), m.System))
		}) {
			return c
		}
	}
	return r.unknown
}

// maxSystemPrefix is how much of each text of a system prompt is compared with
// rules, in bytes.
const maxSystemPrefix = 512

// anyBegins reports whether one of the texts begins with prefix, ignoring white
// space before it.
func anyBegins(texts []string, prefix string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.HasPrefix(strings.TrimLeft(t, " \t\r\n"), prefix) })
}

// Conversation returns the id of the conversation by the sources of this
// client, or "". Elsewhere such ids are often shared by a whole application, so
// they are believed of known clients only.
func (p *Profile) Conversation(h http.Header, req *dialect.Request) string {
	id, _ := nameOf(p.conversation.first(h, req))
	return id
}

// IsSubAgent reports whether a helper of the agent sent the request.
func (p *Profile) IsSubAgent(h http.Header, req *dialect.Request) bool {
	return len(p.subAgent.all(h, req)) > 0
}

// IsSide reports whether the request is not a turn of a conversation. said is
// what a person typed in its newest user message.
func (p *Profile) IsSide(h http.Header, req *dialect.Request, said string) bool {
	said = strings.TrimLeft(said, "\"")
	var system []string // read once a rule asks for it
	read := false
	return slices.ContainsFunc(p.side, func(s sideRule) bool {
		switch {
		case s.User != "" && s.Whole && strings.TrimRight(said, "\" \t\r\n") != s.User,
			s.User != "" && !s.Whole && !strings.HasPrefix(said, s.User),
			s.Holds != "" && !strings.Contains(said, s.Holds),
			s.NoTools && req.Tools,
			s.NoStream && req.Stream,
			s.MaxTokens > 0 && (req.MaxTokens == 0 || req.MaxTokens > s.MaxTokens),
			s.Alone && !alone(req),
			s.source != nil && !slices.ContainsFunc(s.source.all(h, req), func(v string) bool { return slices.Contains(s.Values, v) }):
			return false
		}
		if s.System == "" {
			return true
		}
		if !read && !req.SystemMayStartWith(s.System) {
			return false
		}
		if !read {
			system, read = req.SystemPrefixes(maxSystemPrefix), true
		}
		return anyBegins(system, s.System)
	})
}

// alone reports whether the newest user message is all of the conversation.
func alone(req *dialect.Request) bool {
	if req.PreviousID != "" || req.Held || req.Turn < 0 || req.Turn != len(req.Messages)-1 {
		return false
	}
	return !slices.ContainsFunc(req.Messages[:req.Turn], func(m dialect.Message) bool { return m.Role != dialect.RoleSystem })
}
