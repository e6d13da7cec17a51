package persist

import (
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist/distill"
	"github.com/remora-proxy/remora/storage"
)

// talkKey names a conversation.
type talkKey struct {
	scope        storage.Scope
	conversation string
}

// talk is what is held of a conversation: its newest messages, and when an audit is due.
type talk struct {
	talkKey
	window   []windowMessage // at most AuditConfig.WindowMessages, oldest first
	fresh    int             // of them, those that no audit has seen
	tokens   int             // of the fresh ones
	since    time.Time       // when the first fresh one was heard
	last     time.Time       // when the newest was
	now      bool            // asked to remember or forget, let go of, or recovered: don't wait
	asked    int             // number of the distiller's call that is under way for it, 0 = none
	replaced map[string]bool // turns that were replaced by other words of the user's since the last audit
	summary  *Summary        // nil until it was read or begun
	played   bool            // role play goes on behind what was audited
	bytes    int64           // of the window's texts

	summarised int64 // bytes of the summary
}

// Bounds of what is held of a message, in bytes.
const (
	maxHeldUser      = 8 << 10
	maxHeldAssistant = 2 << 10
	talkOverhead     = 1 << 10
	messageOverhead  = 256
)

// heardTurn is a stored turn on its way to its conversation.
type heardTurn struct {
	talkKey
	turn     string
	messages []windowMessage
	bytes    int64 // of its texts as episodes
	replaced bool
	reworded bool // replaced by other words of the user's, not by another reply alone
	again    bool // stored by an earlier run: its bytes are counted already
	due      bool // recovered by its mark
}

// hearing copies what an audit needs of a stored turn: its newest messages, at most most.
func hearing(t *Turn, most int) heardTurn {
	h := heardTurn{talkKey: talkKey{t.Scope, t.Conversation}, turn: t.ID}
	for i := range t.Messages {
		h.bytes += int64(len(t.Messages[i].Text))
	}
	for i := max(0, len(t.Messages)-most); i < len(t.Messages); i++ {
		m := &t.Messages[i]
		user := m.Role == storage.RoleUser
		bound := maxHeldAssistant
		if user {
			bound = maxHeldUser
		}
		h.messages = append(h.messages, windowMessage{
			turn: t.ID, chain: t.Chain, source: t.Source, model: t.Model, speaker: m.Speaker, user: user,
			text: head(m.Text, bound), at: m.Time.Std(), fresh: true,
		})
	}
	return h
}

// head returns a copy of at most n bytes, so that the rest can be let go of, and what s was cut out of: summaries and facts
// keep parts of it for long.
func head(s string, n int) string {
	if len(s) <= n {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(strings.Clone(s[:n]), "")
}

func (h *heardTurn) size() int64 {
	n := int64(heardOverhead)
	for i := range h.messages {
		n += messageOverhead + int64(len(h.messages[i].text))
	}
	return n
}

// tokensOf estimates the tokens of a text.
func tokensOf(s string) int { return (len(s) + 3) / 4 }

// hear takes in a turn. The caller sees to it that there is room: see full.
func (t *talk) hear(h *heardTurn, now time.Time, most int) {
	known := false
	kept := t.window[:0]
	for _, m := range t.window {
		if m.turn != h.turn {
			kept = append(kept, m)
			continue
		}
		known = true
		t.bytes -= int64(len(m.text))
		if m.fresh {
			t.fresh--
			t.tokens -= tokensOf(m.text)
		} else if !h.replaced { // a repetition: nothing to see
			for i := range h.messages {
				h.messages[i].fresh = false
			}
		}
	}
	t.window = kept
	if h.reworded {
		if t.replaced == nil {
			t.replaced = map[string]bool{}
		}
		t.replaced[h.turn] = true
	}
	for _, m := range h.messages {
		t.window = append(t.window, m)
		t.bytes += int64(len(m.text))
		if m.fresh {
			if t.fresh == 0 {
				t.since = now
			}
			t.fresh++
			t.tokens += tokensOf(m.text)
		}
	}
	t.now = t.now || h.due || !known && asks(h.messages)
	t.last = now
	t.trim(most)
}

// trim drops the oldest messages beyond the window.
func (t *talk) trim(most int) {
	for len(t.window) > most {
		m := t.window[0]
		t.bytes -= int64(len(m.text))
		if m.fresh {
			t.fresh--
			t.tokens -= tokensOf(m.text)
		}
		t.window = t.window[1:]
	}
}

// full says whether so many messages more would push out some that no audit has seen.
func (t *talk) full(more, most int) bool {
	return t.fresh > 0 && t.fresh+more > most
}

// dirty says whether there is anything to audit.
func (t *talk) dirty() bool { return t.fresh > 0 || len(t.replaced) > 0 }

// dueAt is when the next audit is due, zero for never.
func (t *talk) dueAt(c *AuditConfig) time.Time {
	switch {
	case !t.dirty() || t.asked != 0:
		return time.Time{}
	case t.now || t.fresh >= c.WindowMessages || t.fresh == 0:
		return t.last
	}
	at := t.since.Add(c.Interval)
	quiet := t.last.Add(c.Debounce)
	if t.fresh >= c.Messages || t.tokens >= c.Tokens || at.Before(quiet) {
		return quiet
	}
	return at
}

// audited notes that all of it was seen.
func (t *talk) audited() {
	for i := range t.window {
		t.window[i].fresh = false
	}
	t.fresh, t.tokens, t.now, t.replaced = 0, 0, false, nil
	if t.summary != nil {
		t.summarised = t.summary.size()
	}
}

// hold keeps what came since a call of the distiller out of the audit of its answer, for the model did not see it, and
// makes the proposals point to where their messages stand by now, or nowhere.
func (t *talk) hold(call int, proposals []distill.Proposal) {
	at := map[int]int{}
	for i := range t.window {
		switch m := &t.window[i]; {
		case m.shown == call:
			at[m.place] = i
		case m.fresh:
			m.fresh, m.held = false, true
			t.fresh--
			t.tokens -= tokensOf(m.text)
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

// release makes fresh again what hold kept out.
func (t *talk) release() {
	for i := range t.window {
		m := &t.window[i]
		if !m.held {
			continue
		}
		m.fresh, m.held = true, false
		if t.fresh == 0 {
			t.since = t.last
			t.now = asks(t.window[i:])
		}
		t.fresh++
		t.tokens += tokensOf(m.text)
	}
}

// size is what the conversation takes in memory, about.
func (t *talk) size() int64 {
	return t.bytes + t.summarised + talkOverhead + int64(len(t.conversation)) + int64(len(t.window))*messageOverhead
}

// asks says whether the user asks to remember or to forget something: that doesn't wait for an audit's time.
func asks(ms []windowMessage) bool {
	for i := range ms {
		if ms[i].user && mayAsk(ms[i].text) {
			for _, sp := range spansOf(ms[i].text, ms[i].at, 0) {
				if sp.forget != "" || sp.candidate != nil && sp.candidate.remembered {
					return true
				}
			}
		}
	}
	return false
}

// mayAsk is a cheap necessary condition: one of the verbs that remember and forget patterns hold.
func mayAsk(text string) bool {
	if !isASCII(text) {
		text = fold(text)
	}
	return mayAskBy.in(text)
}

var mayAskBy = newNeedles("rememb", "memori", "forget", "note", "mind", "record", "memory", "save", "store", "merk", "denk",
	"vergiss", "losche", "behalte", "notier", "souv", "rappel", "retien", "retenez", "oubli", "effac", "recuerd", "recordad", "anota",
	"apunta", "olvid", "cuenta", "delete", "remove", "erase", "drop", "borra")
