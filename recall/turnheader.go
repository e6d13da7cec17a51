package recall

import (
	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/text"
)

// brief is what the survey reads of a turn: it takes four bytes where the turn takes 48, so that those of thousands of turns
// stay in the processor's cache. From its lowest bits up: the lengths of the user's text and of the assistant's, coarsely, a
// byte each; the traits that are factors, and opens; what follows here; and the speaker's number, if it is below manySpeakers.
type brief uint32

const (
	briefDead  brief = 1 << (iota + 22)
	briefAlone       // it has no neighbours
	briefTalks       // it belongs to a conversation
	briefLong        // one of the lengths is not exact
)

const manySpeakers = 1<<6 - 1

const (
	factorTraits = text.FirstPerson | text.HasTime | text.HasNumber | text.HasName | text.HasPreference
	opens        = uint8(factorTraits) + 1 // the turn is the first of its conversation
	signs        = 2 * int(opens)          // how many values brief.signs has
)

func (b brief) user() uint8      { return uint8(b) }
func (b brief) assistant() uint8 { return uint8(b >> 8) }
func (b brief) signs() uint32    { return uint32(b>>16) % uint32(signs) }
func (b brief) speaker() uint16  { return uint16(b >> 26) }
func (b brief) alone() bool      { return b&briefAlone != 0 }

const exactLengths = 128

func coarse(n uint16) uint8 {
	if n < exactLengths {
		return uint8(n)
	}
	return uint8(min(exactLengths+(n-exactLengths)/16, 255))
}

func (t *turn) brief() brief {
	b := brief(coarse(t.userLen)) | brief(coarse(t.asstLen))<<8 | brief(t.traits&factorTraits)<<16
	set := func(bit brief, is bool) {
		if is {
			b |= bit
		}
	}
	set(brief(opens)<<16, t.opens())
	set(briefDead, t.flags&turnDead != 0)
	set(briefAlone, t.alone())
	set(briefTalks, t.conv >= 0)
	b |= brief(min(t.speaker, manySpeakers)) << 26
	set(briefLong, t.userLen >= exactLengths || t.asstLen >= exactLengths)
	return b
}

// inBrief reports whether a turn's brief tells all its factors: what the project, dates and one of very many speakers add is not
// in it.
func (q *resolvedQuery) inBrief() bool {
	return q.speaker < manySpeakers && q.project == 0 && len(q.Dates) == 0
}

// briefFactors are the factors of turns by what stands in their brief, where that tells all.
type briefFactors struct {
	speaker uint16 // of the query, 0 for none
	filled  bool   // by is there, for queries of this intent; the weights are always the same
	intent  query.Intent
	by      [2][signs]float64 // the second of what that speaker said
}

// inTurn are the bits of brief.signs in the order in which index.factors takes them, so that the products are the same to the bit.
var inTurn = [...]uint8{uint8(text.FirstPerson), opens, uint8(text.HasPreference), uint8(text.HasTime), uint8(text.HasNumber), uint8(text.HasName)}

func (b *briefFactors) fill(ix *index, q *resolvedQuery, w *Weights) {
	b.speaker = q.speaker
	if b.filled && b.intent == q.Intent { // mostly
		return
	}
	b.filled, b.intent = true, q.Intent
	b.by[0][0], b.by[1][0] = 1, w.Speaker
	var done [signs]uint8 // the signs whose factors are there
	n := 1
	for _, bit := range inTurn {
		t := turn{traits: text.Traits(bit) & factorTraits, conv: -1}
		if bit == opens {
			t.prev = -1
		}
		f := ranker{ix}.factors(&t, q, w, nil)
		for i, before := range done[:n] {
			done[n+i] = before | bit
			b.by[0][before|bit] = b.by[0][before] * f
			b.by[1][before|bit] = b.by[1][before] * f
		}
		n *= 2
	}
}

func (b *briefFactors) of(t brief) float64 {
	if b.speaker != 0 && t.speaker() == b.speaker {
		return b.by[1][t.signs()]
	}
	return b.by[0][t.signs()]
}

// rough is v times the factors.
func (b *briefFactors) rough(v float32, t brief) float32 {
	if b.speaker == 0 {
		return v * float32(b.by[0][t.signs()])
	}
	return float32(float64(v) * b.of(t))
}
