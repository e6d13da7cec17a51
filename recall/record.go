package recall

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"

	"github.com/remora-proxy/remora/storage"
)

// arena keeps the packed memories of one index in chunks, so that growing never copies them. It is append-only; an index
// with too much waste is rebuilt.
type arena struct {
	chunks [][]byte
	size   int64
}

const (
	minChunk = 4 << 10
	maxChunk = 1 << 20
)

// place is where a record starts: the chunk's number and the offset in it.
type place struct{ chunk, at uint32 }

func (a *arena) add(rec []byte) place {
	n := len(a.chunks)
	if n == 0 || cap(a.chunks[n-1])-len(a.chunks[n-1]) < len(rec) {
		size := max(minChunk<<min(n, 8), len(rec))
		a.chunks = append(a.chunks, make([]byte, 0, min(size, max(maxChunk, len(rec)))))
		a.size += int64(cap(a.chunks[n]))
		n++
	}
	c := &a.chunks[n-1]
	p := place{uint32(n - 1), uint32(len(*c))}
	*c = append(*c, rec...)
	return p
}

func (a *arena) from(p place) []byte { return a.chunks[p.chunk][p.at:] }

// packer writes a record. Text that is hex goes as bytes, which halves the ids and hashes.
type packer struct{ b []byte }

func (p *packer) uint(v uint64) { p.b = binary.AppendUvarint(p.b, v) }
func (p *packer) int(v int64)   { p.b = binary.AppendVarint(p.b, v) }

func (p *packer) float(v float64) {
	p.b = binary.LittleEndian.AppendUint32(p.b, math.Float32bits(float32(v)))
}

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

func isHex(s string) bool {
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

// unpacker reads what a packer wrote. It only ever reads this process's own records, so it does not check bounds.
type unpacker struct{ b []byte }

func (u *unpacker) uint() uint64 {
	v, n := binary.Uvarint(u.b)
	u.b = u.b[n:]
	return v
}

// head reads how many terms a record starts with, marks included, and whether the passage is the assistant's.
func (u *unpacker) head() (terms int, assistant bool) {
	v := u.uint()
	return int(v >> 1), v&1 != 0
}

// term reads one term; most take one or two bytes.
func (u *unpacker) term() uint32 {
	b := u.b
	if b[0] < 0x80 {
		u.b = b[1:]
		return uint32(b[0])
	}
	if b[1] < 0x80 {
		u.b = b[2:]
		return uint32(b[0]&0x7f) | uint32(b[1])<<7
	}
	return uint32(u.uint())
}

func (u *unpacker) skipTerms() {
	terms, _ := u.head()
	for range terms {
		u.term()
	}
}

func (u *unpacker) int() int64 {
	v, n := binary.Varint(u.b)
	u.b = u.b[n:]
	return v
}

func (u *unpacker) float() float64 {
	v := math.Float32frombits(binary.LittleEndian.Uint32(u.b))
	u.b = u.b[4:]
	return float64(v)
}

func (u *unpacker) raw() (s []byte, isHex bool) {
	v := u.uint()
	s, u.b = u.b[:v>>1], u.b[v>>1:]
	return s, v&1 != 0
}

func (u *unpacker) string() string {
	s, h := u.raw()
	if h {
		return hex.EncodeToString(s)
	}
	return string(s)
}

func (u *unpacker) strings() []string {
	n := u.uint()
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = u.string()
	}
	return list
}

// packMemory writes what a memory needs to be returned: first its id, which mostly follows from its turn, then the rest.
// Its scope is the index's; Redactions and Embedding are not kept. Strings that many memories share are numbered.
func (ix *index) packMemory(p *packer, m *storage.Memory) {
	v := &m.Provenance
	p.string(v.Turn)
	p.int(int64(v.Seq))
	if v.Turn != "" && m.ID == storage.TurnMemoryID(v.Turn, v.Seq) {
		p.uint(0)
	} else {
		p.uint(1)
		p.string(m.ID)
	}
	p.int(int64(m.EventTime))
	if m.ExpiresAt == 0 {
		p.uint(0)
	} else {
		p.uint(1)
		p.int(int64(m.ExpiresAt - m.EventTime))
	}
	p.string(m.Text)
	p.string(v.Chain)
	for _, s := range [...]string{m.Conversation, string(m.Kind), m.Source, string(v.Role), v.Speaker, v.Model} {
		p.uint(uint64(ix.shared.number(s)))
	}
	p.strings(m.Entities)
	p.strings(m.Tags)
	for _, f := range [...]float64{m.Priority, m.Confidence, m.Trust} {
		if f == 0 || f == 1 {
			p.uint(uint64(f))
			continue
		}
		p.uint(2)
		p.float(f)
	}
	for _, t := range [...]storage.Time{m.CreatedAt, m.UpdatedAt, m.ValidFrom} { // mostly near the event
		p.int(int64(t - m.EventTime))
	}
	p.uint(m.Version)
}

// unpackID reads the id of a memory, with its turn and its number in it.
func unpackID(u *unpacker) (id, turn string, seq int) {
	turn = u.string()
	seq = int(u.int())
	if u.uint() == 0 {
		return storage.TurnMemoryID(turn, seq), turn, seq
	}
	return u.string(), turn, seq
}

// unpackTimes reads what follows the id.
func unpackTimes(u *unpacker) (event, expires storage.Time) {
	event = storage.Time(u.int())
	if u.uint() != 0 {
		expires = event + storage.Time(u.int())
	}
	return event, expires
}

// unpackMemory reads what packMemory wrote.
func (ix *index) unpackMemory(u *unpacker, scope storage.Scope) storage.Memory {
	m := storage.Memory{Scope: scope}
	v := &m.Provenance
	m.ID, v.Turn, v.Seq = unpackID(u)
	m.EventTime, m.ExpiresAt = unpackTimes(u)
	m.Text = u.string()
	v.Chain = u.string()
	shared := func() string { return ix.shared.list[u.uint()] }
	m.Conversation = shared()
	m.Kind = storage.Kind(shared())
	m.Source = shared()
	v.Role = storage.Role(shared())
	v.Speaker = shared()
	v.Model = shared()
	m.Entities = u.strings()
	m.Tags = u.strings()
	for _, f := range [...]*float64{&m.Priority, &m.Confidence, &m.Trust} {
		if *f = float64(u.uint()); *f == 2 {
			*f = u.float()
		}
	}
	for _, t := range [...]*storage.Time{&m.CreatedAt, &m.UpdatedAt, &m.ValidFrom} {
		*t = m.EventTime + storage.Time(u.int())
	}
	m.Version = u.uint()
	return m
}

// sharedStrings numbers strings that many memories have in common.
type sharedStrings struct {
	list  []string
	at    map[string]uint32
	bytes int64
}

func (s *sharedStrings) number(v string) uint32 {
	if n, ok := s.at[v]; ok {
		return n
	}
	if s.at == nil {
		s.at = map[string]uint32{}
	}
	v = strings.Clone(v)
	n := uint32(len(s.list))
	s.at[v] = n
	s.list = append(s.list, v)
	s.bytes += int64(len(v)) + 64
	return n
}
