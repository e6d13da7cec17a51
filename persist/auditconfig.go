package persist

import (
	"fmt"
	"time"
)

// AuditConfig is when conversations are audited and what is saved. The zero value of Enabled switches the distilling of
// facts off; bounds are kept all the same.
type AuditConfig struct {
	Enabled bool
	// Messages, Tokens and Interval: a conversation is due once it has so many messages, or so many tokens, that no audit
	// has seen, or once the first of them is so old.
	Messages int
	Tokens   int
	Interval time.Duration
	// Debounce: a due audit waits until the conversation has been quiet for so long, but never for longer than the window
	// has room for: what would leave it is audited first.
	Debounce time.Duration
	// WindowMessages is how many recent messages an audit looks at, at most.
	WindowMessages int
	// Threshold is the least Q that is saved, KeepLonger the least that Facts.LongRetention holds for, PerAudit the most
	// that one audit saves.
	Threshold, KeepLonger float64
	PerAudit              int
	// SoftLimit: after so long an audit reads no further message. HardLimit: after so long it is given up.
	SoftLimit, HardLimit time.Duration
	Weights              QualityWeights
	// MaxConversations and MaxBytes bound what is held of conversations in memory. Beyond, the one that was idle longest
	// is audited and let go of.
	MaxConversations int
	MaxBytes         int64
	// MaxHeard bounds the turns that wait for the auditor. Beyond, turns go unaudited and are counted.
	MaxHeard int
	// KeepRecords and KeepSummaries bound the audit records and conversation summaries of one scope, Retention their age.
	KeepRecords, KeepSummaries int
	Retention                  time.Duration
	// MaxPending bounds what a user asked to forget and nobody has confirmed yet, per scope; beyond, the oldest goes.
	MaxPending int
}

// QualityWeights are the constants of Q = Relevance r + Importance i + Recency c + Coherence h.
type QualityWeights struct {
	Relevance, Importance, Recency, Coherence float64

	// RelevanceMatches: r = min(keywords of the summary that the window holds / RelevanceMatches, 1).
	RelevanceMatches int
	// i is the sum of these, at most 1.
	Directive, Goal, Number, URL, Code, Entity, UserMarked float64
	// RecencyAge: c = exp(-age / RecencyAge).
	RecencyAge time.Duration
	// h is the sum of these.
	Answered, Several, Long float64
	// SeveralMessages and LongCharacters are from when on the last two hold.
	SeveralMessages, LongCharacters int
}

// FactConfig bounds facts and episodes of one scope.
type FactConfig struct {
	// Max is the most facts; beyond, those of the lowest value go. Superseded ones and those in quarantine count too.
	Max int
	// MaxForgotten is how many forgotten facts are known not to be saved again of what was said before. Beyond, the oldest
	// may be saved again if a passage with it is audited anew.
	MaxForgotten int
	// MaxCharacters is the longest fact; longer statements are refused.
	MaxCharacters int
	// Retention and LongRetention are how long facts live from when they were last said.
	Retention, LongRetention time.Duration
	// HalfLife: the priority of a fact halves with each, from when it was last said.
	HalfLife time.Duration
	// EpisodeBytes is the most text of episodes; beyond, the oldest go.
	EpisodeBytes int64
	// MaxScopes bounds the scopes whose facts are held in memory, CacheBytes the facts. Beyond, the one that was idle
	// longest is let go of, and read again when one of its conversations is audited.
	MaxScopes  int
	CacheBytes int64
}

// DefaultAuditConfig has the constants of the design.
func DefaultAuditConfig() AuditConfig {
	return AuditConfig{
		Enabled: true, Messages: 6, Tokens: 1500, Interval: 3 * time.Minute, Debounce: 30 * time.Second, WindowMessages: 12,
		Threshold: 0.65, KeepLonger: 0.8, PerAudit: 3, SoftLimit: 120 * time.Millisecond, HardLimit: 300 * time.Millisecond,
		Weights: QualityWeights{
			Relevance: 0.4, Importance: 0.3, Recency: 0.2, Coherence: 0.1, RelevanceMatches: 5,
			Directive: 0.25, Goal: 0.25, Number: 0.1, URL: 0.1, Code: 0.15, Entity: 0.1, UserMarked: 0.4,
			RecencyAge: 36 * time.Hour, Answered: 0.4, Several: 0.3, Long: 0.3, SeveralMessages: 2, LongCharacters: 50,
		},
		MaxConversations: 1024, MaxBytes: 16 << 20, MaxHeard: 4096,
		KeepRecords: 200, KeepSummaries: 500, Retention: 90 * 24 * time.Hour, MaxPending: 100,
	}
}

// DefaultFactConfig suits one machine.
func DefaultFactConfig() FactConfig {
	return FactConfig{
		Max: 10_000, MaxForgotten: 1000, MaxCharacters: PassageRunes, Retention: 180 * 24 * time.Hour, LongRetention: 2 * 365 * 24 * time.Hour,
		HalfLife: 90 * 24 * time.Hour, EpisodeBytes: 64 << 20, MaxScopes: 256, CacheBytes: 32 << 20,
	}
}

// checker collects what is wrong, each with the key that it stands under.
type checker struct{ errs []error }

func (c *checker) check(ok bool, field, want string) {
	if !ok {
		c.errs = append(c.errs, fmt.Errorf("%s: must be %s", field, want))
	}
}

func (c *checker) share(v float64, field string) { c.check(v >= 0 && v <= 1, field, "between 0 and 1") }

func (a AuditConfig) validate(c *checker) {
	c.check(a.Messages > 0, "audit.messages", "> 0")
	c.check(a.Tokens > 0, "audit.tokens", "> 0")
	c.check(a.Interval > 0, "audit.interval", "> 0")
	c.check(a.Debounce >= 0, "audit.debounce", ">= 0")
	c.check(a.WindowMessages >= a.Messages && a.WindowMessages <= 100, "audit.windowMessages", "between audit.messages and 100")
	c.share(a.Threshold, "audit.threshold")
	c.check(a.KeepLonger >= a.Threshold && a.KeepLonger <= 1, "audit.keepLonger", "between audit.threshold and 1")
	c.check(a.PerAudit >= 0, "audit.perAudit", ">= 0")
	c.check(a.SoftLimit > 0, "audit.softLimit", "> 0")
	c.check(a.HardLimit >= a.SoftLimit, "audit.hardLimit", ">= audit.softLimit")
	c.check(a.MaxConversations > 0, "audit.maxConversations", "> 0")
	c.check(a.MaxBytes >= 1<<20, "audit.maxBytes", ">= 1 MiB")
	c.check(a.MaxHeard > 0, "audit.maxHeard", "> 0")
	c.check(a.KeepRecords >= 0 && a.KeepRecords <= 10_000, "audit.keepRecords", "between 0 and 10000")
	c.check(a.KeepSummaries >= 0 && a.KeepSummaries <= 10_000, "audit.keepSummaries", "between 0 and 10000")
	c.check(a.Retention > 0, "audit.retention", "> 0")
	c.check(a.MaxPending >= 0 && a.MaxPending <= 10_000, "audit.maxPending", "between 0 and 10000")
	w := a.Weights
	for _, s := range w.list() {
		c.share(*s.value, "audit.weights."+s.key)
	}
	c.check(w.RelevanceMatches > 0, "audit.weights.relevanceMatches", "> 0")
	c.check(w.RecencyAge > 0, "audit.weights.recencyAge", "> 0")
	c.check(w.SeveralMessages > 0, "audit.weights.severalMessages", "> 0")
	c.check(w.LongCharacters >= 0, "audit.weights.longCharacters", ">= 0")
}

func (f FactConfig) validate(c *checker) {
	c.check(f.Max >= 0, "facts.max", ">= 0")
	c.check(f.MaxForgotten >= 0 && f.MaxForgotten <= 10_000, "facts.maxForgotten", "between 0 and 10000")
	c.check(f.MaxCharacters >= 64 && f.MaxCharacters <= PassageRunes, "facts.maxCharacters", "between 64 and 1024")
	c.check(f.Retention > 0, "facts.retention", "> 0")
	c.check(f.LongRetention >= f.Retention, "facts.longRetention", ">= facts.retention")
	c.check(f.HalfLife > 0, "facts.halfLife", "> 0")
	c.check(f.EpisodeBytes >= 1<<20, "facts.episodeBytes", ">= 1 MiB")
	c.check(f.MaxScopes > 0, "facts.maxScopes", "> 0")
	c.check(f.CacheBytes >= 1<<20, "facts.cacheBytes", ">= 1 MiB")
}

type namedShare struct {
	key   string
	value *float64
	doc   string
}

func (w *QualityWeights) list() []namedShare {
	return []namedShare{
		{"relevance", &w.Relevance, "Weight of relevance in Q: how much the window is about what the conversation is about."},
		{"importance", &w.Importance, "Weight of importance in Q: what the statement itself holds."},
		{"recency", &w.Recency, "Weight of recency in Q."},
		{"coherence", &w.Coherence, "Weight of coherence in Q: whether the window is a conversation."},
		{"directive", &w.Directive, "Importance of a wish that goes for every answer (\"always\", \"never\", \"from now on\")."},
		{"goal", &w.Goal, "Importance of a goal or a deadline."},
		{"number", &w.Number, "Importance of a number."},
		{"url", &w.URL, "Importance of a link."},
		{"code", &w.Code, "Importance of code in the statement: a name, a path, a command."},
		{"entity", &w.Entity, "Importance of a name: a capital inside the sentence."},
		{"userMarked", &w.UserMarked, "Importance of what users say of themselves, and of what they ask to remember."},
		{"answered", &w.Answered, "Coherence of a question with its answer."},
		{"several", &w.Several, "Coherence of several messages."},
		{"long", &w.Long, "Coherence of a window that is longer than a greeting."},
	}
}

// Shares lists the constants of Q that are shares of one, with the key that each is set under and what it means.
func (w *QualityWeights) Shares(yield func(key string, value *float64, doc string)) {
	for _, s := range w.list() {
		yield(s.key, s.value, s.doc)
	}
}
