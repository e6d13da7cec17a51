package extract

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
)

// ErrTooLong is returned when a reading takes longer than its hard limit.
var ErrTooLong = errors.New("audit took too long")

// Options of one reading.
type Options struct {
	// RolePlay reports whether role play was going on before the new messages.
	RolePlay bool
	// Proposals, if not nil, are a model's and replace the sentences of the new
	// messages as candidates.
	Proposals []Proposal
	// Elapsed returns how long the audit has taken so far. After SoftLimit no
	// further message is read, after HardLimit the reading fails.
	Elapsed              func() time.Duration
	SoftLimit, HardLimit time.Duration
}

// Result is what a window holds.
type Result struct {
	Candidates []*Candidate // requested ones first, then constraints, then by score
	Forget     []ForgetRequest
	Rejected   map[string]int // sentences by the reason for which they are no candidates
	RolePlay   bool           // role play continues after the window
	CutShort   bool           // the soft limit passed
}

// reading is what one call of [Read] or [Summary.Add] has read.
type reading struct {
	window map[string]bool // content words of the whole window
	counts map[string]int  // of the new messages, then of the summary, too
	own    []ownText       // of the new messages
	texts  []Message       // the new messages
}

func newReading() *reading {
	return &reading{window: make(map[string]bool, 256), counts: make(map[string]int, 256)}
}

// Read returns the candidates of a window's new messages and brings the
// conversation's summary up to date, which relevance is measured by. It
// replaces the summary's lists and leaves the old ones as they were.
func Read(window []Message, s *Summary, o Options) (Result, error) {
	r := newReading()
	out := Result{Rejected: map[string]int{}, RolePlay: o.RolePlay}
	newest := time.Time{}
	for i := range window {
		m := &window[i]
		if m.Time.After(newest) {
			newest = m.Time
		}
		if m.New {
			r.take(m)
			continue
		}
		for w := range eachWord(ownWords(m.Text)) {
			if w.isContent() {
				r.window[w.folded] = true
			}
		}
	}
	r.summarise(s)
	if err := r.collect(window, o, &out); err != nil {
		return out, err
	}
	relevant := relevance(r.window, s.keywords())
	coherent := coherence(window)
	for i, c := range out.Candidates {
		c.Order = int64(i + 1)
		c.Score = Score{Relevance: relevanceOf(c, relevant), Coherence: coherent, Importance: importance(c), Recency: recency(newest.Sub(c.Time))}
		c.Score.sum()
		c.Constraint = constrains(c)
	}
	slices.SortStableFunc(out.Candidates, func(a, b *Candidate) int {
		return cmp.Or(falseLast(a.Requested, b.Requested), falseLast(a.Constraint, b.Constraint), cmp.Compare(b.Score.Total, a.Score.Total))
	})
	return out, nil
}

func falseLast(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// collect finds the candidates of the new messages, in the order in which they
// were said.
func (r *reading) collect(window []Message, o Options, out *Result) error {
	unread := r.own
	persons := mentions{about: map[string][]person{}}
	for i := range window {
		m := &window[i]
		if !m.New {
			if m.User {
				persons.read(m)
			}
			continue
		}
		own := unread[0]
		if unread = unread[1:]; !m.User {
			continue
		}
		if o.Elapsed != nil {
			switch took := o.Elapsed(); {
			case took > o.HardLimit:
				return ErrTooLong
			case took > o.SoftLimit:
				out.CutShort = true
				out.Rejected[RejectTime]++
				delete(persons.about, m.Speaker)
				continue
			}
		}
		playing := out.RolePlay
		out.RolePlay = rolePlayAfter(own.text, playing)
		playing = playing || out.RolePlay || m.Fiction
		if o.Proposals == nil && !playing {
			if c := fragmentCorrection(window, i); c != nil {
				out.Candidates = append(out.Candidates, c)
			}
		}
		spans, about := spansIn(own, m.Time, i, persons.about[m.Speaker])
		persons.keep(m, own, about, spans, playing)
		for _, sp := range spans {
			switch {
			case sp.forget != "":
				out.Forget = append(out.Forget, forgetRequest(i, sp.forget))
			case sp.reject != "":
				out.Rejected[sp.reject]++
			case playing:
				out.Rejected[RejectFiction]++
			case o.Proposals == nil || sp.candidate.Requested:
				if sp.candidate.Answer {
					sp.candidate.Asked, sp.candidate.Answer = precedingQuestion(window, i)
				}
				out.Candidates = append(out.Candidates, sp.candidate)
			}
		}
	}
	for i := range o.Proposals {
		if c := proposed(&o.Proposals[i], window); c != nil {
			out.Candidates = append(out.Candidates, c)
		} else {
			out.Rejected[RejectRefused]++
		}
	}
	return nil
}

// forgetRequest keeps the content words of a request, but for those that ask.
func forgetRequest(message int, text string) ForgetRequest {
	content, _ := contentOf(words(text))
	content = slices.DeleteFunc(content, func(w string) bool {
		return w == "forget" || w == "vergis" || w == "oubli" || w == "olvida" || w == "memory"
	})
	return ForgetRequest{Message: message, Text: text, Content: content}
}

// proposed makes a candidate of a model's proposal. It returns nil if no new
// message of the user holds the quotation: the model made it up.
func proposed(p *Proposal, window []Message) *Candidate {
	if p.Message < 0 || p.Message >= len(window) || p.Quote == "" || p.Statement == "" {
		return nil
	}
	m := &window[p.Message]
	ws := words(p.Quote)
	own, _ := typedText(m.Text, ownWords(m.Text))
	if !m.New || !m.User || m.Fiction || len(ws) < 2 || instructs(p.Statement) || links(p.Statement) && !links(p.Quote) ||
		!HoldsWords(Normalize(own), normalised(ws)) || changesSenseOf(own, p.Quote) {
		return nil
	}
	if m := lexicon().marksAt(words(p.Statement), 0); m.has(markCommand) || m.has(markStanding) || m.has(markQuestion) {
		return nil // orders and questions are not in the third person
	}
	kind := markFact
	for k := range markCount {
		if markNames[k] == p.Kind && statementMarks&(1<<k) != 0 {
			kind = k
		}
	}
	return &Candidate{
		Quote: p.Quote, Statement: p.Statement, kind: kind, words: words(p.Statement), Time: m.Time, Message: p.Message,
		dates: datesIn(ws, m.Time), Suspicious: instructs(p.Quote),
	}
}

// take reads a new message and counts its content words.
func (r *reading) take(m *Message) {
	own := ownTextOf(m.Text)
	for w := range eachWord(own.text) {
		if w.isContent() {
			r.counts[w.folded]++
			r.window[w.folded] = true
		}
	}
	r.texts, r.own = append(r.texts, *m), append(r.own, own)
}

// Asks reports whether the user asks to remember or to forget something, which
// does not wait for the next audit.
func Asks(text string) bool {
	if !mayAsk(text) {
		return false
	}
	for _, sp := range spansOf(text, time.Time{}, 0) {
		if sp.forget != "" || sp.candidate != nil && sp.candidate.Requested {
			return true
		}
	}
	return false
}

// mayAsk is a cheap necessary condition: the text holds a verb of the remember
// and forget patterns.
func mayAsk(text string) bool {
	folded := fold(text)
	return mayAskBy.in(folded) || asking().in(folded)
}

var mayAskBy = needles{"forget", "vergiss", "losche", "oubli", "effac", "olvid", "borra", "delete", "remove", "erase", "drop"}

// Statements calls found for each candidate in a user's message, as an audit of
// that message alone would find it.
func Statements(text string, at time.Time, found func(*Candidate)) {
	for _, sp := range spansOf(text, at, 0) {
		if sp.candidate != nil {
			found(sp.candidate)
		}
	}
}

// Normalize returns the words of a text in lower case without accents, joined
// by single spaces, so that spelling and punctuation make no difference.
func Normalize(text string) string { return normalised(words(text)) }

// HoldsWords reports whether a normalized text holds the words of a normalized
// statement in a row.
func HoldsWords(text, statement string) bool {
	return strings.Contains(" "+text+" ", " "+statement+" ")
}

// Quotes reports whether most of a message is a text that its speaker hands
// over, or words of others.
func Quotes(message string) bool {
	own := ownWords(cutForwarded(message))
	typed, _ := typedText(message, own)
	return 2*len(typed) < len(own) && len(own)-len(typed) >= minQuoted
}

// minQuoted is the fewest bytes that count as a text: less is a title or a
// phrase.
const minQuoted = 40

// OwnWords returns a message without what its speaker did not say in their own
// words: code, quotations, files, logs and thoughts.
func OwnWords(text string) string { return ownWords(text) }

// Declined reports whether a message asks not to be kept.
func Declined(text string) bool { return mayDecline(strings.ToLower(text)) && declines(ownWords(text)) }
