package recall

import (
	"slices"
	"time"
)

// codeAfter is how long a new index answers requests before its texts are
// coded, so that the request that waited for it comes first.
const codeAfter = 20 * time.Millisecond

// learnsAt returns how many bytes of text the index collects before its coder
// learns.
func (ix *index) learnsAt() int64 {
	switch {
	case ix.later:
		return maxPlain
	case ix.building:
		return learnLate
	}
	return learnFrom
}

// learnOfEnough learns if the index has not learnt yet and has enough text.
func (ix *index) learnOfEnough() {
	if ix.coder == nil && ix.plain >= learnFrom {
		ix.learn()
	}
}

// learn makes the coder from the texts of the index, and codes them.
func (ix *index) learn() { ix.take(codeRecords(&ix.arena, ix.mems)) }

// coded holds records whose texts are coded.
type coded struct {
	coder  *coder
	seen   *seenWords // of the coder
	arena  arena
	places []place // empty if a record is damaged; texts that are not coded stay readable
}

// codeRecords learns from the texts of records and codes them. It does not
// change what it is given.
func codeRecords(from *arena, mems []mem) *coded {
	type record struct{ head, text []byte }
	records := make([]record, len(mems))
	total, damaged := 0, false
	for i := range mems {
		head, text, ok := cutText(from.from(mems[i].rec))
		damaged = damaged || !ok // of a damaged snapshot, whose text has no known end
		records[i] = record{head, text}
		total += len(text)
	}
	var sample [][]byte // from all over the index, because topics change over time
	size := min(max(total/learnShare, learnFrom), maxLearn, total)
	for i, due := 0, 0; i < len(records); i++ {
		if due += size; due >= total {
			sample = append(sample, records[i].text)
			due -= total
		}
	}
	c := &coded{coder: learn(sample), seen: new(seenWords)}
	if damaged {
		return c
	}
	c.places = make([]place, len(records))
	var pack packer
	var work workspace
	work.seen = c.seen
	for i, r := range records {
		pack.b = append(pack.b[:0], r.head...)
		work.packText(&pack, c.coder, r.text)
		c.places[i] = c.arena.add(pack.b)
	}
	return c
}

// cutText splits a record that is not coded before its text.
func cutText(rec []byte) (head, text []byte, ok bool) {
	u := readHead(rec).rest
	skipToText(&u)
	head = rec[:len(rec)-len(u.b)]
	text = u.bytes(u.uint() >> 1)
	return head, text, !u.failed
}

// take replaces the records of the index by the coded ones, and codes what was
// added meanwhile. Captures keep the old arena.
func (ix *index) take(c *coded) {
	ix.coder, ix.later = c.coder, false
	if c.places == nil {
		return
	}
	work := ix.space()
	work.seen = c.seen
	old := ix.arena
	ix.arena, ix.mems = c.arena, slices.Clone(ix.mems)
	for i, p := range c.places {
		ix.mems[i].rec = p
	}
	for i := len(c.places); i < len(ix.mems); i++ {
		head, text, _ := cutText(old.from(ix.mems[i].rec)) // written by this process, so it is valid
		work.pack.b = append(work.pack.b[:0], head...)
		work.packText(&work.pack, ix.coder, text)
		ix.mems[i].rec = ix.arena.add(work.pack.b)
	}
}
