package process

import (
	"encoding/binary"
	"math"

	"github.com/remora-proxy/remora/storage"
)

// Values on the wire. Strings and lists are preceded by their length as uvarint, times are varints, floats are IEEE 754
// little-endian. Both ends are of one build, so there are no versions.

func appendString[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings[T ~string](b []byte, list []T) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendFloat(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

func appendScope(b []byte, s storage.Scope) []byte {
	b = appendString(b, s.Tenant)
	b = appendString(b, s.App)
	b = appendString(b, s.Project)
	return appendString(b, s.User)
}

func (d *decoder) scope() storage.Scope {
	return storage.Scope{Tenant: d.string(), App: d.string(), Project: d.string(), User: d.string()}
}

// How a memory tells its scope.
const (
	scopeNone  = iota // the zero one
	scopeOuter        // that of what it stands in
	scopeOwn
)

// appendMemory puts its length, 4 bytes, before it, so that the strings of one memory can share one allocation.
func appendMemory(b []byte, m *storage.Memory, outer storage.Scope) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	switch m.Scope {
	case storage.Scope{}:
		b = append(b, scopeNone)
	case outer:
		b = append(b, scopeOuter)
	default:
		b = appendScope(append(b, scopeOwn), m.Scope)
	}
	b = appendString(b, m.ID)
	b = appendString(b, m.Conversation)
	b = appendString(b, m.Kind)
	b = appendString(b, m.Text)
	b = appendStrings(b, m.Entities)
	b = appendStrings(b, m.Tags)
	b = appendFloat(b, m.Priority)
	b = appendFloat(b, m.Confidence)
	b = appendFloat(b, m.Trust)
	b = appendString(b, m.Source)
	p := &m.Provenance
	b = appendString(b, p.Turn)
	b = appendString(b, p.Chain)
	b = appendString(b, p.Role)
	b = appendString(b, p.Speaker)
	b = binary.AppendVarint(b, int64(p.Seq))
	b = appendString(b, p.Model)
	b = binary.AppendUvarint(b, uint64(len(m.Redactions)))
	for k, v := range m.Redactions {
		b = appendString(b, k)
		b = appendString(b, v)
	}
	for _, t := range [...]storage.Time{m.CreatedAt, m.UpdatedAt, m.EventTime, m.ValidFrom, m.ValidTo, m.ExpiresAt, m.DeletedAt} {
		b = binary.AppendVarint(b, int64(t))
	}
	b = appendString(b, m.SupersededBy)
	b = binary.AppendUvarint(b, m.Version)
	if m.Embedding == nil {
		b = append(b, 0)
	} else {
		b = appendString(append(b, 1), m.Embedding.Model)
		b = binary.AppendUvarint(b, uint64(len(m.Embedding.Vector)))
		for _, f := range m.Embedding.Vector {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
		}
	}
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

func (d *decoder) memory(m *storage.Memory, outer storage.Scope) {
	if len(d.rest) < 4 {
		d.fail()
		return
	}
	n := binary.LittleEndian.Uint32(d.rest)
	body := d.rest[4:]
	if uint64(n) > uint64(len(body)) {
		d.fail()
		return
	}
	d.rest = body[n:]
	in := newDecoder(body[:n])
	in.memoryFields(m, outer)
	if in.bad || len(in.rest) > 0 {
		d.fail()
	}
}

func (d *decoder) memoryFields(m *storage.Memory, outer storage.Scope) {
	switch d.byte() {
	case scopeNone:
	case scopeOuter:
		m.Scope = outer
	case scopeOwn:
		m.Scope = d.scope()
	default:
		d.fail()
	}
	m.ID = d.string()
	m.Conversation = d.string()
	m.Kind = storage.Kind(d.string())
	m.Text = d.string()
	m.Entities = strings[string](d)
	m.Tags = strings[string](d)
	m.Priority = d.float()
	m.Confidence = d.float()
	m.Trust = d.float()
	m.Source = d.string()
	p := &m.Provenance
	p.Turn = d.string()
	p.Chain = d.string()
	p.Role = storage.Role(d.string())
	p.Speaker = d.string()
	p.Seq = int(d.varint())
	p.Model = d.string()
	if n := d.count(2); n > 0 {
		m.Redactions = make(map[string]string, n)
		for range n {
			k := d.string()
			m.Redactions[k] = d.string()
		}
	}
	for _, t := range [...]*storage.Time{&m.CreatedAt, &m.UpdatedAt, &m.EventTime, &m.ValidFrom, &m.ValidTo, &m.ExpiresAt, &m.DeletedAt} {
		*t = storage.Time(d.varint())
	}
	m.SupersededBy = d.string()
	m.Version = d.uvarint()
	if d.byte() == 1 {
		m.Embedding = &storage.Embedding{Model: d.string()}
		if n := d.count(4); n > 0 {
			m.Embedding.Vector = make([]float32, n)
			for i := range m.Embedding.Vector {
				m.Embedding.Vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(d.rest[4*i:]))
			}
			d.rest = d.rest[4*n:]
		}
	}
}

func appendRecord(b []byte, r *storage.Record) []byte {
	b = appendRef(b, r.Ref())
	b = binary.AppendVarint(b, int64(r.ExpiresAt))
	return appendString(b, r.Value)
}

// record copies the value: what it stands in is used again.
func (d *decoder) record() storage.Record {
	ref := d.ref()
	r := storage.Record{Bucket: ref.Bucket, Scope: ref.Scope, Key: ref.Key, ExpiresAt: storage.Time(d.varint())}
	if n := d.count(1); n > 0 {
		r.Value = append([]byte(nil), d.rest[:n]...)
		d.rest = d.rest[n:]
	}
	return r
}

func appendRef(b []byte, r storage.RecordRef) []byte {
	b = appendString(b, r.Bucket)
	b = appendScope(b, r.Scope)
	return appendString(b, r.Key)
}

func (d *decoder) ref() storage.RecordRef {
	return storage.RecordRef{Bucket: storage.Bucket(d.ownString()), Scope: storage.Scope{
		Tenant: d.ownString(), App: d.ownString(), Project: d.ownString(), User: d.ownString(),
	}, Key: d.ownString()}
}

func (s Status) encode() []byte {
	b := []byte{0, 0}
	if s.Open {
		b[0] = 1
	}
	if s.Opening {
		b[1] = 1
	}
	b = appendString(b, s.Reason[:min(len(s.Reason), maxText)])
	for _, n := range [...]uint64{s.FailedOpens, s.FreeBytes, s.Damaged, s.Panics} {
		b = binary.AppendUvarint(b, n)
	}
	return appendStrings(b, s.Aside)
}

func decodeStatus(b []byte) (Status, bool) {
	d := newDecoder(b)
	s := Status{
		Open: d.byte() == 1, Opening: d.byte() == 1, Reason: d.string(),
		FailedOpens: d.uvarint(), FreeBytes: d.uvarint(), Damaged: d.uvarint(), Panics: d.uvarint(), Aside: strings[string](d),
	}
	return s, !d.bad && len(d.rest) == 0
}

// decoder reads from the front of rest. After the first fault it is bad and reads zeros. What it returns shares nothing
// with rest.
type decoder struct {
	rest []byte
	text string // a copy of rest as it was at the first string; strings are cut out of it
	cut  bool   // text is set
	bad  bool
}

func newDecoder(b []byte) *decoder { return &decoder{rest: b} }

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

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads the length of a list whose elements take at least size bytes each: no more than there can be.
func (d *decoder) count(size int) int {
	v := d.uvarint()
	if d.bad || v > uint64(len(d.rest)/size) {
		d.fail()
		return 0
	}
	return int(v)
}

func (d *decoder) string() string {
	n := d.count(1)
	if d.bad || n == 0 {
		return ""
	}
	if !d.cut {
		d.text, d.cut = string(d.rest), true
	}
	start := len(d.text) - len(d.rest)
	if start < 0 {
		d.fail()
		return ""
	}
	d.rest = d.rest[n:]
	return d.text[start : start+n]
}

// ownString is a string by itself, for messages whose greater part is not strings.
func (d *decoder) ownString() string {
	n := d.count(1)
	if d.bad || n == 0 {
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func strings[T ~string](d *decoder) []T {
	n := d.count(1)
	if n == 0 {
		return nil
	}
	list := make([]T, 0, min(n, 64)) // an element takes 16 times what it may take on the wire
	for range n {
		if d.bad {
			return nil
		}
		list = append(list, T(d.string()))
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
