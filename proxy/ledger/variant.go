package ledger

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// Injection is the way in which a turn was sent: in this conversation, with
// this block. A block without text means that nothing was inserted.
type Injection struct {
	Conversation string
	Placement    dialect.Placement
	Block        fence.Block
}

const maxVariants = 4

// variant is one of the ways in which a turn was sent.
type variant struct {
	Injection
	next        Hash // hash of the message that followed; zero = not seen yet
	created     time.Time
	used        time.Time
	observeOnly bool   // only its conversation counts: never replayed, never stored
	unfound     bool   // it was entered without a block, as nothing was found. Not stored
	unsaved     bool   // not yet handed to the writer: no request with it was accepted
	batch       *batch // of the journal, of the first save; nil = none
	late        bool   // the first save did not get into the journal
	accepted    bool   // an upstream has accepted a request with it
	ambiguous   bool   // the turn had other variants when it was written
	answer      answerMark
}

// same reports whether o is v, one of them as it was read back from the store.
func (v *variant) same(o *variant) bool {
	return v.Conversation == o.Conversation && storage.TimeOf(v.created) == storage.TimeOf(o.created)
}

// retry returns the variant of a request that was sent within window and is
// sent again in the conversation, or nil. A request that names a conversation
// and one that names none are not the same, unless the ledger has found that
// conversation for the latter.
func (e *entry) retry(named, conversation string, now time.Time, window time.Duration) *variant {
	if e == nil {
		return nil
	}
	for _, v := range slices.Backward(e.variants) {
		if now.Sub(v.created) <= window && (v.Conversation == conversation || named == "" && unnamed(v.Conversation)) {
			return v
		}
	}
	return nil
}

// conversation returns the conversation of this entry for a request that names
// none: that of its unnamed variants, or else of all. It returns "" if they are
// of several, in which case follow decides.
func (e *entry) conversation(now time.Time, ttl time.Duration) string {
	if e == nil {
		return ""
	}
	for _, all := range [...]bool{false, true} {
		found := ""
		for _, v := range e.variants {
			switch {
			case now.Sub(v.used) > ttl || v.Conversation == found || !all && !unnamed(v.Conversation):
			case found != "":
				return ""
			default:
				found = v.Conversation
			}
		}
		if found != "" {
			return found
		}
	}
	return ""
}

// lastBlock returns the variant with which a turn of this conversation was last
// sent, nil if it carried no block.
func (e *entry) lastBlock(conversation string) *variant {
	if e == nil {
		return nil
	}
	for _, v := range slices.Backward(e.variants) {
		if v.Conversation == conversation && !v.observeOnly && v.Block.Text != "" {
			return v
		}
	}
	return nil
}

// follow returns the variant of turn i that the message behind it followed, or
// nil. Variants of the conversation come first, then, for a request that names
// none, unnamed ones, then all. Among these it prefers one that this message
// has followed before, or one sent since that nothing has followed yet; else
// the newest, whose bytes were sent last. The message is then bound to it.
// Needs s.mu.
func (s *Entries) follow(h Hash, req *dialect.Request, i int, conversation, named string, now time.Time, peek bool) *variant {
	e := s.entries[h]
	if e == nil {
		return nil
	}
	next := req.Messages[i+1].Hash
	pick := func(eligible func(v *variant) bool) *variant {
		var exact, open, other *variant
		for _, v := range slices.Backward(e.variants) {
			if now.Sub(v.used) > s.ledger.cfg.TTL || !eligible(v) {
				continue
			}
			switch {
			case v.next == next && exact == nil:
				exact = v
			case v.next == Hash{}:
				if open == nil || v.rank(req, i) > open.rank(req, i) {
					open = v
				}
			case other == nil:
				other = v
			}
		}
		if exact != nil && (open == nil || !open.created.After(exact.used) || open.answer.matches(req, i) < 0 ||
			exact.answer.call != "" && exact.answer.matches(req, i) > 0) {
			return exact
		}
		if open != nil {
			return open
		}
		return other
	}
	var v *variant
	if conversation != "" {
		v = pick(func(v *variant) bool { return v.Conversation == conversation })
	}
	if v == nil && named == "" {
		v = pick(func(v *variant) bool { return unnamed(v.Conversation) })
	}
	if v == nil {
		v = pick(func(*variant) bool { return true })
	}
	if v != nil && v.next == (Hash{}) && !peek {
		v.next = next
		if !v.observeOnly {
			s.save(h)
		}
	}
	return v
}

// rank orders variants by how likely it is that what follows turn i of req
// continues v: an answer that matches is certain, and nobody can continue what
// no upstream has accepted.
func (v *variant) rank(req *dialect.Request, i int) (rank int) {
	match := v.answer.matches(req, i)
	switch {
	case match > 0:
		return 4
	case v.accepted:
		rank = 2
	}
	if match == 0 {
		rank++
	}
	return rank
}

// answerMark identifies the answer to a turn. It tells apart two conversations
// that begin alike.
type answerMark struct {
	call string // the id of the first tool call, "" = unknown
	text uint64 // a hash of the text, 0 = unknown
}

// markOf returns the mark of a reply and keeps nothing of it alive.
func markOf(r dialect.Reply) answerMark {
	if r.Call != "" {
		return answerMark{call: strings.Clone(r.Call)}
	}
	return answerMark{text: textMark(r.Text)}
}

// textMark returns 0 for no text. It ignores white space, since clients trim
// answers and separate their parts differently.
func textMark(text string) uint64 {
	if text = strings.Join(strings.Fields(text), ""); text == "" {
		return 0
	}
	return xxh3.HashString(text)
}

// maxAnswerDistance is the number of messages after a turn in which its answer
// is searched for: Responses has items of reasoning before it.
const maxAnswerDistance = 3

// matches returns 1 if the messages after turn i of req are that answer, -1 if
// they are another, and 0 if that is unknown. It reads a text, so it is for the
// few turns that were sent in several ways.
func (m answerMark) matches(req *dialect.Request, i int) int {
	found := false
	switch last := min(i+maxAnswerDistance, len(req.Messages)-1); {
	case m.call != "":
		found = bytes.Contains(req.Body[req.Messages[i+1].Start:req.Messages[last].End], []byte(m.call))
	case m.text != 0:
		found = textMark(req.Answer(i+1, last)) == m.text
	default:
		return 0
	}
	if found {
		return 1
	}
	return -1
}
