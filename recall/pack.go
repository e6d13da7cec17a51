package recall

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"time"

	"github.com/remora-proxy/remora/recall/textcode"
	"github.com/remora-proxy/remora/storage"
)

// packer writes a record. Text in hex is written as bytes, which halves ids and
// hashes.
type packer struct{ b []byte }

func (p *packer) uint(v uint64) { p.b = binary.AppendUvarint(p.b, v) }
func (p *packer) int(v int64)   { p.b = binary.AppendVarint(p.b, v) }

func (p *packer) float(v float64) { p.b = binary.LittleEndian.AppendUint64(p.b, math.Float64bits(v)) }

func (p *packer) string(s string) {
	if isHex(s) {
		p.uint(uint64(len(s)/2)<<1 | 1)
		p.b, _ = hex.AppendDecode(p.b, []byte(s))
		return
	}
	p.uint(uint64(len(s)) << 1)
	p.b = append(p.b, s...)
}

func (p *packer) strings(list []string) {
	p.uint(uint64(len(list)))
	for _, s := range list {
		p.string(s)
	}
}

func isHex(s string) bool { return isHexText(s) }

func isHexText[T string | []byte](s T) bool {
	if len(s) < 8 || len(s)%2 != 0 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// unpacker reads what a packer wrote. If the bytes end too early or are invalid
// it fails, and everything it reads from then on is zero.
type unpacker struct {
	b      []byte
	failed bool
}

func (u *unpacker) fail() {
	u.b, u.failed = nil, true
}

func (u *unpacker) uint() uint64 {
	if len(u.b) > 0 && u.b[0] < 0x80 {
		v := u.b[0]
		u.b = u.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(u.b)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return v
}

func (u *unpacker) int() int64 {
	v := u.uint()
	return int64(v>>1) ^ -int64(v&1)
}

func (u *unpacker) float() float64 {
	if len(u.b) < 8 {
		u.fail()
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(u.b))
	u.b = u.b[8:]
	return v
}

func (u *unpacker) byte() byte {
	if len(u.b) == 0 {
		u.fail()
		return 0
	}
	v := u.b[0]
	u.b = u.b[1:]
	return v
}

// bytes reads n bytes without copying them.
func (u *unpacker) bytes(n uint64) []byte {
	if n > uint64(len(u.b)) {
		u.fail()
		return nil
	}
	v := u.b[:n:n]
	u.b = u.b[n:]
	return v
}

// raw reads a string in its packed form.
func (u *unpacker) raw() (s []byte, isHex bool) {
	v := u.uint()
	return u.bytes(v >> 1), v&1 != 0
}

func (u *unpacker) string() string {
	s, h := u.raw()
	if h {
		return hex.EncodeToString(s)
	}
	return string(s)
}

// skipStrings skips what strings reads.
func (u *unpacker) skipStrings() {
	for n := u.uint(); n > 0 && !u.failed; n-- {
		u.raw()
	}
}

func (u *unpacker) strings() []string {
	n := u.uint()
	if n == 0 || n > uint64(len(u.b)) { // a string takes at least one byte
		if n > 0 {
			u.fail()
		}
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = u.string()
	}
	return list
}

// shape is what many memories have in common.
type shape struct {
	kind                   storage.Kind
	source, speaker, model string
	role                   storage.Role
	life                   storage.Time // from event to expiry
	dies                   bool         // it has an expiry
}

// maxShapes limits the table of shapes. Memories beyond it store their shape in
// their record.
const maxShapes = 1 << 14

func (ix *records) packShape(p *packer, m *storage.Memory) {
	s := shape{
		kind: m.Kind, source: m.Source, speaker: m.Provenance.Speaker, model: m.Provenance.Model, role: m.Provenance.Role,
	}
	if m.ExpiresAt != 0 {
		s.life, s.dies = m.ExpiresAt-m.EventTime, true
	}
	n, ok := ix.shapeOf[s]
	if !ok && len(ix.shapes) < maxShapes {
		n, ok = ix.addShape(cloneShape(s)), true
	}
	if ok {
		p.uint(uint64(n) + 1)
		return
	}
	p.uint(0)
	p.shape(&s)
}

func (ix *records) addShape(s shape) uint32 {
	n := uint32(len(ix.shapes))
	ix.shapes = append(ix.shapes, s)
	ix.shapeOf[s] = n
	ix.shapeBytes += int64(len(s.kind) + len(s.source) + len(s.speaker) + len(s.model) + len(s.role) + shapeOverhead)
	return n
}

func cloneShape(s shape) shape {
	all := string(s.kind) + s.source + s.speaker + s.model + string(s.role)
	cut := func(n int) string {
		v := all[:n]
		all = all[n:]
		return v
	}
	return shape{
		kind: storage.Kind(cut(len(s.kind))), source: cut(len(s.source)), speaker: cut(len(s.speaker)), model: cut(len(s.model)),
		role: storage.Role(cut(len(s.role))), life: s.life, dies: s.dies,
	}
}

func (p *packer) shape(s *shape) {
	for _, v := range [...]string{string(s.kind), s.source, s.speaker, s.model, string(s.role)} {
		p.string(v)
	}
	p.int(int64(s.life))
	p.b = append(p.b, 0)
	if s.dies {
		p.b[len(p.b)-1] = 1
	}
}

func (u *unpacker) shape() shape {
	return shape{
		kind: storage.Kind(u.string()), source: u.string(), speaker: u.string(), model: u.string(), role: storage.Role(u.string()),
		life: storage.Time(u.int()), dies: u.byte() != 0,
	}
}

// unpackShape reads a shape, which must not be changed.
func (ix *records) unpackShape(u *unpacker) *shape {
	switch n := u.uint(); {
	case n == 0:
		s := u.shape()
		return &s
	case n <= uint64(len(ix.shapes)):
		return &ix.shapes[n-1]
	}
	u.fail()
	return &shape{}
}

// codeAfter is how long a new index answers requests before its texts are
// coded, so that the request that waited for it comes first.
const codeAfter = 20 * time.Millisecond

const (
	// learnFrom is how many bytes of text an index has before its coder learns.
	// With less, the table would be larger than what it saves. An index that is
	// rebuilt waits for learnLate, and one that is built from records for
	// maxPlain or until it has answered.
	learnFrom = 256 << 10
	learnLate = 2 << 20
	maxPlain  = 8 << 20
	// The coder learns from one byte in learnShare of the text, but from
	// learnFrom to maxLearn bytes. Learning from twice as much saves another 7
	// % of the text, and takes a tenth of the load time where texts are short.
	learnShare = 8
	maxLearn   = 512 << 10
)

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
	coder  *textcode.Coder
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
	c := &coded{coder: textcode.Learn(sample)}
	if damaged {
		return c
	}
	c.places = make([]place, len(records))
	var pack packer
	var work workspace
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
