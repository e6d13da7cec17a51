package page

import (
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/receipt"
)

// bar is a part of a score, as a bar.
type bar struct {
	Name, Term string
	Value      float64
	Factor     bool    // Value multiplies what the others add up to
	Share      float64 // of the largest addend, 0 to 1
}

// partNames are the parts of a score for people.
var partNames = map[string]string{
	recall.PartUser: "said by the user", recall.PartAssistant: "said in the answer",
	recall.PartBefore1: "in the turn before", recall.PartBefore2: "two turns before",
	recall.PartAfter1: "in the turn after", recall.PartAfter2: "two turns after", recall.PartAway3: "three turns away",
	recall.PartSession: "elsewhere in the conversation", recall.PartPhrase: "words that follow each other", recall.PartVector: "alike in meaning",
	recall.PartDate: "of the time that is asked about", recall.PartSpeaker: "by the person who is named", recall.PartProject: "of the same project",
	recall.PartFirstPerson: "about the user", recall.PartOpening: "opens its conversation", recall.PartWish: "a wish",
	recall.PartTimeAnswer: "says when", recall.PartNumberAnswer: "says how much", recall.PartNameAnswer: "says who",
	recall.PartConstraint: "a rule, shown whatever its words", recall.PartUpdate: "changes what the next one says",
}

// barsOf turns the parts of a score, of a search or of a receipt, into bars.
func barsOf(parts any) (out []bar) {
	switch parts := parts.(type) {
	case []api.Part:
		for _, p := range parts {
			out = append(out, barOf(p.Name, p.Term, p.Value))
		}
	case []receipt.Part:
		for _, p := range parts {
			out = append(out, barOf(p.Name, p.Term, p.Value))
		}
	}
	largest := 0.0
	for _, b := range out {
		if !b.Factor {
			largest = max(largest, b.Value)
		}
	}
	for i := range out {
		if !out[i].Factor && largest > 0 {
			out[i].Share = max(out[i].Value, 0) / largest
		}
	}
	return out
}

func barOf(name, term string, value float64) bar {
	b := bar{Name: partNames[name], Term: term, Value: value}
	if b.Name == "" {
		b.Name = name
	}
	b.Factor = term == "" && name != recall.PartVector && name != recall.PartConstraint && name != recall.PartUpdate
	return b
}

// blockLine is a line of an inserted block.
type blockLine struct {
	Text string
	ID   string // of its memory, "" = it belongs to the frame, or is not known
	Only bool   // the block next to it does not have it
}

// blockLines takes a block apart into its lines. spans may be nil.
func blockLines(text string, spans []fence.Span) (out []blockLine) {
	at := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		l := blockLine{Text: line}
		for _, s := range spans {
			if at < s.End && s.Start < at+len(line)+1 {
				l.ID = s.ID
				break
			}
		}
		out = append(out, l)
		at += len(line) + 1
	}
	return out
}

// tokensOf estimates the tokens of a text as receipts do.
func tokensOf(text string) int { return (len(text) + 3) / 4 }
