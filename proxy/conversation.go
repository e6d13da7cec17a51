package proxy

import (
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// conversation is the id that the request names, else the one that the ledger knows its messages by. A request with
// history that nothing is known of is named by its first turn; one without begins a conversation. Where the ledger can't
// be asked, the first turn names it too, or a retry would be another turn.
func (x *exchange) conversation(named string, w walk, known bool) string {
	switch {
	case named != "":
		return named
	case w.conv != "":
		return w.conv
	}
	first, history := x.began()
	if history || !known {
		var text [len(chainPrefix) + chainTextLen]byte
		return string(appendChainText(append(text[:0], chainPrefix...), w.chain[first]))
	}
	return newPrefix + randomName()
}

// began is the first turn of the request's conversation, and whether an answer of the assistant's stands between it and the
// newest. What a harness says before, and the reply to it that comes with it, are alike in all conversations of a client.
func (x *exchange) began() (first int, history bool) {
	first = x.req.Turn
	for i, m := range x.req.Messages[:x.req.Turn] {
		switch {
		case m.Role == dialect.RoleUser && first == x.req.Turn:
			if x.typed(i) {
				first = i
			}
		case m.Role == dialect.RoleAssistant && i > first:
			return first, true
		}
	}
	return first, false
}

// The ids of conversations that no request has named begin with one of these: what is named by its first turn, and what has just begun.
const (
	chainPrefix = "chain:"
	newPrefix   = "new:"
)

func unnamed(conv string) bool {
	return strings.HasPrefix(conv, newPrefix) || strings.HasPrefix(conv, chainPrefix)
}

// chainTextIn is chainText, out of the conversation's id where that is named by h.
func chainTextIn(conv string, h chainHash) string {
	var text [chainTextLen]byte
	b := appendChainText(text[:0], h)
	if rest, ok := strings.CutPrefix(conv, chainPrefix); ok && rest == string(b) {
		return rest
	}
	return string(b)
}
