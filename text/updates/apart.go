package updates

import (
	"strings"

	"github.com/remora-proxy/remora/text"
)

// What keeps two sentences apart although they have terms in common.

var (
	// objectVerbs end their object, and their subject only in the passive.
	objectVerbs = text.WordSet("sold fired sacked stopped replaced ditched cancelled canceled")
	passives    = text.WordSet("was were is are been be get got getting being")
	// contracts are what somebody ends together with what they are for.
	contracts = text.WordSet("membership memberships subscription subscriptions contract account abo job class classes lesson lessons")
	goals     = text.WordSet(`goal goals target targets limit limits budget budgets max maximum quota cap ziel ziele limite obergrenze maximal objectif objectifs plafond
		objetivo objetivos meta metas presupuesto tope obiettivo obiettivi orcamento doel doelen цель лимит бюджет`)
	goalRuns = []string{"目标", "目標", "预算", "預算", "予算", "上限", "목표", "예산"}
)

// endsTerm reports whether the word of end at token i may end a term that both
// have, and not only a part of it or what belongs to it: "sold my bike helmet".
func (p *pair) endsTerm(i int, t *term) bool {
	s := p.n
	if s.tokens[i].Kind == text.CharacterToken {
		return true
	}
	w := s.folded(i)
	if t.token < i && objectVerbs[w] && !(i > p.sn.tokens.from && (passives[s.folded(i-1)] || subjects[s.folded(i-1)])) {
		return false
	}
	if t.token > i && w == "stopped" && t.at {
		return false
	}
	if k := t.token + 1; k < p.sn.tokens.to && k != i && s.language == text.English {
		switch next := &s.tokens[k]; {
		case next.Kind != text.WordToken || len(next.Terms) == 0 || next.Cue != 0 || text.IsTimeStem(next.Terms[0]) || contracts[s.folded(k)]:
		case p.o.has(p.so, next.Terms[0]) != nil || t.name && s.isName(p.sn, k) || strings.HasSuffix(next.Terms[0], "ly"):
		default:
			return false
		}
	}
	return true
}

// atBetween reports whether a preposition is between two tokens: "the battery
// of my Volvo".
func (s *Statement) atBetween(a, b int) bool {
	for i := min(a, b) + 1; i < max(a, b); i++ {
		if s.tokens[i].Cue&text.CueAt != 0 {
			return true
		}
	}
	return false
}

// otherDoer reports whether one sentence is about what the speaker does and the
// other about what somebody else does: "Tom plays", "I play".
func (p *pair) otherDoer() bool {
	return p.n.opensWithSelf(p.sn) && p.o.actsElse(p.so, p.n, p.sn) || p.o.opensWithSelf(p.so) && p.n.actsElse(p.sn, p.o, p.so)
}

func (s *Statement) opensWithSelf(in *sentence) bool {
	for i := in.tokens.from; i < min(in.tokens.to, in.tokens.from+3); i++ {
		if before, _, _ := strings.Cut(s.folded(i), "'"); subjects[before] {
			return true
		}
	}
	return false
}

// actsElse reports whether a sentence begins with a name that the other one
// does not have, and a word that it has.
func (s *Statement) actsElse(in *sentence, other *Statement, of *sentence) bool {
	i := in.tokens.from
	if !s.isName(in, i) || len(s.tokens[i].Terms) == 0 || other.has(of, s.tokens[i].Terms[0]) != nil {
		return false
	}
	for i++; i < in.tokens.to && s.tokens[i].Cue&(text.CueChange|text.CueFresh) != 0; {
		i++
	}
	return i < in.tokens.to && len(s.tokens[i].Terms) > 0 && s.tokens[i].Kind == text.WordToken && other.has(of, s.tokens[i].Terms[0]) != nil
}

// setsGoal reports whether a sentence is about what should be reached or not be
// exceeded, not about what is.
func (s *Statement) setsGoal(in *sentence) bool {
	for i := in.tokens.from; i < in.tokens.to; i++ {
		if w := s.folded(i); s.tokens[i].Kind == text.WordToken && goals[w] && (w != "max" || s.raw(i) == w) {
			return true
		}
		if s.tokens[i].Kind == text.CharacterToken {
			for _, w := range goalRuns {
				if strings.HasPrefix(s.text[s.tokens[i].From:], w) {
					return true
				}
			}
		}
	}
	return false
}
