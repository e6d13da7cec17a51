package recall

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// A blob is an index as bytes, in parts: the first describes everything; the second is the postings and the bytes of words and
// names, with room for the first turns that are added; each further one is chunks of the arena, as they are in memory, so that loading
// does not copy them. Every part is
//
//	magic      4 bytes
//	version    uint32: blobVersion
//	build      uint64, the same in all parts of one blob
//	part       uint32, its number
//
// and its content. Hashes, tables and counts of postings are in it: to make them anew takes a look at every record and posting. What
// follows from the rest (links, sums) is not. Whatever is wrong with a blob, from a lost part to another version, is errBlob: the
// index is then built from the records.
//
// That what a blob holds can be searched without a fault is checked before it is written (verify), all of it. To read one looks at
// samples: that it is the blob which was written is the store's to know, whose seals tell of any bit that has changed.

// blobVersion changes with the form of blobs and of records, and with what analysis makes of a text: an index of an older
// build would not match its queries. A test holds it against the analysis of a fixture.
const blobVersion = 8

const (
	blobMagic  = "RRIX"
	partHeader = 20
	maxPart    = 8 << 20 // of chunks in a part, in bytes; but for one that is larger
)

var errBlob = errors.New("index snapshot damaged or of another version")

// capture is a copy of an index that stands still while the index goes on. It shares what is only ever appended to, so
// it takes a moment; it can be read like an index, not searched nor changed.
func (ix *index) capture() *index {
	c := ix.recordsOnly()
	c.posts = slices.Clone(ix.posts)
	c.speakers = maps.Clone(ix.speakers)
	for _, t := range []*table{&c.byTurn, &c.byID, &c.terms.at, &c.convs.names.at} {
		t.slots = slices.Clone(t.slots)
	}
	return c
}

// records is a capture of which only the records can be read, by the numbers of turns and memories, and its size be told: enough to
// make an index anew of it. Its lists and tables are the index's.
func (ix *index) recordsOnly() *index {
	c := *ix
	c.turns = slices.Clone(ix.turns)
	c.convs.list = slices.Clone(ix.convs.list)
	c.arena.chunks = slices.Clone(ix.arena.chunks)
	c.wide = slices.Clone(ix.wide)
	c.speakers, c.names, c.shapeOf, c.work = nil, nil, nil, nil
	return &c
}

// encode returns the parts of a blob. The index has no removed turns.
func (ix *index) encode(t *tally, build uint64) [][]byte {
	p := packer{b: make([]byte, partHeader, partHeader+64*len(ix.turns)+4*len(ix.mems))}
	kept := packer{b: make([]byte, partHeader, partHeader+roomy(int(ix.postBytes))+len(ix.terms.bytes)+len(ix.convs.names.bytes))}
	p.uint(uint64(t.digest.Memories))
	p.b = binary.LittleEndian.AppendUint64(p.b, t.digest.Sum)
	p.uint(uint64(len(t.ghosts)))
	for id, print := range t.ghosts {
		p.b = binary.LittleEndian.AppendUint64(p.b, id)
		p.b = binary.LittleEndian.AppendUint64(p.b, print)
	}
	p.b = binary.LittleEndian.AppendUint64(p.b, ix.seed)
	p.names(&ix.terms, &kept)
	for i := range ix.posts {
		l := &ix.posts[i]
		for _, v := range [...]uint32{uint32(len(l.buf)), l.df, l.last} {
			p.b = binary.LittleEndian.AppendUint32(p.b, v)
		}
		kept.b = append(kept.b, l.buf...)
		kept.b = append(kept.b, make([]byte, roomy(len(l.buf))-len(l.buf))...)
	}
	some := slices.ContainsFunc(ix.posts, func(l postings) bool { return l.facts > 0 })
	if p.b = append(p.b, 0); some {
		p.b[len(p.b)-1] = 1
		for i := range ix.posts {
			p.uint(uint64(ix.posts[i].facts))
		}
	}
	p.names(&ix.convs.names, &kept)
	for i := range ix.convs.list {
		p.b = binary.LittleEndian.AppendUint32(p.b, ix.convs.list[i].project)
	}
	speakers := make([]string, len(ix.speakers))
	for name, n := range ix.speakers {
		speakers[n-1] = name
	}
	p.strings(speakers)
	p.uint(uint64(len(ix.shapes)))
	for i := range ix.shapes {
		p.shape(&ix.shapes[i])
	}
	p.coder(ix.coder)
	for _, n := range ix.spoken {
		p.uint(uint64(n))
	}
	p.uint(uint64(len(ix.turns)))
	for i := range ix.turns {
		p.turn(&ix.turns[i])
	}
	last := place(0)
	for _, m := range ix.mems {
		p.uint(uint64(m.rec - last))
		last = m.rec
	}
	p.table(&ix.byTurn)
	p.table(&ix.byID)
	p.uint(uint64(len(ix.arena.chunks)))
	for _, c := range ix.arena.chunks {
		p.uint(uint64(len(c)))
	}
	parts := [][]byte{p.b, kept.b}
	rest := ix.arena.chunks
	lengths := make([]int, len(rest))
	for i, c := range rest {
		lengths[i] = len(c)
	}
	for _, n := range partsOf(lengths) {
		parts = append(parts, append(make([]byte, partHeader), bytes.Join(rest[:n], nil)...))
		rest = rest[n:]
	}
	for i, part := range parts {
		copy(part, blobMagic)
		binary.LittleEndian.PutUint32(part[4:], blobVersion)
		binary.LittleEndian.PutUint64(part[8:], build)
		binary.LittleEndian.PutUint32(part[16:], uint32(i))
	}
	return parts
}

// partsOf says how many chunks of these lengths, in bytes, stand in each of the parts behind the second.
func partsOf(lengths []int) (parts []int) {
	for len(lengths) > 0 {
		n, size := 1, lengths[0]
		for n < len(lengths) && size+lengths[n] <= maxPart {
			size += lengths[n]
			n++
		}
		parts = append(parts, n)
		lengths = lengths[n:]
	}
	return parts
}

// names writes strings, their bytes to kept.
func (p *packer) names(s *names, kept *packer) {
	p.uint(uint64(len(s.ends)))
	last := uint32(0)
	for _, end := range s.ends {
		p.uint(uint64(end - last))
		last = end
	}
	kept.b = append(kept.b, s.bytes[:last]...)
	p.table(&s.at)
}

func (p *packer) coder(c *coder) {
	if c == nil {
		p.uint(0)
		return
	}
	p.uint(uint64(len(c.symbols)))
	for i, s := range c.symbols {
		p.b = append(p.b, c.lengths[i])
		p.b = binary.LittleEndian.AppendUint64(p.b, s)
	}
}

// What a turn and a list of postings take in a blob, in bytes: all of one size are read many times faster than as varints.
const (
	turnRow = 36
	postRow = 12
)

func (p *packer) turn(t *turn) {
	le := binary.LittleEndian
	p.b = le.AppendUint32(le.AppendUint64(p.b, uint64(t.time)), uint32(t.conv))
	for _, v := range [...]uint16{t.count, t.userLen, t.asstLen, t.speaker, t.lives} {
		p.b = le.AppendUint16(p.b, v)
	}
	p.b = append(p.b, byte(t.flags), byte(t.traits))
	p.b = le.AppendUint32(le.AppendUint64(p.b, t.key), t.chain)
}
