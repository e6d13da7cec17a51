package proxy

import (
	"slices"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/ledger"
	"github.com/remora-proxy/remora/text"
)

// reading is a parsed request, and reads what a person typed in it.
type reading struct {
	req    *dialect.Request
	client *identity.Profile // who sent it
	newest string            // what a person typed in the newest turn; set by readNewest
	spent  int               // bytes of texts that were read, see maxRead
}

// maxRead limits how much of a request's texts is read for what a person typed,
// apart from its newest turn, in bytes. It is hundreds of messages of a tool
// loop; what a harness adds to results is short. A body may consist of nothing
// but such texts, and nothing else bounds the time of reading them. Each text
// costs textCost in addition.
const (
	maxRead  = 1 << 20
	textCost = 64
)

// release gives the request's memory back.
func (r *reading) release() {
	r.req.Release()
	r.req, r.newest = nil, ""
}

// readNewest reads what a person typed in the newest turn.
func (r *reading) readNewest() {
	if r.req.Turn >= 0 {
		r.newest = r.client.Human(r.req.Texts(r.req.Turn))
	}
}

// typedIn returns what a person typed in message i. ok is false if too much has
// been read already.
func (r *reading) typedIn(i int) (words string, ok bool) {
	texts, ok := r.textsIn(i)
	if !ok {
		return "", false
	}
	return r.client.Human(texts), true
}

func (r *reading) textsIn(i int) (texts []string, ok bool) {
	if r.spent >= maxRead {
		return nil, false
	}
	texts = r.req.Texts(i)
	r.spent += textCost
	for _, t := range texts {
		r.spent += len(t) + textCost
	}
	return texts, true
}

// isTyped reports whether a person typed any of message i. A message that can't
// be read any more counts as a person's.
func (r *reading) isTyped(i int) bool {
	texts, ok := r.textsIn(i)
	return !ok || r.client.Typed(texts)
}

// demoteResults separates turns from tool results. Messages that can't be read
// any more stay turns, so that what was inserted at them is found again; as
// they are the oldest, nothing new is inserted there.
//
// Agents whose models don't call tools natively write calls and results as text.
func (r *reading) demoteResults() error {
	err := r.req.Demote(func(i int) bool {
		words, ok := r.typedIn(i)
		return words != "" || !ok
	})
	if err != nil {
		return err
	}
	return r.req.DemoteTexts(func(i int) bool {
		result, ok := r.textsIn(i)
		if !ok || !text.IsCallResult(strings.Join(result, "\n")) {
			return false
		}
		call, ok := r.textsIn(i - 1)
		return ok && text.CallsInText(strings.Join(call, "\n"))
	})
}

// words returns what a person typed in the newest user message that holds any
// such text, and that message's index. Behind it there may be messages of the
// harness alone. It returns "" and -1 if there is none.
func (r *reading) words() (words string, at int) {
	if r.newest != "" {
		return r.newest, r.req.Turn
	}
	for i := r.req.Turn - 1; i >= 0 && r.req.Messages[i].Role == dialect.RoleUser; i-- {
		if words, _ := r.typedIn(i); words != "" {
			return words, i
		}
	}
	return "", -1
}

// began returns the first turn of the conversation, and whether an answer of
// the assistant follows it before the newest turn. The setup that a harness
// sends first, and the reply that comes with it, don't count: they are alike in
// all conversations of a client.
func (r *reading) began() (first int, history bool) {
	first = r.req.Turn
	for i, m := range r.req.Messages[:r.req.Turn] {
		switch {
		case m.Role == dialect.RoleUser && first == r.req.Turn:
			if r.isTyped(i) {
				first = i
			}
		case m.Role == dialect.RoleAssistant && i > first:
			return first, true
		}
	}
	return first, false
}

// Limits on the earlier, unanswered messages that are stored with a turn. The
// newest are kept; one that does not fit whole is left out with all before it.
const (
	maxUnanswered      = 4
	maxUnansweredBytes = 8 << 10
)

// earlierWords collects what a person said before, newest first.
type earlierWords struct {
	words []string
	bytes int
}

// add adds words that were said before all others. It reports whether they fit.
func (e *earlierWords) add(words string) bool {
	if e.bytes += len(words); len(e.words) == maxUnanswered || e.bytes > maxUnansweredBytes {
		return false
	}
	e.words = append(e.words, words)
	return true
}

// oldestFirst returns the words; e must not be used after it.
func (e *earlierWords) oldestFirst() []string {
	slices.Reverse(e.words)
	return e.words
}

// unanswered returns, oldest first, what a person said before message at that
// nothing has answered: only calls, their results and text next to calls are
// between it and at. That happens when somebody steers a tool loop, interrupts
// an answer or sends several messages in a row; otherwise the first of them
// would be in no turn.
//
// Clients that keep only user messages, or drop old answers, also send messages
// in a row, all of them answered. So of messages in a row those before the last
// count only behind an answer or a call, which shows that the client keeps
// them.
func (r *reading) unanswered(at int, w *ledger.Walk) []string {
	var e earlierWords
	calling := false // the next message belongs to an answer that calls
	loop := false    // such an answer, or results, follow before the person spoke again
	answered := -1   // where the first answer or call is; -1 = not determined yet
	for i := at - 1; i >= 0; i-- {
		switch m := r.req.Messages[i]; m.Role {
		case dialect.RoleTool:
			calling, loop = false, true
		case dialect.RoleAssistant:
			if calling = calling || m.Calls; !calling { // an answer, in whatever form
				return e.oldestFirst()
			}
			loop = true
		case dialect.RoleUser:
			calling = false
			words, ok := r.typedIn(i)
			if words == "" && ok {
				continue
			}
			if !loop && w.HasAnswer(i) { // which the client has dropped
				return e.oldestFirst()
			}
			if answered < 0 && !loop {
				answered = r.firstAnswer()
			}
			if !ok || !loop && i < answered || !e.add(words) {
				return e.oldestFirst()
			}
			loop = false
		}
	}
	if loop { // the upstream holds the turn that continues here
		for _, words := range slices.Backward(append(slices.Clip(w.Before), w.Said)) {
			if words == "" || !e.add(words) {
				break
			}
		}
	}
	return e.oldestFirst()
}

// firstAnswer returns the first message behind the first turn that is an
// answer, a call or a result, or the newest turn if there is none.
func (r *reading) firstAnswer() int {
	i, _ := r.began()
	for ; i < r.req.Turn; i++ {
		if role := r.req.Messages[i].Role; role == dialect.RoleAssistant || role == dialect.RoleTool {
			break
		}
	}
	return i
}

// narrated is the number of messages that are read for whether the assistant
// narrates.
const narrated = 6

// playsRole reports whether the system prompt sets up a role play, in which
// what the user says is fiction. A prompt that only resembles one counts if the
// assistant narrates.
func (r *reading) playsRole() bool {
	plays, may := identity.RolePlay(r.req.SystemPrefixes(identity.RolePlayReach))
	if plays || !may {
		return plays
	}
	for i := range min(r.req.Turn, narrated) {
		if r.req.Messages[i].Role == dialect.RoleAssistant && identity.Narrates(r.req.Text(i)) {
			return true
		}
	}
	return false
}

// joinWords returns one text of what was said before and what was said last.
func joinWords(before []string, last string) string {
	if len(before) == 0 {
		return last
	}
	return strings.Join(append(slices.Clip(before), last), "\n\n")
}
