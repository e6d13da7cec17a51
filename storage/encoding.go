package storage

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// The binary form of a memory: the format byte, the embedding's vector, then the other fields in the order of [Memory]
// without Scope and Version. Strings and lists are preceded by their length as uvarint, times are varints, floats are IEEE
// 754 little-endian. It stands on disks: new fields go to the end with a new format byte, and the old ones are still read.
const memoryFormat = 1

// AppendMemory appends the binary form of m to b, without its Scope and its Version: where it stands tells them. Equal
// memories give equal bytes.
func AppendMemory(b []byte, m *Memory) []byte {
	b = append(b, memoryFormat)
	if m.Embedding == nil {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		b = binary.AppendUvarint(b, uint64(len(m.Embedding.Vector)))
		for _, f := range m.Embedding.Vector {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
		}
	}
	b = appendString(b, m.ID)
	b = appendString(b, m.Conversation)
	b = appendString(b, string(m.Kind))
	b = appendString(b, m.Text)
	b = appendStrings(b, m.Entities)
	b = appendStrings(b, m.Tags)
	b = appendFloat(b, m.Priority)
	b = appendFloat(b, m.Confidence)
	b = appendFloat(b, m.Trust)
	b = appendString(b, m.Source)
	b = appendString(b, m.Provenance.Turn)
	b = appendString(b, m.Provenance.Chain)
	b = appendString(b, string(m.Provenance.Role))
	b = appendString(b, m.Provenance.Speaker)
	b = binary.AppendVarint(b, int64(m.Provenance.Seq))
	b = appendString(b, m.Provenance.Model)
	b = binary.AppendUvarint(b, uint64(len(m.Redactions)))
	if len(m.Redactions) > 0 { // few have some
		for _, k := range slices.Sorted(maps.Keys(m.Redactions)) {
			b = appendString(b, k)
			b = appendString(b, m.Redactions[k])
		}
	}
	for _, t := range []Time{m.CreatedAt, m.UpdatedAt, m.EventTime, m.ValidFrom, m.ValidTo} {
		b = binary.AppendVarint(b, int64(t))
	}
	b = appendString(b, m.SupersededBy)
	b = binary.AppendVarint(b, int64(m.ExpiresAt))
	b = binary.AppendVarint(b, int64(m.DeletedAt))
	if m.Embedding != nil {
		b = appendString(b, m.Embedding.Model)
	}
	return b
}

// DecodeMemory reads what [AppendMemory] wrote, all of encoded; the error wraps [ErrDamaged]. The memory shares nothing
// with encoded. Its strings share one allocation.
func DecodeMemory(encoded []byte) (m Memory, err error) {
	if len(encoded) == 0 || encoded[0] != memoryFormat {
		return m, fmt.Errorf("decode memory: unknown format: %w", ErrDamaged)
	}
	d := decoder{rest: encoded[1:]}
	m.Embedding = d.embedding()
	d.text = string(d.rest)
	m.ID = d.string()
	m.Conversation = d.string()
	m.Kind = Kind(d.string())
	m.Text = d.string()
	m.Entities = d.strings()
	m.Tags = d.strings()
	m.Priority = d.float()
	m.Confidence = d.float()
	m.Trust = d.float()
	m.Source = d.string()
	m.Provenance.Turn = d.string()
	m.Provenance.Chain = d.string()
	m.Provenance.Role = Role(d.string())
	m.Provenance.Speaker = d.string()
	m.Provenance.Seq = int(d.varint())
	m.Provenance.Model = d.string()
	if n := d.count(); n > 0 {
		m.Redactions = make(map[string]string, min(n, 64))
		for ; n > 0 && !d.bad; n-- {
			k := d.string()
			m.Redactions[k] = d.string()
		}
	}
	for _, t := range []*Time{&m.CreatedAt, &m.UpdatedAt, &m.EventTime, &m.ValidFrom, &m.ValidTo} {
		*t = Time(d.varint())
	}
	m.SupersededBy = d.string()
	m.ExpiresAt = Time(d.varint())
	m.DeletedAt = Time(d.varint())
	if m.Embedding != nil {
		m.Embedding.Model = d.string()
	}
	if d.bad || len(d.rest) != 0 {
		return Memory{}, fmt.Errorf("decode memory: %w", ErrDamaged)
	}
	return m, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendFloat(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

// decoder reads from the front of rest. After the first fault it is bad and reads zeros.
type decoder struct {
	rest []byte
	text string // a copy of rest as it was before the first string; strings are cut out of it
	bad  bool
}

func (d *decoder) fail() { d.bad, d.rest = true, nil }

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads the length of something of which each element takes at least one byte.
func (d *decoder) count() int {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > uint64(len(d.rest)-n) {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return int(v)
}

func (d *decoder) string() string {
	n := d.count()
	start := len(d.text) - len(d.rest)
	if d.bad || start < 0 {
		return ""
	}
	d.rest = d.rest[n:]
	return d.text[start : start+n]
}

func (d *decoder) strings() []string {
	n := d.count()
	if n == 0 {
		return nil
	}
	list := make([]string, 0, min(n, 64)) // an element takes 16 times what it may take encoded
	for ; n > 0 && !d.bad; n-- {
		list = append(list, d.string())
	}
	return list
}

func (d *decoder) float() float64 {
	if len(d.rest) < 8 {
		d.fail()
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(d.rest))
	d.rest = d.rest[8:]
	return f
}

// embedding reads all of an embedding but its model's name.
func (d *decoder) embedding() *Embedding {
	if d.byte() != 1 {
		return nil
	}
	n := d.count()
	if n > len(d.rest)/4 {
		d.fail()
		return nil
	}
	e := new(Embedding)
	if n > 0 {
		e.Vector = make([]float32, n)
	}
	for i := range e.Vector {
		e.Vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(d.rest[4*i:]))
	}
	d.rest = d.rest[4*n:]
	return e
}
