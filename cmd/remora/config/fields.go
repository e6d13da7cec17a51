package config

import (
	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/redact"
)

// The fields of objects in lists, in the order in which they are written.

func upstreamFields(c *httpclient.UpstreamConfig) []setting {
	return []setting{
		{key: "name", at: text(&c.Name), doc: "Used in logs and traces. Unique."},
		{key: "url", at: text(&c.URL), doc: "`http` or `https`, a host, and optionally a path, which is put before every request's path without repeating what both have in common. No credentials: keys belong in the client's headers."},
		{key: "paths", at: names(&c.Paths), doc: "Path prefixes, in whole segments, that this upstream serves. `/` matches what no other prefix does; the longest prefix wins."},
		{key: "headers", at: names(&c.Headers), doc: "Names of request headers. A request with one of them is sent to this upstream if only `/` matches its path. For paths that several APIs share."},
		{key: "caFile", at: text(&c.CAFile), doc: "PEM file of the certificate authorities to trust for this upstream instead of the system's. Empty = the system's."},
	}
}

func policyFields(p *policy.Rule) []setting {
	if p.Memory == "" {
		p.Memory = policy.MemoryOn
	}
	return []setting{
		{key: "upstream", at: text(&p.Upstream), doc: "Name of an upstream, or an intercepted host. Empty = any."},
		{key: "model", at: text(&p.Model), doc: "Name of a model, in which `*` stands for any characters. Empty = any."},
		{key: "allow.kinds", at: names(&p.Allow.Kinds), doc: "Kinds of memories that may go there: `episode`, `fact`, `resource`. Empty = all."},
		{key: "allow.tags", at: names(&p.Allow.Tags), doc: "A memory must have one of these tags; `*` = any, or none. `private` allows private memories, if `upstream` is named. Empty = any."},
		{key: "allow.projects", at: names(&p.Allow.Projects), doc: "A memory must be of one of these projects. Empty = any."},
		{key: "memory", at: choice(&p.Memory, policy.MemoryOn, policy.MemoryRead, policy.MemoryOff), doc: "`on`; `read`: nothing that is said there is stored; `off`: no memory at all. Left out = `on`."},
	}
}

func priceFields(p *api.Price) []setting {
	return []setting{
		{key: "model", at: text(&p.Model), doc: "Name of a model, in which `*` stands for any characters. Empty = any."},
		{key: "currency", at: text(&p.Currency), doc: "Three capital letters, as in ISO 4217."},
		{key: "input", at: float(&p.Input, 0, maxNumber), doc: "For a million tokens of input."},
		{key: "cacheRead", at: float(&p.CacheRead, 0, maxNumber), doc: "For a million of those that were read from the prompt cache. Left out = as `input`."},
		{key: "cacheWrite", at: float(&p.CacheWrite, 0, maxNumber), doc: "For a million of those that were written to it. Left out = as `input`."},
		{key: "output", at: float(&p.Output, 0, maxNumber), doc: "For a million tokens of output."},
	}
}

func clientFields(c *identity.Client) []setting {
	return []setting{
		{key: "name", at: text(&c.Name), doc: "Unique. `*` applies to every client in addition to its own entry."},
		{key: "match", at: objects[identity.Match]{&c.Match, matchFields, ""}, doc: "How the client is recognized: any of these."},
		{key: "conversation", at: names(&c.Conversation), doc: "Sources of the conversation's id, if no generic header names it. A source is `header:NAME`, `body:prompt_cache_key`, `body:user`, `body:conversation` or `body:metadata.user_id`; `#member` appended takes a member of a JSON object in that string."},
		{key: "user", at: names(&c.User), doc: "Sources of the user's id."},
		{key: "installation", at: names(&c.Installation), doc: "Sources of an id that names the user if nothing else does."},
		{key: "subAgent", at: names(&c.SubAgent), doc: "Sources whose presence marks a request of a sub-agent (`identity.subAgents`)."},
		{key: "side", at: objects[identity.Side]{&c.Side, sideFields, ""}, doc: "Requests that are not turns, such as titles: those that match all fields of one entry. They get nothing new, and nothing of them is stored."},
		{key: "harness", at: objects[identity.Opening]{&c.Harness, openingFields, ""}, doc: "Texts with role user that no person typed: a message, or one of several texts in it."},
		{key: "preambles", at: objects[identity.Preamble]{&c.Preambles, preambleFields, ""}, doc: "Text that the client puts before a person's words in the same text. It is removed."},
		{key: "wrappers", at: names(&c.Wrappers), doc: "Names of elements, `<name>...</name>`, whose content no person typed, in addition to the known ones (text/wrappers.txt)."},
		{key: "directory", at: names(&c.Directory), doc: "Text that precedes the agent's working directory."},
		{key: "webSocketFallback", at: boolean(&c.WebSocketFallback), doc: "The client continues over HTTP when its WebSocket is answered 426."},
	}
}

func matchFields(m *identity.Match) []setting {
	return []setting{
		{key: "header", at: text(&m.Header), doc: "A header that the request has."},
		{key: "prefix", at: text(&m.Prefix), doc: "Prefix of its value, regardless of case."},
		{key: "system", at: text(&m.System), doc: "Prefix of a text of the system prompt."},
	}
}

func sideFields(s *identity.Side) []setting {
	return []setting{
		{key: "source", at: text(&s.Source), doc: "A source of a value."},
		{key: "values", at: names(&s.Values), doc: "The value is one of these."},
		{key: "system", at: text(&s.System), doc: "A text of the system prompt starts with this, in its first 512 bytes."},
		{key: "user", at: text(&s.User), doc: "The newest user message, without its wrappers, starts with this."},
		{key: "whole", at: boolean(&s.Whole), doc: "It must be equal to `user`, not only start with it."},
		{key: "holds", at: text(&s.Holds), doc: "It contains this."},
		{key: "alone", at: boolean(&s.Alone), doc: "There is no other message, except a system prompt."},
		{key: "noTools", at: boolean(&s.NoTools), doc: "The request offers no tools."},
		{key: "noStream", at: boolean(&s.NoStream), doc: "The request asks for no stream."},
		{key: "maxTokens", at: integer(&s.MaxTokens, 0, maxInteger), doc: "The request limits the answer to at most so many tokens; 0 = any number."},
	}
}

func openingFields(o *identity.Opening) []setting {
	return []setting{
		{key: "begins", at: text(&o.Begins), doc: "The text starts with this."},
		{key: "whole", at: boolean(&o.Whole), doc: "It must be equal to `begins`, not only start with it."},
		{key: "holds", at: text(&o.Holds), doc: "It contains this."},
	}
}

func preambleFields(p *identity.Preamble) []setting {
	return []setting{
		{key: "begins", at: text(&p.Begins), doc: "The text starts with this."},
		{key: "ends", at: text(&p.Ends), doc: "Everything up to the last occurrence of this is removed."},
	}
}

func ruleFields(r *redact.CustomRule) []setting {
	if r.Validator == "" {
		r.Validator = redact.ValidateNone
	}
	return []setting{
		{key: "id", at: text(&r.ID), doc: "Of a-z, 0-9 and -, up to 64. Unique, also among the [built-in rules](redaction.md)."},
		{key: "pattern", at: text(&r.Pattern), doc: "Regular expression (RE2), up to 1,000 bytes, that does not match the empty string. Its first group is replaced, or the whole match if it has none."},
		{key: "placeholder", at: text(&r.Placeholder), doc: "`[NAME]`, where NAME is 2 to 19 of A-Z and _."},
		{key: "validator", at: choice(&r.Validator, redact.Validators()...), doc: "An additional check of the value. `luhn`: the check digit of cards; `mod97`: the check digits of IBANs; `entropy`: at least 3 bits per byte. Left out = `none`."},
		{key: "keywords", at: names(&r.Keywords), doc: "Up to 10 words of 2 to 32 bytes. The pattern runs only on texts that contain one, in any case; without keywords it runs on all texts, which takes time."},
	}
}
