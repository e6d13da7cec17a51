package main

import "github.com/remora-proxy/remora/persist"

// auditSettings are about what is distilled from conversations and how much of one user is kept; package persist has the
// formula of the score.
func (c *config) auditSettings() []setting {
	a, f := &c.persist.Audit, &c.persist.Facts
	list := []setting{
		{key: "persist.audit.enabled", at: boolean(&a.Enabled), doc: "Distils facts from conversations. Off, turns are remembered as they were said, and bounds are kept all the same."},
		{key: "persist.audit.messages", at: integer(&a.Messages), from: 1, to: 100, doc: "A conversation is audited once it has so many messages that no audit has seen."},
		{key: "persist.audit.tokens", at: integer(&a.Tokens), doc: "The same for their tokens (four bytes count as one)."},
		{key: "persist.audit.interval", at: duration(&a.Interval), doc: "A conversation is audited at the latest when the first of them is so old."},
		{key: "persist.audit.debounce", at: duration(&a.Debounce), doc: "An audit waits until the conversation has been quiet for so long, but not until the window is too small for what is new."},
		{key: "persist.audit.windowMessages", at: integer(&a.WindowMessages), to: 100, doc: "Recent messages that an audit looks at, at most."},
		{key: "persist.audit.threshold", at: number(&a.Threshold), to: 1, doc: "The least score Q, 0 to 1, that a statement is saved with."},
		{key: "persist.audit.keepLonger", at: number(&a.KeepLonger), to: 1, doc: "From this Q on a statement is kept for `persist.facts.longRetention`."},
		{key: "persist.audit.perAudit", at: integer(&a.PerAudit), doc: "Statements that one audit saves, at most. What a user asks to remember does not count."},
		{key: "persist.audit.softLimit", at: duration(&a.SoftLimit), doc: "After so long an audit reads no further message."},
		{key: "persist.audit.hardLimit", at: duration(&a.HardLimit), doc: "After so long it is given up."},
		{key: "persist.audit.maxConversations", at: integer(&a.MaxConversations), doc: "Conversations whose window is held in memory. Beyond, the one that was idle longest is audited and let go of."},
		{key: "persist.audit.maxBytes", at: size(&a.MaxBytes), share: 1.0 / 128, least: 1 << 20, doc: "Their texts and summaries; the same holds."},
		{key: "persist.audit.maxHeard", at: integer(&a.MaxHeard), doc: "Turns that wait for the auditor. Beyond, turns are stored but not audited, and counted."},
		{key: "persist.audit.keepRecords", at: integer(&a.KeepRecords), to: 10_000, doc: "Audit records kept of one user; new ones take the place of the oldest. They hold no content."},
		{key: "persist.audit.keepSummaries", at: integer(&a.KeepSummaries), to: 10_000, doc: "Conversation summaries kept of one user. Beyond, the oldest goes."},
		{key: "persist.audit.retention", at: duration(&a.Retention), doc: "How long audit records and summaries are kept."},
		{key: "persist.audit.maxPending", at: integer(&a.MaxPending), to: 10_000, doc: "Requests to forget something that wait for confirmation, of one user. Beyond, the oldest goes."},
		{key: "persist.audit.weights.relevanceMatches", at: integer(&a.Weights.RelevanceMatches), doc: "Keywords of the conversation's summary in the window that make relevance 1."},
		{key: "persist.audit.weights.recencyAge", at: duration(&a.Weights.RecencyAge), doc: "Recency is exp(-age / this)."},
		{key: "persist.audit.weights.severalMessages", at: integer(&a.Weights.SeveralMessages), doc: "Messages of a window that count as several."},
		{key: "persist.audit.weights.longCharacters", at: integer(&a.Weights.LongCharacters), doc: "A window with more characters counts as long."},
	}
	a.Weights.Shares(func(key string, value *float64, doc string) {
		list = append(list, setting{key: "persist.audit.weights." + key, at: number(value), to: 1, doc: doc})
	})
	return append(list,
		setting{key: "persist.facts.max", at: integer(&f.Max), doc: "Facts of one user. Beyond, those of the lowest worth go."},
		setting{key: "persist.facts.maxForgotten", at: integer(&f.MaxForgotten), to: 10_000, doc: "Forgotten facts and conversations of one user that what was said before does not make again. Beyond, the oldest may come back if a passage with it is audited anew, or its conversation imported."},
		setting{key: "persist.facts.maxCharacters", at: integer(&f.MaxCharacters), from: 64, to: persist.PassageRunes, doc: "Longer statements are not saved."},
		setting{key: "persist.facts.retention", at: duration(&f.Retention), doc: "How long facts are kept since they were last said."},
		setting{key: "persist.facts.longRetention", at: duration(&f.LongRetention), doc: "The same for those with a high score and those that the user asked to remember."},
		setting{key: "persist.facts.halfLife", at: duration(&f.HalfLife), doc: "The worth of a fact halves with each, since it was last said."},
		setting{key: "persist.facts.episodeBytes", at: size(&f.EpisodeBytes), doc: "Text of turns of one user. Beyond, the oldest go."},
		setting{key: "persist.facts.maxScopes", at: integer(&f.MaxScopes), doc: "Users whose facts are held in memory for merging. Beyond, those of the one that was idle longest are read again when needed."},
		setting{key: "persist.facts.cacheBytes", at: size(&f.CacheBytes), share: 1.0 / 64, least: 1 << 20, doc: "Their facts; the same holds."},
	)
}

func (c *config) distillSettings() []setting {
	d := &c.distill
	return []setting{
		{key: "distill.url", at: text(&d.URL), doc: "An OpenAI-compatible endpoint up to its version, such as `https://api.openai.com/v1`, that proposes what to save. Redacted messages are sent there. Empty = off: the built-in rules do it."},
		{key: "distill.model", at: text(&d.Model), doc: "The model that is asked."},
		{key: "distill.key", at: secret(&d.Key), doc: "Its API key. Empty = none is sent. Clients' keys are never used for it: to ask an upstream, give its address in `distill.url` and a key of your own here."},
		{key: "distill.concurrency", at: integer(&d.Concurrency), from: 1, to: 64, doc: "Calls at once. Beyond, the rules do it."},
		{key: "distill.tokensPerDay", at: integer(&d.TokensPerDay), most: 1e12, doc: "Tokens of prompts and answers in a UTC day, or since the start. Beyond, the rules do it."},
		{key: "distill.timeout", at: duration(&d.Timeout), doc: "For one call."},
		{key: "distill.maxTokens", at: integer(&d.MaxTokens), doc: "Tokens of one answer."},
		{key: "distill.proxyFromEnvironment", at: boolean(&d.ProxyFromEnvironment), doc: "Reaches the endpoint through `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`."},
		{key: "distill.maxFacts", at: integer(&d.MaxFacts), from: 1, to: 50, doc: "Statements in one answer; a longer one is refused."},
	}
}
