package recall

import "encoding/binary"

// postings lists the turns in which a term stands, in ascending order: for each the distance to the one before as a
// varint, then one byte with how often it stands there.
type postings struct {
	buf   []byte
	last  uint32 // turn number + 1 of the last entry
	facts uint32 // live turns that are facts
	df    uint32 // live turns; entries of removed ones stay in buf until the index is rebuilt
	wide  uint32 // its place in index.wide, counted from one; 0 = it has none
}

// frequency packs how often a term stands in a turn: in what the user tells (at most 7), in what the user asks (3), and
// in the assistant's text (7).
type frequency uint8

func newFrequency(tell, ask, assistant int) frequency {
	return frequency(min(tell, 7) | min(ask, 3)<<3 | min(assistant, 7)<<5)
}

const (
	userFrequency frequency = 1<<5 - 1
	assistantOnce frequency = 1 << 5
)

func (f frequency) tell() float32      { return float32(f & 7) }
func (f frequency) ask() float32       { return float32(f >> 3 & 3) }
func (f frequency) assistant() float32 { return float32(f >> 5) }
func (f frequency) all() float32       { return float32(f&7 + f>>3&3 + f>>5) }

func (p *postings) add(turn uint32, f frequency) {
	if d := turn + 1 - p.last; d < 0x80 { // as most
		p.buf = append(p.buf, byte(d), byte(f))
	} else {
		p.buf = append(binary.AppendUvarint(p.buf, uint64(d)), byte(f))
	}
	p.last = turn + 1
	p.df++
}

// A word that stands in a third of a large index's turns is also kept wide, a byte for each turn, so that a query that has its
// candidates need not read thousands of postings for some hundred of them.
const (
	wideFrom  = 1 << 10 // turns
	wideEvery = 3       // in so many turns it stands once, at least
	maxWide   = 32      // words, those that are known first
)

// widen looks for words to keep wide.
func (ix *index) widen() {
	n := len(ix.turns)
	if n < wideFrom {
		return
	}
	for i := 0; i < len(ix.posts) && len(ix.wide) < maxWide; i++ {
		p := &ix.posts[i]
		if p.wide != 0 || int(p.df) < n/wideEvery {
			continue
		}
		by := make([]frequency, p.last, n+n/16)
		for buf, now := p.buf, uint32(0); len(buf) > 0; {
			var f frequency
			buf, now, f = next(buf, now)
			by[now-1] = f
		}
		ix.wide = append(ix.wide, by)
		p.wide = uint32(len(ix.wide))
	}
}

// widened notes a posting of a word that is kept wide.
func (ix *index) widened(p *postings, turn int, f frequency) {
	by := &ix.wide[p.wide-1]
	*by = append(append(*by, make([]frequency, turn-len(*by))...), f)
}

// standing is the df for idf. Facts repeat what their turns say, and counting both would make words look commoner the
// more is known of them; so it is that of turns or of facts, whichever is more.
func (p *postings) standing() float64 { return float64(max(p.df-p.facts, p.facts)) }

// next decodes the entry at the start of buf, given the turn number + 1 of the one before.
func next(buf []byte, last uint32) (rest []byte, now uint32, f frequency) {
	if buf[0] < 0x80 { // most distances fit one byte
		return buf[2:], last + uint32(buf[0]), frequency(buf[1])
	}
	d, n := binary.Uvarint(buf)
	return buf[n+1:], last + uint32(d), frequency(buf[n])
}
