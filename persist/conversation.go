package persist

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

type conversationKey struct {
	scope        storage.Scope
	conversation string
}

// conversation holds the newest messages, and decides when an audit is due.
type conversation struct {
	conversationKey
	window       []windowMessage // at most AuditConfig.WindowMessages, oldest first
	unread       int             // new ones among them
	tokens       int             // of the new ones
	since        time.Time       // when the first new one came in
	last         time.Time       // when the newest came in
	urgent       bool            // asked to remember or forget something, or recovered: don't wait
	call         int             // number of the distiller's call under way for it; 0 = none
	replaced     map[string]bool // turns whose user's words were replaced since the last audit
	summary      *extract.Summary
	rolePlay     bool  // role play continues after what was audited
	bytes        int64 // of the window's texts
	summaryBytes int64
}

// Limits of held messages, and overheads, in bytes.
const (
	maxHeldUser          = 8 << 10
	maxHeldAssistant     = extract.MaxAssistantText
	conversationOverhead = 1 << 10
	messageOverhead      = 256
	turnOverhead         = 256
)

// windowMessage is a message with its origin.
type windowMessage struct {
	extract.Message
	turn, chain, source, model string

	call     int  // number of the last call of the distiller that was shown it
	position int  // where in the window it stood then
	excluded bool // kept out of the audit of that call's answer
}

func (m *windowMessage) origin(conversation string) facts.Origin {
	return facts.Origin{Conversation: conversation, Turn: m.turn, Chain: m.chain, Source: m.source, Model: m.model, Speaker: m.Speaker}
}

// auditTurn is a stored turn on its way to its conversation.
type auditTurn struct {
	conversationKey
	turn      string
	messages  []windowMessage
	bytes     int64 // of its texts as episodes
	replaced  bool
	reworded  bool // replaced by other words of the user's, not by another reply alone
	recovered bool // stored by an earlier run: its bytes are counted already
	private   bool // what is made of it is private, too
	due       bool // recovered because its audit was due
}

// newAuditTurn copies at most limit of the newest messages of a stored turn.
func newAuditTurn(t *Turn, limit int) auditTurn {
	out := auditTurn{conversationKey: conversationKey{t.Scope, t.Conversation}, turn: t.ID, private: t.Private}
	for i := range t.Messages {
		out.bytes += int64(len(t.Messages[i].Text))
	}
	for i := max(0, len(t.Messages)-limit); i < len(t.Messages); i++ {
		m := &t.Messages[i]
		user, room := m.Role == storage.RoleUser, maxHeldAssistant
		if user {
			room = maxHeldUser
		}
		out.messages = append(out.messages, windowMessage{
			Message: extract.Message{User: user, Speaker: m.Speaker, Text: head(m.Text, room), Time: m.Time.Std(), New: true, Fiction: t.RolePlay},
			turn:    t.ID, chain: t.Chain, source: t.Source, model: t.Model,
		})
	}
	return out
}

// turnsOf puts turns together from their passages, which come in order.
func turnsOf(key conversationKey, episodes []storage.Memory) []auditTurn {
	var out []auditTurn
	for i := range episodes {
		e := &episodes[i]
		if e.Trust == 0 || e.DeletedAt != 0 {
			continue
		}
		p := &e.Provenance
		if n := len(out); n == 0 || out[n-1].turn != p.Turn {
			out = append(out, auditTurn{conversationKey: key, turn: p.Turn, recovered: true, due: true})
		}
		t := &out[len(out)-1]
		user := p.Role == storage.RoleUser
		text, continues, _ := extract.Uncut(e.Text)
		if k := len(t.messages); continues && k > 0 && t.messages[k-1].User == user {
			t.messages[k-1].Text = head(t.messages[k-1].Text+" "+text, maxHeldUser)
			continue
		}
		t.messages = append(t.messages, windowMessage{
			Message: extract.Message{User: user, Speaker: p.Speaker, Text: text, Time: e.EventTime.Std(), New: true, Fiction: slices.Contains(e.Tags, storage.RolePlayTag)},
			turn:    p.Turn, chain: p.Chain, source: e.Source, model: p.Model,
		})
	}
	return out
}

// head returns a copy of at most n bytes, so s need not stay in memory.
func head(s string, n int) string {
	if len(s) <= n {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(strings.Clone(s[:n]), "")
}

func (t *auditTurn) size() int64 {
	n := int64(turnOverhead)
	for i := range t.messages {
		n += messageOverhead + int64(len(t.messages[i].Text))
	}
	return n
}

// asks reports whether the user asks to remember or forget something now.
func asks(ms []windowMessage) bool {
	return slices.ContainsFunc(ms, func(m windowMessage) bool { return m.User && extract.Asks(m.Text) })
}

// tokensOf estimates the tokens of a text.
func tokensOf(s string) int { return (len(s) + 3) / 4 }

// add takes in a turn and drops the oldest messages beyond limit. The caller
// checks overflows first.
func (c *conversation) add(t *auditTurn, now time.Time, limit int) {
	known := false
	kept := c.window[:0]
	for _, m := range c.window {
		if m.turn != t.turn {
			kept = append(kept, m)
			continue
		}
		known = true
		if !m.New && !t.replaced { // a repetition: nothing new
			for i := range t.messages {
				t.messages[i].New = false
			}
		}
		c.removed(&m)
	}
	c.window = kept
	if t.reworded {
		if c.replaced == nil {
			c.replaced = map[string]bool{}
		}
		c.replaced[t.turn] = true
	}
	for _, m := range t.messages {
		c.window = append(c.window, m)
		c.bytes += int64(len(m.Text))
		if m.New {
			c.markNew(&m, now)
		}
	}
	c.urgent = c.urgent || t.due || !known && asks(t.messages)
	c.last = now
	for len(c.window) > limit {
		c.removed(&c.window[0])
		c.window = c.window[1:]
	}
}

// removed counts a message that is removed from the window.
func (c *conversation) removed(m *windowMessage) {
	c.bytes -= int64(len(m.Text))
	if m.New {
		c.markRead(m)
	}
}

func (c *conversation) markNew(m *windowMessage, now time.Time) {
	if c.unread == 0 {
		c.since = now
	}
	c.unread++
	c.tokens += tokensOf(m.Text)
}

func (c *conversation) markRead(m *windowMessage) {
	c.unread--
	c.tokens -= tokensOf(m.Text)
}

// overflows reports whether n more messages would push out unread ones.
func (c *conversation) overflows(n, limit int) bool { return c.unread > 0 && c.unread+n > limit }

// dirty reports whether there is anything to audit.
func (c *conversation) dirty() bool { return c.unread > 0 || len(c.replaced) > 0 }

// dueAt returns when the next audit is due, zero for never.
func (c *conversation) dueAt(cfg *AuditConfig) time.Time {
	switch {
	case !c.dirty() || c.call != 0:
		return time.Time{}
	case c.urgent || c.unread >= cfg.WindowMessages || c.unread == 0:
		return c.last
	}
	at := c.since.Add(cfg.Interval)
	quiet := c.last.Add(cfg.Debounce)
	if c.unread >= cfg.Messages || c.tokens >= cfg.Tokens || at.Before(quiet) {
		return quiet
	}
	return at
}

// unreadTurns counts the turns with messages that no audit has read.
func (c *conversation) unreadTurns() int {
	if c.unread == 0 {
		return 0
	}
	n, last := 0, ""
	for i := range c.window {
		if m := &c.window[i]; m.New && (n == 0 || m.turn != last) {
			n, last = n+1, m.turn
		}
	}
	return n
}

// audited marks all messages as read.
func (c *conversation) audited() {
	for i := range c.window {
		c.window[i].New = false
	}
	c.unread, c.tokens, c.urgent, c.replaced = 0, 0, false, nil
	if c.summary != nil {
		c.summaryBytes = c.summary.Size()
	}
}

// forgetTurn removes a turn, or only its reply if the user's words stay.
func (c *conversation) forgetTurn(turn string, users bool) {
	c.window = slices.DeleteFunc(c.window, func(m windowMessage) bool {
		if m.turn != turn || m.User && !users {
			return false
		}
		c.removed(&m)
		return true
	})
	if users {
		c.call = 0 // its answer may quote them
	}
}

// excludeUnseen keeps messages that came in since a call of the distiller out
// of the audit of its answer. It makes the proposals point to where their
// messages are now, -1 if they are gone.
func (c *conversation) excludeUnseen(call int, proposals []extract.Proposal) {
	at := map[int]int{}
	for i := range c.window {
		switch m := &c.window[i]; {
		case m.call == call:
			at[m.position] = i
		case m.New:
			m.New, m.excluded = false, true
			c.markRead(m)
		}
	}
	for i := range proposals {
		if now, ok := at[proposals[i].Message]; ok {
			proposals[i].Message = now
		} else {
			proposals[i].Message = -1
		}
	}
}

// includeUnseen marks as new again what excludeUnseen kept out.
func (c *conversation) includeUnseen() {
	for i := range c.window {
		m := &c.window[i]
		if !m.excluded {
			continue
		}
		m.New, m.excluded = true, false
		if c.unread == 0 {
			c.urgent = asks(c.window[i:])
		}
		c.markNew(m, c.last)
	}
}

// messages returns the window without the origins.
func (c *conversation) messages() []extract.Message {
	out := make([]extract.Message, len(c.window))
	for i := range c.window {
		out[i] = c.window[i].Message
	}
	return out
}

// clone returns a copy that shares nothing that changes.
func (c *conversation) clone() *conversation {
	out := *c
	out.window, out.replaced = slices.Clone(c.window), maps.Clone(c.replaced)
	return &out
}

// size estimates what the conversation takes in memory.
func (c *conversation) size() int64 {
	return c.bytes + c.summaryBytes + conversationOverhead + int64(len(c.conversation)) + int64(len(c.window))*messageOverhead
}
