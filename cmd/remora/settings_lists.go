package main

import (
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/redact"
)

// The fields of settings that are lists of objects.

func upstreamList(to *[]httpclient.UpstreamConfig) value {
	return objectList[httpclient.UpstreamConfig]{to, upstreamFields, ", or REMORA_UPSTREAM for one upstream of every path"}
}

// upstreamFields are the keys of one upstream, in the order in which they are written.
func upstreamFields(c *httpclient.UpstreamConfig) []setting {
	return []setting{
		{key: "name", at: text(&c.Name), doc: "Stands in logs and traces. Unique."},
		{key: "url", at: text(&c.URL), doc: "`http` or `https`, a host, and optionally a path, which is put in front of every request's path without doubling what both have in common. No credentials: keys belong in the client's headers."},
		{key: "paths", at: names(&c.Paths), doc: "Path prefixes, in whole segments, that this upstream serves. `/` takes what no other prefix does; the longest prefix wins."},
		{key: "headers", at: names(&c.Headers), doc: "Names of request headers: a request that carries one comes to this upstream where only `/` covers its path. For paths that several APIs have."},
		{key: "caFile", at: text(&c.CAFile), doc: "PEM file of the certificate authorities to trust for this upstream in place of the system's. Empty = the system's."},
	}
}

// clientFields are the keys of one client, in the order in which they are written.
func clientFields(c *identity.Client) []setting {
	return []setting{
		{key: "name", at: text(&c.Name), doc: "Unique. `*` is every client, beside the one that it is; what stands there adds to what is known."},
		{key: "match", at: objectList[identity.Match]{&c.Match, matchFields, ""}, doc: "By what it is recognised: any of these."},
		{key: "conversation", at: names(&c.Conversation), doc: "Sources of the conversation's id, where nothing that every client may send names it. A source is `header:NAME`, `body:prompt_cache_key`, `body:user`, `body:conversation` or `body:metadata.user_id`; `#member` behind it takes a member of the JSON object that stands there as a string."},
		{key: "user", at: names(&c.User), doc: "Sources of the user's id."},
		{key: "installation", at: names(&c.Installation), doc: "Sources of an id that names the user where otherwise there would be none."},
		{key: "subAgent", at: names(&c.SubAgent), doc: "Sources: where one is there, a sub-agent speaks (`identity.subAgents`)."},
		{key: "side", at: objectList[identity.Side]{&c.Side, sideFields, ""}, doc: "Requests that are no turns, such as titles: those of which all that one of these names holds. They are given nothing new, and nothing of them is stored."},
		{key: "harness", at: objectList[identity.Opening]{&c.Harness, openingFields, ""}, doc: "Texts with role user that no human typed: a message, or one text of several in it."},
		{key: "preambles", at: objectList[identity.Preamble]{&c.Preambles, preambleFields, ""}, doc: "What the client puts before a human's words in one text with them; it is cut away."},
		{key: "wrappers", at: names(&c.Wrappers), doc: "Names of elements, `<name>...</name>`, in which nothing stands that a human typed, beside those that are known (recall/wrappers.txt)."},
		{key: "directory", at: names(&c.Directory), doc: "What stands before the agent's working directory."},
		{key: "webSocketFallback", at: boolean(&c.WebSocketFallback), doc: "It goes on over HTTP at once when its WebSocket is answered 426."},
	}
}

func matchFields(m *identity.Match) []setting {
	return []setting{
		{key: "header", at: text(&m.Header), doc: "The request has it."},
		{key: "prefix", at: text(&m.Prefix), doc: "Its value begins so, letter case aside."},
		{key: "system", at: text(&m.System), doc: "And a text of the system prompt begins so."},
	}
}

func sideFields(s *identity.Side) []setting {
	return []setting{
		{key: "source", at: text(&s.Source), doc: "What stands there"},
		{key: "values", at: names(&s.Values), doc: "is one of these."},
		{key: "system", at: text(&s.System), doc: "A text of the system prompt begins so, in its first 512 bytes."},
		{key: "user", at: text(&s.User), doc: "The newest user message begins so, without its wrappers,"},
		{key: "whole", at: boolean(&s.Whole), doc: "or is so as a whole,"},
		{key: "holds", at: text(&s.Holds), doc: "and this stands in it."},
		{key: "alone", at: boolean(&s.Alone), doc: "There is no other message, but for a system prompt."},
		{key: "noTools", at: boolean(&s.NoTools), doc: "No tools are offered."},
		{key: "noStream", at: boolean(&s.NoStream), doc: "The answer is asked for in one piece."},
		{key: "maxTokens", at: integer(&s.MaxTokens), doc: "The answer may have at most so many tokens; 0 = any number."},
	}
}

func openingFields(o *identity.Opening) []setting {
	return []setting{
		{key: "begins", at: text(&o.Begins), doc: "It begins so,"},
		{key: "whole", at: boolean(&o.Whole), doc: "or is so as a whole,"},
		{key: "holds", at: text(&o.Holds), doc: "and this stands in it."},
	}
}

func preambleFields(p *identity.Preamble) []setting {
	return []setting{
		{key: "begins", at: text(&p.Begins), doc: "A text begins so;"},
		{key: "ends", at: text(&p.Ends), doc: "up to the last of these it is cut away."},
	}
}

// customRules is the setting of the redaction rules that a person adds.
func customRules(to *[]redact.CustomRule) value {
	return objectList[redact.CustomRule]{to, ruleFields, ""}
}

func ruleFields(r *redact.CustomRule) []setting {
	if r.Validator == "" {
		r.Validator = redact.ValidateNone
	}
	return []setting{
		{key: "id", at: text(&r.ID), doc: "Of a-z, 0-9 and -, up to 64. Unique, also among the [built-in rules](redaction.md)."},
		{key: "pattern", at: text(&r.Pattern), doc: "Regular expression (RE2), up to 1,000 bytes, that does not match the empty string. Its first group is replaced, or without one the whole match."},
		{key: "placeholder", at: text(&r.Placeholder), doc: "`[NAME]`, where NAME is 2 to 19 of A-Z and _."},
		{key: "validator", at: choice(&r.Validator, redact.Validators()...), doc: "What the value must pass besides. `luhn`: the check digit of cards; `mod97`: the check digits of IBANs; `entropy`: at least 3 bits per byte. Left out = `none`."},
		{key: "keywords", at: names(&r.Keywords), doc: "Up to 10 words of 2 to 32 bytes. With them the pattern runs only over texts that hold one, in any case; without, over all, which costs time."},
	}
}
