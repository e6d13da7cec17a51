// Package query reads what a person's message asks of memory. It turns a
// message into a Query: terms with weights, the kind of answer that is wanted,
// dates, and the areas whose constraints (allergies, tools that are always
// used) apply whatever the words.
//
// The package is pure: a Query is a plain value, made without an index, a clock
// or a store. Its word tables are embedded and read once (Load). The package
// recall parses the newest message of each request with it, and resolves the
// result against one user's index.
package query

import (
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/text"
)

// Query is what a message asks, as far as its text shows it.
type Query struct {
	Text      string // the message, its head and tail if it is long
	Lower     []byte // Text in lower case
	Terms     []Term
	Intent    Intent
	Language  text.Language // of its words, text.Unknown if they do not reveal it
	Dates     []text.Days
	Profile   Profile // it asks for what is known about the user
	SmallTalk bool    // it has no question and no number; whether its words are social depends on the index
	Command   bool    // a command of a few words
	Asks      bool
	AboutUser bool // it is about the person who asks
	Personal  Personal
	Courteous bool // a remark with a word of small talk
	Remark    bool // a few words that neither ask nor order: "that's so sweet of you"
}

// Term is a stem of the query.
type Term struct {
	Stem     string
	Role     Role
	Weight   float64
	Borrowed bool // from the message before
}

// Config says how messages are parsed.
type Config struct {
	// Light, Request and Proper are the weights of words that many questions
	// share, of words about the conversation, and of names.
	Light, Request, Proper float64
	// A message with fewer terms than BorrowTerms borrows those of the user's
	// message before, at the weight BorrowWeight.
	BorrowTerms  int
	BorrowWeight float64
}

const (
	// maxTerms limits the distinct terms of a query.
	maxTerms = 1024
	// edgeBytes is how much of the head and of the tail of a long message is
	// read.
	edgeBytes = 1000
)

// HumanWords returns the part of a message that a person typed: without
// recalled blocks, the wrapper elements of agents and clients, long fenced code
// and quoted files. It may be empty; then there is nothing to recall for and
// nothing to remember.
func HumanWords(message string) string { return text.HumanWords(fence.Strip(message)) }

// HeadAndTail returns the first and last bytes of a long message, where
// questions usually are, and short messages whole.
func HeadAndTail(message string) string {
	if len(message) <= 2*edgeBytes+1 {
		return message
	}
	return strings.ToValidUTF8(message[:edgeBytes]+"\n"+message[len(message)-edgeBytes:], "")
}

// Reset makes q an empty query that keeps its memory.
func (q *Query) Reset() {
	clear(q.Terms)
	*q = Query{Terms: q.Terms[:0], Lower: q.Lower[:0]}
}

// Parse reads message, the human's words of the newest message, into q, which
// is empty. previous returns the user's message before; it may be nil, and is
// called only if words are borrowed. usual is the language of messages that
// don't reveal their own. a is memory to reuse.
func (q *Query) Parse(analyzer *text.Analyzer, a *text.Analysis, message string, previous func() string, now time.Time, usual text.Language, c *Config) {
	message = HeadAndTail(message)
	whole := message
	message = cutLeadIn(message)
	analyzer.Analyze(message, usual, a)
	if !a.ASCII && text.IsSmallTalk(whole) {
		return
	}
	q.Text = message
	q.add(a, c, 1)
	if len(q.Terms) <= commandTerms || !a.ASCII {
		if q.Profile = profileOf(whole); q.Profile == 0 && len(message) < len(whole) {
			q.Profile = profileOf(message)
		}
	}
	if a.Traits&text.FirstPerson != 0 {
		q.Intent |= FirstPerson
	}
	q.SmallTalk = a.Traits&(text.HasQuestion|text.HasNumber) == 0
	q.Lower = appendLower(q.Lower[:0], message, a.ASCII)
	q.Intent |= ReadIntent(q.Lower)
	if len(message) < len(whole) { // "remind me where I park"
		q.Intent |= ReadIntent(appendLower(nil, whole, text.IsASCII(whole))) & WantsAssistant
	}
	if q.Language = a.Language; q.Language != text.English {
		q.Intent |= readForeignIntent(q.Lower)
	}
	q.Dates = a.Dates(q.Lower, now)
	q.Asks = a.Traits&text.HasQuestion != 0 || startsQuestion(q.Lower)
	q.AboutUser = a.Traits&text.FirstPerson != 0 || (a.Language > text.English || !a.ASCII) && AboutSpeaker(q.Lower)
	q.Personal = q.personalOf()
	if !a.ASCII {
		q.weighSpaceless()
	}
	q.Command = q.isCommand(a)
	q.Remark = q.isRemark(a)
	q.Courteous = q.Courteous && q.Remark
	if len(q.Terms) < c.BorrowTerms && previous != nil && c.BorrowWeight > 0 {
		if message := previous(); message != "" {
			analyzer.Analyze(HeadAndTail(HumanWords(message)), usual, a)
			own := len(q.Terms)
			q.add(a, c, c.BorrowWeight)
			for i := range q.Terms[own:] {
				q.Terms[own+i].Borrowed = true
			}
		}
	}
}

// add appends the terms that q does not have yet. How often a message repeats a
// term says nothing about what is sought.
func (q *Query) add(a *text.Analysis, c *Config, share float64) {
	var seen map[string]bool // once there are many
	for _, s := range a.Terms {
		if len(q.Terms) == maxTerms {
			return
		}
		if s == text.EndOfStatement || s == text.EndOfQuestion {
			continue
		}
		if len(q.Terms) < 32 {
			if q.Has(s) {
				continue
			}
		} else {
			if seen == nil {
				seen = make(map[string]bool, len(q.Terms)+len(a.Terms))
				for _, t := range q.Terms {
					seen[t.Stem] = true
				}
			}
			if seen[s] {
				continue
			}
			seen[s] = true
		}
		weight, role := share, RoleOf(s)
		switch {
		case role&OfRequest != 0:
			weight *= c.Request
		case role&IsLight != 0:
			weight *= c.Light
		case slices.Contains(a.Proper, s):
			weight *= c.Proper
			role |= IsProper
		}
		q.Terms = append(q.Terms, Term{Stem: s, Role: role, Weight: weight})
	}
}

// Has reports whether stem is a term of q.
func (q *Query) Has(stem string) bool {
	return slices.ContainsFunc(q.Terms, func(t Term) bool { return t.Stem == stem })
}

// OnlyFigures reports whether the query has nothing but small numbers: "what's
// 2+2?"
func (q *Query) OnlyFigures() bool {
	for _, t := range q.Terms {
		if len(t.Stem) > 2 || !IsDigit(t.Stem[0]) || !IsDigit(t.Stem[len(t.Stem)-1]) {
			return false
		}
	}
	return len(q.Terms) > 0
}

// maxShortQuestion is the maximum number of terms of a question that asks for
// advice without saying so: "what's for dinner?"
const maxShortQuestion = 3

// isUnspaced reports whether the message is likely in a script without spaces.
func (q *Query) isUnspaced() bool {
	return q.Language == text.Unknown && !text.IsASCII(string(q.Lower))
}

// atMost reports whether the message has at most n terms. In scripts without
// spaces, whose terms are characters and pairs, five times as many are allowed.
func (q *Query) atMost(n int) bool {
	return len(q.Terms) <= n || len(q.Terms) <= 5*n && q.isUnspaced()
}

// isRequest reports whether the message asks for advice or work, rather than
// for what was said or done, and rather than stating something.
func (q *Query) isRequest() bool {
	if q.Intent&WantsAdvice != 0 {
		return true
	}
	if q.Language <= text.English && !q.Asks && isStatement(q.Lower) {
		return false
	}
	if q.Command {
		return true
	}
	if q.Language <= text.English && asksAboutPast(q.Lower) {
		return false
	}
	if q.Asks {
		intent := q.Intent &^ FirstPerson
		if hasPrefix(q.Lower, "which ") { // "what", of a few
			intent &^= WantsName
		}
		return asksPermission(q.Lower) || intent == 0 && q.atMost(maxShortQuestion)
	}
	first, rest := cutWord(q.Lower)
	if len(first) == 0 {
		return false
	}
	if q.isUnspaced() {
		return true // the first word can't be found
	}
	if text.IsFunctionWord(string(first)) { // not an imperative
		second, rest := cutWord(rest)
		third, _ := cutWord(rest)
		return requestVerbs[string(second)] || requestVerbs[string(third)]
	}
	return true
}
