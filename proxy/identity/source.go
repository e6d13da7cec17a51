package identity

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// source is a place in a request that may hold an id or a mark.
type source struct {
	header string // canonical; "" = a field of the body
	field  string
	member string // of the JSON object in it; "" = the value itself
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

// parseSources skips what validation refuses.
func parseSources(texts []string) sources {
	var list sources
	for _, text := range texts {
		if s, err := parseSource(text); err == nil {
			list = append(list, s)
		}
	}
	return list
}

// first returns the value of the first source that has one.
func (list sources) first(h http.Header, req *dialect.Request) string {
	for _, s := range list {
		if v := s.read(h, req); v != "" {
			return v
		}
	}
	return ""
}

// all returns the values of all sources. It is for marks: a repeated header is
// still a mark, while of two ids neither counts.
func (list sources) all(h http.Header, req *dialect.Request) []string {
	var values []string
	for _, s := range list {
		at := []string{s.value(h, req)}
		if s.header != "" {
			at = h[s.header]
		}
		for _, v := range at {
			if v = s.selected(v); v != "" {
				values = append(values, v)
			}
		}
	}
	return values
}

// read returns the value of the source, "" if it has none or its header is
// repeated.
func (s source) read(h http.Header, req *dialect.Request) string { return s.selected(s.value(h, req)) }

// value returns the header, unless it is repeated, or the field of the body.
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

// selected returns the part of value that the source selects.
func (s source) selected(value string) string {
	if s.member == "" || value == "" {
		return value
	}
	if ids, ok := joinedIDs(value); ok {
		return strings.Clone(ids[s.member])
	}
	return dialect.Member(value, s.member)
}

// joinedIDs reads the format that Claude Code used before it sent an object:
// user_ID_account_ID_session_ID.
func joinedIDs(value string) (map[string]string, bool) {
	rest, ok := strings.CutPrefix(value, "user_")
	device, rest, ok1 := strings.Cut(rest, "_account_")
	account, session, ok2 := strings.Cut(rest, "_session_")
	return map[string]string{"device_id": device, "account_uuid": account, "session_id": session}, ok && ok1 && ok2
}
