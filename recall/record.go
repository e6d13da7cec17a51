package recall

import (
	"encoding/binary"
	"encoding/hex"
	"math"

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

// packMemory writes what a memory needs to be returned. Its scope is the index's; Redactions and Embedding are not kept.
func packMemory(p *packer, m *storage.Memory) {
	p.string(m.ID)
	p.int(int64(m.ExpiresAt))
	p.string(m.Text)
	p.string(m.Conversation)
	p.string(string(m.Kind))
	p.string(m.Source)
	p.string(m.Provenance.Turn)
	p.string(m.Provenance.Chain)
	p.string(string(m.Provenance.Role))
	p.string(m.Provenance.Speaker)
	p.string(m.Provenance.Model)
	p.strings(m.Entities)
	p.strings(m.Tags)
	p.float(m.Priority)
	p.float(m.Confidence)
	p.float(m.Trust)
	p.int(int64(m.Provenance.Seq))
	p.int(int64(m.EventTime))
	for _, t := range [...]storage.Time{m.CreatedAt, m.UpdatedAt, m.ValidFrom} { // mostly near the event
		p.int(int64(t - m.EventTime))
	}
	p.uint(m.Version)
}

// unpackMemory reads what packMemory wrote. All strings of the memory share one allocation.
func unpackMemory(u *unpacker, scope storage.Scope) storage.Memory {
	var buf [2048]byte
	b := buf[:0]
	var ends [10]int
	m := storage.Memory{Scope: scope}
	for i := range ends {
		raw, isHex := u.raw()
		if isHex {
			b = hex.AppendEncode(b, raw)
		} else {
			b = append(b, raw...)
		}
		ends[i] = len(b)
		if i == 0 {
			m.ExpiresAt = storage.Time(u.int())
		}
	}
	all, at := string(b), 0
	next := func(i int) string {
		s := all[at:ends[i]]
		at = ends[i]
		return s
	}
	m.ID = next(0)
	m.Text = next(1)
	m.Conversation = next(2)
	m.Kind = storage.Kind(next(3))
	m.Source = next(4)
	m.Provenance.Turn = next(5)
	m.Provenance.Chain = next(6)
	m.Provenance.Role = storage.Role(next(7))
	m.Provenance.Speaker = next(8)
	m.Provenance.Model = next(9)
	m.Entities = u.strings()
	m.Tags = u.strings()
	m.Priority = u.float()
	m.Confidence = u.float()
	m.Trust = u.float()
	m.Provenance.Seq = int(u.int())
	m.EventTime = storage.Time(u.int())
	for _, t := range [...]*storage.Time{&m.CreatedAt, &m.UpdatedAt, &m.ValidFrom} {
		*t = m.EventTime + storage.Time(u.int())
	}
	m.Version = u.uint()
	return m
}
