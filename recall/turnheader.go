package recall

import (
	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/text"
)

// turnHeader is what candidate selection reads of a turn. It takes four bytes
// where the turn takes 48, so that the headers of thousands of turns stay in
// the processor's cache. From the lowest bit: the lengths of the user's and the
// assistant's text, one coarse byte each; the traits that are factors, and
// opens; the flags below; and the speaker's number, if it is below
// manySpeakers.
type turnHeader uint32

const (
	headerDead           turnHeader = 1 << (iota + 22)
	headerAlone                     // it has no neighbours
	headerInConversation            // it belongs to a conversation
	headerLong                      // one of the lengths is not exact
)

const manySpeakers = 1<<6 - 1

const (
	factorTraits = text.FirstPerson | text.HasTime | text.HasNumber | text.HasName | text.HasPreference
	opens        = uint8(factorTraits) + 1 // the turn is the first of its conversation
	signs        = 2 * int(opens)          // number of values of turnHeader.signs
)

func (b turnHeader) user() uint8      { return uint8(b) }
func (b turnHeader) assistant() uint8 { return uint8(b >> 8) }
func (b turnHeader) signs() uint32    { return uint32(b>>16) % uint32(signs) }
func (b turnHeader) speaker() uint16  { return uint16(b >> 26) }
func (b turnHeader) alone() bool      { return b&headerAlone != 0 }

const exactLengths = 128

func coarse(n uint16) uint8 {
	if n < exactLengths {
		return uint8(n)
	}
	return uint8(min(exactLengths+(n-exactLengths)/16, 255))
}

func (t *turn) turnHeader() turnHeader {
	b := turnHeader(coarse(t.userLen)) | turnHeader(coarse(t.asstLen))<<8 | turnHeader(t.traits&factorTraits)<<16
	set := func(bit turnHeader, is bool) {
		if is {
			b |= bit
		}
	}
	set(turnHeader(opens)<<16, t.opens())
	set(headerDead, t.flags&turnDead != 0)
	set(headerAlone, t.alone())
	set(headerInConversation, t.conv >= 0)
	b |= turnHeader(min(t.speaker, manySpeakers)) << 26
	set(headerLong, t.userLen >= exactLengths || t.asstLen >= exactLengths)
	return b
}

// inHeader reports whether a turn's header determines all its factors. The
// project, dates and the numbers of very many speakers are not in it.
func (q *resolvedQuery) inHeader() bool {
	return q.speaker < manySpeakers && q.project == 0 && len(q.Dates) == 0
}

// headerFactors holds the factors of turns by their header, if that determines
// them.
type headerFactors struct {
	speaker uint16 // of the query, 0 for none
	filled  bool   // by is valid for queries of this intent; the weights never change
	intent  query.Intent
	by      [2][signs]float64 // the second one for what that speaker said
}

// factorOrder lists the bits of turnHeader.signs in the order in which
// ranker.factors applies them, so that the products are equal to the bit.
var factorOrder = [...]uint8{uint8(text.FirstPerson), opens, uint8(text.HasPreference), uint8(text.HasTime), uint8(text.HasNumber), uint8(text.HasName)}

func (b *headerFactors) fill(ix *index, q *resolvedQuery, w *Weights) {
	b.speaker = q.speaker
	if b.filled && b.intent == q.Intent { // the usual case
		return
	}
	b.filled, b.intent = true, q.Intent
	b.by[0][0], b.by[1][0] = 1, w.Speaker
	var done [signs]uint8 // the signs whose factors are computed
	n := 1
	for _, bit := range factorOrder {
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

func (b *headerFactors) of(t turnHeader) float64 {
	if b.speaker != 0 && t.speaker() == b.speaker {
		return b.by[1][t.signs()]
	}
	return b.by[0][t.signs()]
}

// approximate returns v times the factors.
func (b *headerFactors) approximate(v float32, t turnHeader) float32 {
	if b.speaker == 0 {
		return v * float32(b.by[0][t.signs()])
	}
	return float32(float64(v) * b.of(t))
}
