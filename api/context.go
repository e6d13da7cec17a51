package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// Conversation is what is kept of a conversation as a whole.
type Conversation struct {
	ID       string   `json:"id"`
	Messages int      `json:"messages"`
	Keywords []string `json:"keywords"`
	Summary  []string `json:"summary"` // sentences of it
	Last     string   `json:"last,omitempty"`
}

// Context is an aggregate of what is known of a user, for callers that build a
// prompt of their own.
type Context struct {
	Facts         []Memory       `json:"facts"`
	Conversations []Conversation `json:"conversations"`
	Known         map[string]int `json:"known"` // facts by kind: name, preference, decision, goal, fact
	Superseded    int            `json:"superseded"`
	Quarantined   int            `json:"quarantined"`
	Episodes      int            `json:"episodes"`
	Entries       []Entry        `json:"entries,omitempty"` // of the namespace that was asked for
	// Text is all of it in Markdown, at most MaxContext bytes.
	Text string `json:"text"`
}

// MaxContext bounds the text of a Context, in bytes.
const MaxContext = 32 << 10

// ContextRequest says how much is wanted; 0 = the default.
type ContextRequest struct {
	Facts         int    `json:"facts,omitempty"`         // 50, at most 500
	Conversations int    `json:"conversations,omitempty"` // 10, at most 100
	Namespace     string `json:"namespace,omitempty"`     // with its entries
}

// Context returns the aggregate of a user's memory.
func (s *questions) Context(ctx context.Context, p Principal, t Target, q ContextRequest) (Context, error) {
	if q.Facts < 0 || q.Facts > 500 {
		return Context{}, invalid("facts", "must be 1..500")
	}
	if q.Conversations < 0 || q.Conversations > 100 {
		return Context{}, invalid("conversations", "must be 1..100")
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return Context{}, err
	}
	o, err := s.Pipeline.Overview(ctx, scope, persist.OverviewLimits{Facts: q.Facts, Conversations: q.Conversations})
	if err != nil {
		return Context{}, err
	}
	out := Context{
		Facts: s.showAll(o.Facts), Conversations: []Conversation{}, Known: o.Known,
		Superseded: o.Superseded, Quarantined: o.Quarantined, Episodes: o.Episodes,
	}
	for i := range o.Conversations {
		out.Conversations = append(out.Conversations, s.conversation(&o.Conversations[i]))
	}
	if q.Namespace != "" {
		page, err := s.entries.Entries(ctx, p, t, q.Namespace, "", "", MaxPage)
		if err != nil {
			return Context{}, err
		}
		out.Entries = page.Entries
	}
	out.Text = out.markdown()
	return out, nil
}

func (s *questions) conversation(c *extract.Summary) Conversation {
	out := Conversation{ID: c.Conversation, Messages: c.Messages, Keywords: []string{}, Summary: []string{}, Last: stamp(storage.TimeOf(c.Updated))}
	for _, k := range c.Keywords[:min(len(c.Keywords), maxKeywords)] {
		out.Keywords = append(out.Keywords, k.Word)
	}
	for _, sentence := range c.Sentences {
		out.Summary = append(out.Summary, s.Redact(sentence))
	}
	return out
}

const maxKeywords = 12

func (c *Context) markdown() string {
	var b strings.Builder
	line := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); b.Len()+len(text) <= MaxContext {
			b.WriteString(text)
		}
	}
	if len(c.Facts) > 0 {
		line("## Known facts\n\n")
	}
	for i := range c.Facts {
		f := &c.Facts[i]
		line("- %s (%.10s)\n", strings.Join(strings.Fields(f.Text), " "), f.EventTime)
	}
	if len(c.Conversations) > 0 {
		line("\n## Recent conversations\n\n")
	}
	for i := range c.Conversations {
		v := &c.Conversations[i]
		line("- %s\n", strings.Join(append(slices.Clone(v.Summary), "("+strings.Join(v.Keywords, ", ")+")"), " "))
	}
	if len(c.Entries) > 0 {
		line("\n## Entries\n\n")
	}
	for i := range c.Entries {
		line("- %s: %s\n", c.Entries[i].Key, c.Entries[i].Value)
	}
	return b.String()
}
