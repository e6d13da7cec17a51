package proxy

import (
	"slices"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// What of earlier messages is kept with a turn, at most. The newest of them are; one that does not fit whole, and all that stand
// before it, are left out.
const (
	maxUnanswered      = 4
	maxUnansweredBytes = 8 << 10
)

// maxHeard bounds how much of a request's texts is read for what humans typed beside its newest turn, in bytes. It is
// hundreds of messages of a tool loop; what a harness adds to results is short. Clients may send a body that is nothing
// but such texts, and nothing bounds the time of reading them but this. Each text counts for some bytes more than it has.
const (
	maxHeard  = 1 << 20
	textHeard = 64
)

// hear is what a human typed in message i. read is false where too much was read before.
func (x *exchange) hear(i int) (words string, read bool) {
	texts, read := x.textsHeard(i)
	if !read {
		return "", false
	}
	return x.client.Human(texts), true
}

func (x *exchange) textsHeard(i int) (texts []string, read bool) {
	if x.heard >= maxHeard {
		return nil, false
	}
	texts = x.req.Texts(i)
	x.heard += textHeard
	for _, t := range texts {
		x.heard += len(t) + textHeard
	}
	return texts, true
}

// typed says whether a human typed any of message i. What nobody may read any more counts as a human's.
func (x *exchange) typed(i int) bool {
	texts, read := x.textsHeard(i)
	return !read || x.client.Typed(texts)
}

// demote tells turns from tool results. Messages that are too many to be read stay turns, which is how what was inserted
// at them is found again; as they are the oldest, nothing new is.
func (x *exchange) demote() error {
	return x.req.Demote(func(i int) bool {
		words, read := x.hear(i)
		return words != "" || !read
	})
}

// words returns what a human typed in the newest user message, and the message's index. A message of the harness's own after the human's
// does not count. It is empty where no human typed anything.
func (x *exchange) words() (human string, at int) {
	if x.said != "" {
		return x.said, x.req.Turn
	}
	for i := x.req.Turn - 1; i >= 0 && x.req.Messages[i].Role == dialect.RoleUser; i-- {
		if human, _ := x.hear(i); human != "" {
			return human, i
		}
	}
	return "", -1
}

// earlier is what a human said before, newest first.
type earlier struct {
	words []string
	bytes int
}

// takes adds words that were said before all others, if there is room.
func (e *earlier) takes(words string) bool {
	if e.bytes += len(words); len(e.words) == maxUnanswered || e.bytes > maxUnansweredBytes {
		return false
	}
	e.words = append(e.words, words)
	return true
}

// oldestFirst ends it.
func (e *earlier) oldestFirst() []string {
	slices.Reverse(e.words)
	return e.words
}

// unanswered is what a human said in messages before message at that nothing has answered yet, oldest first: between them and it stand
// calls, their results and texts beside calls, or nothing. So it is where someone steers a tool loop, interrupts an answer or sends one
// message after another; what was said first would be in no turn. Clients that keep nothing but user messages, or drop the answers to
// old ones, show messages in a row, too, all of them answered. So of messages in a row those before the last count only behind an
// answer or a call, which shows that this client keeps such.
func (x *exchange) unanswered(at int) []string {
	var e earlier
	calling := false // the message behind is of an answer that calls
	loop := false    // and such an answer, or results, stand between it and what the human said next
	shown := -1      // where the first answer or call stands, once that is asked for
	for i := at - 1; i >= 0; i-- {
		switch m := x.req.Messages[i]; m.Role {
		case dialect.RoleTool:
			calling, loop = false, true
		case dialect.RoleAssistant:
			if calling = calling || m.Calls; !calling { // an answer, in whatever form
				return e.oldestFirst()
			}
			loop = true
		case dialect.RoleUser:
			calling = false
			words, read := x.hear(i)
			if words == "" && read {
				continue
			}
			if !loop && x.splice.walk.HasAnswer(i) { // the client has dropped that
				return e.oldestFirst()
			}
			if shown < 0 && !loop {
				shown = x.shown()
			}
			if !read || !loop && i < shown || !e.takes(words) {
				return e.oldestFirst()
			}
			loop = false
		}
	}
	if loop { // the upstream holds what goes on here
		for _, words := range slices.Backward(append(slices.Clip(x.splice.walk.Before), x.splice.walk.Said)) {
			if words == "" || !e.takes(words) {
				break
			}
		}
	}
	return e.oldestFirst()
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

// shown is the first message behind a human's first that an answer or a call, or what it gave, is; that of the newest turn
// where there is none.
func (x *exchange) shown() int {
	i, _ := x.began()
	for ; i < x.req.Turn; i++ {
		if r := x.req.Messages[i].Role; r == dialect.RoleAssistant || r == dialect.RoleTool {
			break
		}
	}
	return i
}

// inOrder is one text of what was said before and of what was said last.
func inOrder(before []string, last string) string {
	if len(before) == 0 {
		return last
	}
	return strings.Join(append(slices.Clip(before), last), "\n\n")
}
