package ledger

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/s2"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// An entry on disk is a version byte, the number of its variants, and for each:
// placement, conversation, block, spans, hash of the next message, the mark of
// the answer, creation and last use (ms). Numbers are uvarints, strings are
// prefixed with their length.
const entryVersion = 4

var errEntry = errors.New("unreadable ledger entry")

// appendRow appends one row of a segment: the chain hash (16 bytes), the length
// of the entry (a uvarint of four bytes), and the entry. Segments are
// compressed (s2), since the blocks of one user have many lines in common.
func appendRow(b []byte, h Hash, e *entry) []byte {
	b = appendHash(b, h)
	at := len(b) + 4
	b = appendEntry(append(b, 0x80, 0x80, 0x80, 0), e)
	for i, n := 0, len(b)-at; i < 4; i++ {
		b[at-4+i] |= byte(n>>(7*i)) & 0x7f
	}
	return b
}

// segmentRows returns the rows of a compressed segment.
func segmentRows(b []byte) ([]byte, error) {
	if n, err := s2.DecodedLen(b); err != nil || n > storage.MaxRecord {
		return nil, errEntry
	}
	rows, err := s2.Decode(nil, b)
	if err != nil {
		return nil, errEntry
	}
	return rows, nil
}

// readRows adds the entries of rows to entries, over older ones, and returns
// their size. On an error the entries before it are added.
func readRows(rows []byte, entries map[Hash]*entry) (size int64, err error) {
	d := decoder{rows}
	for len(d.rest) > 0 {
		h, encoded := d.row()
		if d.broken() {
			return size, errEntry
		}
		e, err := decodeEntry(encoded)
		if err != nil {
			return size, err
		}
		size += e.size()
		e.over(entries[h])
		entries[h] = e
	}
	return size, nil
}

// row reads what appendRow has written.
func (d *decoder) row() (h Hash, encoded []byte) {
	return d.hash(), d.take(d.uint(uint64(len(d.rest))))
}

// appendJournalRow appends a row of the journal: the scope, the root, when the
// row expires (ms), and the row of a segment, prefixed with its length.
func appendJournalRow(b []byte, key groupKey, expires storage.Time, row []byte) []byte {
	for _, part := range [...]string{key.scope.Tenant, key.scope.App, key.scope.Project, key.scope.User} {
		b = appendString(b, part)
	}
	b = appendHash(b, key.root)
	b = binary.AppendUvarint(b, uint64(max(expires, 0)))
	return append(binary.AppendUvarint(b, uint64(len(row))), row...)
}

func (d *decoder) journalRow() (key groupKey, expires storage.Time, row []byte) {
	key.scope = storage.Scope{Tenant: d.string(), App: d.string(), Project: d.string(), User: d.string()}
	key.root = d.hash()
	return key, storage.Time(d.uint(1 << 62)), d.take(d.uint(uint64(len(d.rest))))
}

// appendEntry leaves out variants that are only observed.
func appendEntry(b []byte, e *entry) []byte {
	switch {
	case e.position != nil:
		return appendPosition(b, e.position)
	case e.repair != nil:
		return appendRepair(b, e.repair)
	case e.pointer != nil:
		return appendPointer(b, e.pointer)
	}
	n := uint64(0)
	for _, v := range e.variants {
		if !v.observeOnly {
			n++
		}
	}
	b = append(b, entryVersion)
	b = binary.AppendUvarint(b, n)
	for _, v := range e.variants {
		if v.observeOnly {
			continue
		}
		b = append(b, byte(v.Placement))
		b = appendString(b, v.Conversation)
		b = appendString(b, v.Block.Text)
		b = binary.AppendUvarint(b, uint64(len(v.Block.Spans)))
		for _, sp := range v.Block.Spans {
			b = appendString(b, sp.ID)
			b = binary.AppendUvarint(b, uint64(sp.Start))
			b = binary.AppendUvarint(b, uint64(sp.End))
		}
		b = appendHash(b, v.next)
		b = appendString(b, v.answer.call)
		b = binary.BigEndian.AppendUint64(b, v.answer.text)
		b = binary.AppendUvarint(b, uint64(storage.TimeOf(v.created)))
		b = binary.AppendUvarint(b, uint64(storage.TimeOf(v.used)))
	}
	return b
}

func appendHash(b []byte, h Hash) []byte {
	b = binary.BigEndian.AppendUint64(b, h.Hi)
	return binary.BigEndian.AppendUint64(b, h.Lo)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeEntry refuses whatever appendEntry does not write: a block is replayed
// to an upstream, so it must be whole.
func decodeEntry(b []byte) (*entry, error) {
	d := decoder{b}
	e := &entry{}
	switch d.uint(pointerVersion) {
	case entryVersion:
	case positionVersion:
		var err error
		e.position, err = decodePosition(d)
		return e, err
	case pointerVersion:
		var err error
		e.pointer, err = decodePointer(d)
		return e, err
	case repairVersion:
		var err error
		e.repair, err = decodeRepair(d)
		return e, err
	default:
		return nil, errEntry
	}
	for range d.uint(maxVariants) {
		v := &variant{accepted: true} // or it would not be stored
		v.Placement, v.Conversation = dialect.Placement(d.byte()), d.string()
		v.Block.Text = d.string()
		spans := d.uint(uint64(len(v.Block.Text)))
		for at := 0; spans > 0 && !d.broken(); spans-- {
			sp := fence.Span{ID: d.string(), Start: int(d.uint(uint64(len(v.Block.Text)))), End: int(d.uint(uint64(len(v.Block.Text))))}
			if sp.Start < at || sp.End < sp.Start {
				return nil, errEntry
			}
			at = sp.End
			v.Block.Spans = append(v.Block.Spans, sp)
		}
		v.next = d.hash()
		v.answer = answerMark{call: d.string(), text: d.uint64()}
		v.created = storage.Time(d.uint(1 << 62)).Std()
		v.used = storage.Time(d.uint(1 << 62)).Std()
		if d.broken() || v.Placement > dialect.System {
			return nil, errEntry
		}
		e.variants = append(e.variants, v)
	}
	if d.broken() || len(d.rest) > 0 {
		return nil, errEntry
	}
	return e, nil
}

// decoder reads from rest, which becomes nil at the first malformed value.
type decoder struct{ rest []byte }

func (d *decoder) broken() bool { return d.rest == nil }

// take returns the next n bytes. After a whole record rest is empty, not nil.
func (d *decoder) take(n uint64) []byte {
	if d.rest == nil || n > uint64(len(d.rest)) {
		d.rest = nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

// uint reads a number of at most limit.
func (d *decoder) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > limit {
		d.rest = nil
		return 0
	}
	d.take(uint64(n))
	return v
}

func (d *decoder) uint64() uint64 {
	if b := d.take(8); len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) hash() Hash { return Hash{Hi: d.uint64(), Lo: d.uint64()} }

func (d *decoder) string() string { return string(d.take(d.uint(uint64(len(d.rest))))) }
