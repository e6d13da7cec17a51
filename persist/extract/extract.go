// Package extract reads statements worth remembering out of what users say, and
// judges text that may be recalled.
//
// [Read] takes the window of a conversation and returns candidates: sentences,
// or clauses of them, in which users state something about themselves or their
// work, each with a score. It also finds what users ask to have forgotten.
// [ParseStatement] gives the form in which two statements are compared, [Trust]
// finds text that is shaped like an instruction to a model, and [Summary] keeps
// what a conversation is about.
//
// Everything here is pure: no store, no network, and no clock but the one
// passed in. The same text gives the same result in every process, so
// identifiers may be derived from it. Word lists and patterns (lexicon.txt,
// orders.txt, ideographs.txt) are parsed on first use and never change, so all
// functions are safe for concurrent use.
//
// A pathological text costs no more than linear time: spans, quotations,
// elements and encoded runs are bounded, and what is beyond a bound is not
// read.
//
// Package persist calls it for every turn and audit, package facts for
// comparing.
package extract

import (
	"cmp"
	"strings"
	"time"
)

// Message is one message of a conversation's window.
type Message struct {
	User    bool // false: the assistant's
	Speaker string
	Text    string
	Time    time.Time
	New     bool // no audit has read it; candidates come from new messages only
	Fiction bool // said in a role play
}

// MaxAssistantText is the number of bytes that a window keeps of an assistant's
// message. A message of that length may have been cut, so its last sentences
// are unknown.
const MaxAssistantText = 2 << 10

// Candidate is a statement that may be worth keeping, in its speaker's own
// words.
type Candidate struct {
	Quote      string // the words
	Statement  string // a model's paraphrase; "" = the quotation is the statement
	Message    int    // index of its message in the window
	Time       time.Time
	Order      int64 // position among all statements of the window, from 1
	Requested  bool  // the user asked to remember it
	Constraint bool  // about health: answers must respect it
	Suspicious bool  // shaped like an instruction to a model
	Score      Score
	Correction

	kind    mark
	passing bool   // of the moment, as far as its words tell
	named   string // the quotation with its pronoun replaced by whom it means, if it has one
	words   []word
	dates   []dated
}

// Kind names what sort of statement it is: name, preference, decision, goal or
// fact.
func (c *Candidate) Kind() string {
	switch c.kind {
	case markStanding:
		return "preference"
	case markMatter:
		return "fact"
	}
	return markNames[c.kind]
}

// Text returns the statement as it is stored: the quotation, with whom its first
// pronoun means in place of that and with the dates that it means, or a model's
// paraphrase.
func (c *Candidate) Text() string {
	if c.Statement != "" {
		return c.Statement
	}
	text := `"` + strings.ReplaceAll(cmp.Or(c.named, c.Quote), `"`, `'`) + `"`
	if len(c.dates) > 0 {
		notes := make([]string, len(c.dates))
		for i, d := range c.dates {
			notes[i] = strings.ReplaceAll(d.note(cmp.Or(c.named, c.Quote)), `"`, `'`)
		}
		text += " [" + strings.Join(notes, "; ") + "]"
	}
	return text
}

// Quotation undoes [Candidate.Text]: it returns the words of the statement and
// the dates noted with them. Without quotation marks the text is a paraphrase,
// and quoted is false.
func Quotation(text string) (quote, dates string, quoted bool) {
	if strings.HasPrefix(text, `"`) {
		if end := strings.LastIndexByte(text, '"'); end > 0 {
			return text[1:end], text[end+1:], true
		}
	}
	return text, "", false
}

// maxEntities bounds the names that a fact is tagged with.
const maxEntities = 8

// Entities returns the distinct names in the statement: words with a capital
// that do not begin it.
func (c *Candidate) Entities() (names []string) {
	seen := map[string]bool{}
	for i := range c.words {
		if w := &c.words[i]; properName(c.words, i) && len(names) < maxEntities && !seen[w.raw] {
			seen[w.raw] = true
			names = append(names, w.raw)
		}
	}
	return names
}

// properName reports whether ws[i] has a capital for another reason than
// beginning the text.
func properName(ws []word, i int) bool {
	return i > 0 && capital(ws[i].raw) && ws[i].folded != "i" && ws[i].raw != ws[i-1].raw
}

// ForgetRequest is a sentence in which the user asks to forget something.
type ForgetRequest struct {
	Message int
	Text    string
	Content []string // its content words
}

// Proposal is a statement that a model found in a window.
type Proposal struct {
	Message   int    // index of the message that it is from
	Quote     string // the words there that say it
	Statement string // the same, self-contained and in the third person
	Kind      string // "fact", "preference", "decision", "goal" or "name"
}

// Reasons for which a sentence is not saved, as audit records and metrics count
// them.
const (
	RejectQuestion     = "question"
	RejectCommand      = "command"
	RejectDeclined     = "declined" // the user does not want it kept
	RejectFiction      = "fiction"  // role play, a story, a joke
	RejectQuoted       = "quoted"   // somebody else's words
	RejectTemplate     = "template" // came back word for word in other conversations
	RejectSmallTalk    = "smallTalk"
	RejectPassing      = "passing"          // true of a moment only
	RejectCode         = "code"             // code, logs, data
	RejectLong         = "long"             // longer than a statement is
	RejectUnclear      = "notSelfContained" // "it", "she": unclear without context
	RejectNothing      = "nothing"          // no fact, preference, decision, ... recognised
	RejectUnimportant  = "unimportant"      // importance 0
	RejectLow          = "belowThreshold"
	RejectSurplus      = "overPerAudit"
	RejectDuplicate    = "duplicate" // reinforces what is known
	RejectStale        = "stale"     // older than what is known on the same subject
	RejectForgotten    = "forgotten" // said before the user had it forgotten
	RejectPlaceholders = "redactedAll"
	RejectTime         = "time"    // the soft limit had passed
	RejectRefused      = "refused" // a proposal that the message does not bear out
)

// Reasons returns all reasons for which a sentence is not saved.
func Reasons() []string {
	return []string{
		RejectQuestion, RejectCommand, RejectDeclined, RejectFiction, RejectQuoted, RejectTemplate, RejectSmallTalk, RejectPassing, RejectCode, RejectLong, RejectUnclear,
		RejectNothing, RejectUnimportant, RejectLow, RejectSurplus, RejectDuplicate, RejectStale, RejectForgotten, RejectPlaceholders, RejectTime, RejectRefused,
	}
}
