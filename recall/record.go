package recall

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/remora-proxy/remora/recall/textcode"
	"github.com/remora-proxy/remora/storage"
)

// A record is one passage in the arena:
//
//	terms<<1 | assistant   uvarint: how many terms there are
//	length                 uvarint: bytes that the terms take
//	signature              four bytes
//	terms                  uvarints: all of the user's in order, with marks;
//	                       each of the assistant's once, without marks
//	marks                  one byte: which of the optional fields follow
//	turn, chain            strings, unless the turn's first passage has the same
//	seq                    varint
//	id                     string, unless it follows from turn and seq
//	event                  varint, distance from the turn's time, unless it is 0
//	conversation           string, unless it is the turn's
//	created ... version    see packMemory, unless they have their usual values
//	entities, tags         lists, unless both are empty
//	shape                  uvarint: the number of a shape
//	text                   length<<1 | coded as uvarint, then bytes

const (
	markAsFirst = 1 << iota // turn and chain are those of the turn's first passage
	markID
	markEvent
	markConversation
	markTimes
	markLists
	markScores
)

// head is the start of a record.
type head struct {
	terms     int // in packed
	assistant bool
	signature signature
	packed    []byte   // the terms, as described above
	rest      unpacker // what follows the terms
}

func readHead(rec []byte) head {
	u := unpacker{b: rec}
	v, length := u.uint(), u.uint()
	h := head{terms: int(v >> 1), assistant: v&1 != 0}
	copy(h.signature[:], u.bytes(uint64(len(h.signature))))
	h.packed = u.bytes(length)
	h.rest = u
	return h
}

// nextTerm returns the term at i and the position of the next one. Most terms
// take one or two bytes. Records from disk are validated when they are loaded.
func nextTerm(b []byte, i int) (term uint32, next int) {
	c := b[i]
	if c < 0x80 {
		return uint32(c), i + 1
	}
	if d := b[i+1]; d < 0x80 {
		return uint32(c&0x7f) | uint32(d)<<7, i + 2
	}
	v, n := binary.Uvarint(b[i:])
	return uint32(v), i + n
}

// records holds the packed memories of an index.
type records struct {
	arena      arena
	coder      *textcode.Coder // nil until there is enough text to learn from
	mems       []mem
	shapes     []shape
	shapeOf    map[shape]uint32
	shapeBytes int64
}

// head returns the start of a passage's record.
func (ix *records) head(i int32) head { return readHead(ix.arena.from(ix.mems[i].rec)) }

// packPassage writes the record of a passage of turn t, whose first passage is
// first.
func (ix *index) packPassage(p *packer, t *turn, first, m *storage.Memory, terms []uint32, asst bool, sig signature) {
	v := uint64(len(terms)) << 1
	if asst {
		v |= 1
	}
	p.uint(v)
	length := 0
	for _, id := range terms {
		length += uvarintLen(uint64(id))
	}
	p.uint(uint64(length))
	b := append(p.b, sig[:]...)
	for _, id := range terms {
		switch {
		case id < 1<<7:
			b = append(b, byte(id))
		case id < 1<<14:
			b = append(b, byte(id)|0x80, byte(id>>7))
		default:
			b = binary.AppendUvarint(b, uint64(id))
		}
	}
	p.b = b
	ix.packMemory(p, t, first, m)
}

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// packMemory writes what a memory needs to be returned. Its scope is the
// index's, and its Redactions are not kept.
func (ix *index) packMemory(p *packer, t *turn, first, m *storage.Memory) {
	v := &m.Provenance
	mark := byte(0)
	set := func(b byte, is bool) {
		if is {
			mark |= b
		}
	}
	set(markAsFirst, m != first && v.Turn == first.Provenance.Turn && v.Chain == first.Provenance.Chain)
	set(markID, v.Turn == "" || m.ID != storage.TurnMemoryID(v.Turn, v.Seq))
	set(markEvent, m.EventTime != t.time)
	set(markConversation, m.Conversation != first.Conversation && !ix.convs.is(m.Conversation, t.conv))
	set(markTimes, m.CreatedAt != m.EventTime || m.UpdatedAt != m.EventTime || m.ValidFrom != m.EventTime || m.Version != 1)
	set(markLists, len(m.Entities)+len(m.Tags) > 0)
	set(markScores, m.Priority != 0 || m.Confidence != 0 || m.Trust != 1)
	p.b = append(p.b, mark)
	if mark&markAsFirst == 0 {
		p.string(v.Turn)
		p.string(v.Chain)
	}
	p.int(int64(v.Seq))
	if mark&markID != 0 {
		p.string(m.ID)
	}
	if mark&markEvent != 0 {
		p.int(int64(m.EventTime - t.time))
	}
	if mark&markConversation != 0 {
		p.string(m.Conversation)
	}
	if mark&markTimes != 0 { // mostly close to one another
		p.int(int64(m.CreatedAt - m.EventTime))
		p.int(int64(m.UpdatedAt - m.CreatedAt))
		p.int(int64(m.ValidFrom - m.EventTime))
		p.uint(m.Version)
	}
	if mark&markLists != 0 {
		p.strings(m.Entities)
		p.strings(m.Tags)
	}
	if mark&markScores != 0 {
		p.scores(m.Priority, m.Confidence, m.Trust)
	}
	ix.packShape(p, m)
	ix.space().packText(p, ix.coder, []byte(m.Text))
}

// scores writes three numbers that are mostly 0, 1 or 0.5.
func (p *packer) scores(v ...float64) {
	code := byte(0)
	for i, f := range v {
		switch f {
		case 0:
		case 1:
			code |= 1 << (2 * i)
		case 0.5:
			code |= 2 << (2 * i)
		default:
			code |= 3 << (2 * i)
		}
	}
	p.b = append(p.b, code)
	for i, f := range v {
		if code>>(2*i)&3 == 3 {
			p.float(f)
		}
	}
}

func (u *unpacker) scores(v ...*float64) {
	code := u.byte()
	for i, f := range v {
		if *f = [...]float64{0, 1, 0.5, 0}[code>>(2*i)&3]; code>>(2*i)&3 == 3 {
			*f = u.float()
		}
	}
}

// packText writes a text, coded if that makes it shorter.
func (w *workspace) packText(p *packer, c *textcode.Coder, text []byte) {
	if c != nil {
		w.coded = c.Encode(w.coded[:0], text)
		if len(w.coded) < len(text) {
			p.uint(uint64(len(w.coded))<<1 | 1)
			p.b = append(p.b, w.coded...)
			return
		}
	}
	p.uint(uint64(len(text)) << 1)
	p.b = append(p.b, text...)
}

// identity holds the fields of a record that identify its memory.
type identity struct {
	mark        byte
	turn, chain []byte // as packed
	turnHex     bool
	chainHex    bool
	seq         int
	id          []byte // if it does not follow from turn and seq
	idHex       bool
	event       storage.Time
}

// identity reads the marks and what follows them, up to the conversation.
func (ix *index) identity(u *unpacker, n int32) (d identity) {
	t := &ix.turns[n]
	d.mark = u.byte()
	from := u
	if d.mark&markAsFirst != 0 {
		first := ix.head(t.mem).rest
		first.byte()
		from = &first
	}
	d.turn, d.turnHex = from.raw()
	d.chain, d.chainHex = from.raw()
	d.seq = int(u.int())
	if d.mark&markID != 0 {
		d.id, d.idHex = u.raw()
	}
	d.event = t.time
	if d.mark&markEvent != 0 {
		d.event += storage.Time(u.int())
	}
	return d
}

// length returns an upper bound of the id's length in bytes.
func (d *identity) length() int {
	if d.mark&markID != 0 {
		return rawLength(d.id, d.idHex)
	}
	return rawLength(d.turn, d.turnHex) + len(strconv.Itoa(d.seq)) + 1
}

func rawLength(s []byte, isHex bool) int {
	if isHex {
		return 2 * len(s)
	}
	return len(s)
}

// appendID appends the memory's id to b.
func (d *identity) appendID(b []byte) []byte {
	if d.mark&markID != 0 {
		return appendRaw(b, d.id, d.idHex)
	}
	b = append(appendRaw(b, d.turn, d.turnHex), '.')
	return strconv.AppendInt(b, int64(d.seq), 10)
}

func appendRaw(b, s []byte, isHex bool) []byte {
	if isHex {
		return hex.AppendEncode(b, s)
	}
	return append(b, s...)
}

// appendID appends the id of memory i to b.
func (ix *index) appendID(b []byte, i int32) []byte {
	u := ix.head(i).rest
	d := ix.identity(&u, ix.mems[i].turn)
	return d.appendID(b)
}

// memory returns memory i. It allocates one string for everything that only
// this memory has.
func (ix *index) memory(i int32, scope storage.Scope) (m storage.Memory) {
	u := ix.head(i).rest
	b, own := ix.unpackMemory(&u, ix.mems[i].turn, scope, &m, nil)
	own.giveTo(&m, string(b))
	return m
}

// ownStrings locates the strings of a memory that are not shared in the bytes
// that unpackMemory appends to.
type ownStrings struct {
	conv, turn, id, chain, text span32
}

type span32 struct{ from, to int32 }

func (s span32) length() int { return int(s.to - s.from) }

func (s span32) of(all string) string { return all[s.from:s.to] }

// giveTo sets the strings of an unpacked memory.
func (o *ownStrings) giveTo(m *storage.Memory, all string) {
	if o.conv.to > o.conv.from {
		m.Conversation = o.conv.of(all)
	}
	m.Provenance.Turn, m.ID, m.Provenance.Chain, m.Text = o.turn.of(all), o.id.of(all), o.chain.of(all), o.text.of(all)
}

// unpackMemory reads a memory of turn n into m, which is zero. It appends
// strings that are not shared to b, and returns where they are.
func (ix *index) unpackMemory(u *unpacker, n int32, scope storage.Scope, m *storage.Memory, b []byte) (_ []byte, own ownStrings) {
	m.Scope, m.Version, m.Trust = scope, 1, 1
	v := &m.Provenance
	d := ix.identity(u, n)
	v.Seq, m.EventTime = d.seq, d.event
	at := func() int32 { return int32(len(b)) }
	own.conv.from = at()
	if d.mark&markConversation != 0 {
		m.Conversation = u.string()
	} else if c := ix.turns[n].conv; c >= 0 {
		name := ix.convs.names.raw(uint32(c))
		b = appendRaw(b, name[1:], name[0] == 1)
	}
	own.conv.to = at()
	own.turn.from, own.id.from = at(), at()
	b = appendRaw(b, d.turn, d.turnHex)
	own.turn.to = at()
	if d.mark&markID != 0 {
		own.id.from = at()
		b = appendRaw(b, d.id, d.idHex)
	} else {
		b = strconv.AppendInt(append(b, '.'), int64(d.seq), 10)
	}
	own.id.to = at()
	own.chain.from = at()
	b = appendRaw(b, d.chain, d.chainHex)
	own.chain.to = at()
	m.CreatedAt, m.UpdatedAt, m.ValidFrom = m.EventTime, m.EventTime, m.EventTime
	if d.mark&markTimes != 0 {
		m.CreatedAt += storage.Time(u.int())
		m.UpdatedAt = m.CreatedAt + storage.Time(u.int())
		m.ValidFrom += storage.Time(u.int())
		m.Version = u.uint()
	}
	if d.mark&markLists != 0 {
		m.Entities, m.Tags = u.strings(), u.strings()
	}
	if d.mark&markScores != 0 {
		u.scores(&m.Priority, &m.Confidence, &m.Trust)
	}
	s := ix.unpackShape(u)
	m.Kind, m.Source, v.Role, v.Speaker, v.Model = s.kind, s.source, s.role, s.speaker, s.model
	if s.dies {
		m.ExpiresAt = m.EventTime + s.life
	}
	own.text.from = at()
	b = ix.unpackText(u, b)
	own.text.to = at()
	return b, own
}

// unpackLine is unpackMemory for the fields of a line. It appends the text to b
// and the id to ids.
func (ix *index) unpackLine(u *unpacker, n int32, m *storage.Memory, b, ids []byte) (_, _ []byte, own ownStrings) {
	d := ix.identity(u, n)
	m.EventTime = d.event
	own.turn.from = int32(len(ids))
	ids = appendRaw(ids, d.turn, d.turnHex)
	own.turn.to = int32(len(ids))
	own.id.from = own.turn.from
	if d.mark&markID != 0 {
		own.id.from = own.turn.to
		ids = appendRaw(ids, d.id, d.idHex)
	} else {
		ids = strconv.AppendInt(append(ids, '.'), int64(d.seq), 10)
	}
	own.id.to = int32(len(ids))
	m.Tags = lineTags[u.skipDetails(d.mark)]
	s := ix.unpackShape(u)
	m.Kind, m.Provenance.Role, m.Provenance.Speaker = s.kind, s.role, s.speaker
	own.text.from = int32(len(b))
	b = ix.unpackText(u, b)
	own.text.to = int32(len(b))
	return b, ids, own
}

func (ix *records) unpackText(u *unpacker, b []byte) []byte {
	v := u.uint()
	text := u.bytes(v >> 1)
	if v&1 == 0 {
		return append(b, text...)
	}
	if ix.coder == nil {
		u.fail()
		return b
	}
	b, ok := ix.coder.Decode(b, text)
	if !ok {
		u.fail()
	}
	return b
}

// skipToText skips everything before the text.
func skipToText(u *unpacker) {
	mark := u.byte()
	if mark&markAsFirst == 0 {
		u.raw()
		u.raw()
	}
	u.uint()
	if mark&markID != 0 {
		u.raw()
	}
	if mark&markEvent != 0 {
		u.uint()
	}
	u.skipDetails(mark)
	if u.uint() == 0 {
		u.shape()
	}
}

// lineTags are the tags of a line, which nobody changes.
var lineTags = [...][]string{
	nil, 1: {storage.OutdatedTag}, 2: {storage.PrivateTag}, 3: {storage.OutdatedTag, storage.PrivateTag},
}

// skipDetails skips what is between the event and the shape. It returns the
// index in lineTags of the tags among it.
func (u *unpacker) skipDetails(mark byte) (tags int) {
	if mark&markConversation != 0 {
		u.raw()
	}
	if mark&markTimes != 0 {
		for range 4 {
			u.uint()
		}
	}
	if mark&markLists != 0 {
		u.skipStrings()
		for n := u.uint(); n > 0 && !u.failed; n-- {
			switch s, h := u.raw(); {
			case h:
			case string(s) == storage.OutdatedTag:
				tags |= 1
			case string(s) == storage.PrivateTag:
				tags |= 2
			}
		}
	}
	if mark&markScores != 0 {
		var a float64
		u.scores(&a, &a, &a)
	}
	return tags
}

// expires returns when memory i expires, 0 for never.
func (ix *index) expires(i int32) storage.Time {
	u := ix.head(i).rest
	d := ix.identity(&u, ix.mems[i].turn)
	u.skipDetails(d.mark)
	if s := ix.unpackShape(&u); s.dies {
		return d.event + s.life
	}
	return 0
}

// labels returns the kind and the tags of memory i.
func (ix *index) labels(i int32) (kind storage.Kind, tags []string) {
	u := ix.head(i).rest
	d := ix.identity(&u, ix.mems[i].turn)
	if d.mark&markConversation != 0 {
		u.raw()
	}
	if d.mark&markTimes != 0 {
		for range 4 {
			u.uint()
		}
	}
	if d.mark&markLists != 0 {
		u.skipStrings()
		tags = u.strings()
	}
	if d.mark&markScores != 0 {
		var a float64
		u.scores(&a, &a, &a)
	}
	return ix.unpackShape(&u).kind, tags
}

// arena stores the packed memories of an index in chunks, so that growing never
// copies them. It is append-only; an index that wastes too much is rebuilt.
type arena struct {
	chunks [][]byte
	size   int64
}

const (
	minChunk = 4 << 10
	maxChunk = 1 << chunkBits
	// The low chunkBits of a place are the offset in its chunk, and the others
	// the chunk's number.
	chunkBits = 20
	maxChunks = 1 << (32 - chunkBits)
)

// place is the position of a record. A record larger than a chunk gets a chunk
// of its own.
type place uint32

func (a *arena) add(rec []byte) place {
	n := len(a.chunks)
	if n == 0 || cap(a.chunks[n-1])-len(a.chunks[n-1]) < len(rec) {
		size := max(min(minChunk<<min(n, 8), maxChunk), len(rec))
		a.chunks = append(a.chunks, make([]byte, 0, size))
		a.size += int64(size)
		n++
	}
	c := &a.chunks[n-1]
	p := place(n-1)<<chunkBits | place(len(*c))
	*c = append(*c, rec...)
	return p
}

func (a *arena) from(p place) []byte { return a.chunks[p>>chunkBits][p&(maxChunk-1):] }
