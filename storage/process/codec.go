package process

import (
	"encoding/binary"

	"github.com/remora-proxy/remora/storage"
)

// Values on the wire. Strings and lists are preceded by their length as uvarint, times are varints; a memory is in the form
// of [storage.AppendMemory]. Both ends are of one build, so there are no versions.

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

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
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

// ownScope is a scope in strings by themselves: see ownString.
func (d *decoder) ownScope() storage.Scope {
	return storage.Scope{Tenant: d.ownString(), App: d.ownString(), Project: d.ownString(), User: d.ownString()}
}

// How a memory tells its scope.
const (
	scopeNone  = iota // the zero one
	scopeOuter        // that of what it stands in
	scopeOwn
)

// appendMemory puts its length, 4 bytes, before it.
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
	b = storage.AppendMemory(binary.AppendUvarint(b, m.Version), m)
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
	scope := storage.Scope{}
	switch in.byte() {
	case scopeNone:
	case scopeOuter:
		scope = outer
	case scopeOwn:
		scope = in.ownScope()
	default:
		in.fail()
	}
	version := in.uvarint()
	var err error
	if *m, err = storage.DecodeMemory(in.rest); err != nil || in.bad {
		d.fail()
		return
	}
	m.Scope, m.Version = scope, version
}

func appendRecord(b []byte, r *storage.Record) []byte {
	return append(appendRecordHead(b, r), r.Value...)
}

// appendRecordHead leaves out the value, which follows.
func appendRecordHead(b []byte, r *storage.Record) []byte {
	b = appendRef(b, r.Ref())
	b = binary.AppendVarint(b, int64(r.ExpiresAt))
	return binary.AppendUvarint(b, uint64(len(r.Value)))
}

// record copies the value: what it stands in is used again.
func (d *decoder) record() storage.Record {
	r := d.recordInPlace()
	r.Value = append([]byte(nil), r.Value...)
	return r
}

// recordInPlace does not copy the value.
func (d *decoder) recordInPlace() storage.Record {
	ref := d.ref()
	r := storage.Record{Bucket: ref.Bucket, Scope: ref.Scope, Key: ref.Key, ExpiresAt: storage.Time(d.varint())}
	if n := d.count(1); n > 0 {
		r.Value = d.rest[:n:n]
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
	return storage.RecordRef{Bucket: storage.Bucket(d.ownString()), Scope: d.ownScope(), Key: d.ownString()}
}

func (s Status) encode() []byte {
	b := appendBool(appendBool(nil, s.Open), s.Opening)
	b = appendString(b, s.Reason[:min(len(s.Reason), maxText)])
	for _, n := range [...]uint64{s.FailedOpens, s.FreeBytes, s.Damaged, s.Panics} {
		b = binary.AppendUvarint(b, n)
	}
	return appendStrings(b, s.Aside)
}

func decodeStatus(b []byte) (Status, bool) {
	d := newDecoder(b)
	s := Status{
		Open: d.bool(), Opening: d.bool(), Reason: d.string(),
		FailedOpens: d.uvarint(), FreeBytes: d.uvarint(), Damaged: d.uvarint(), Panics: d.uvarint(), Aside: stringsOf[string](d),
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

func (d *decoder) bool() bool { return d.byte() == 1 }

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

func stringsOf[T ~string](d *decoder) []T {
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
