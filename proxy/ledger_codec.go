package proxy

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/s2"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// An entry on disk is a version byte, the number of its variants, and for each: placement, conversation, block, spans,
// hash of the next message, creation and last use (ms). Numbers are uvarints, strings have their length in front.
const entryVersion = 1

var errEntry = errors.New("unreadable ledger entry")

// A segment is rows of chain hash (16 bytes), length of an entry (an uvarint, written four bytes wide), entry; all of it
// compressed (s2), since the blocks of one user have many lines in common.

func appendRow(b []byte, h chainHash, e *entry) []byte {
	b = appendHash(b, h)
	at := len(b) + 4
	b = appendEntry(append(b, 0x80, 0x80, 0x80, 0), e)
	for i, n := 0, len(b)-at; i < 4; i++ {
		b[at-4+i] |= byte(n>>(7*i)) & 0x7f
	}
	return b
}

// readSegment puts the entries of a compressed segment into entries, over those that stand there, and returns their
// size. On an error what came before it is read.
func readSegment(b []byte, entries map[chainHash]*entry) (size int64, err error) {
	if n, err := s2.DecodedLen(b); err != nil || n > storage.MaxRecord {
		return 0, errEntry
	}
	if b, err = s2.Decode(nil, b); err != nil {
		return 0, errEntry
	}
	return readRows(b, entries)
}

func readRows(rows []byte, entries map[chainHash]*entry) (size int64, err error) {
	d := decoder{rows}
	for len(d.rest) > 0 {
		h := d.hash()
		encoded := d.take(d.uint(uint64(len(d.rest))))
		if d.broken() {
			return size, errEntry
		}
		e, err := decodeEntry(encoded)
		if err != nil {
			return size, err
		}
		entries[h] = e
		size += e.size()
	}
	return size, nil
}

// appendEntry leaves ghosts out.
func appendEntry(b []byte, e *entry) []byte {
	if e.at != nil {
		return appendPosition(b, e.at)
	}
	n := uint64(0)
	for _, v := range e.variants {
		if !v.ghost {
			n++
		}
	}
	b = append(b, entryVersion)
	b = binary.AppendUvarint(b, n)
	for _, v := range e.variants {
		if v.ghost {
			continue
		}
		b = append(b, byte(v.placement))
		b = appendString(b, v.conv)
		b = appendString(b, v.block.Text)
		b = binary.AppendUvarint(b, uint64(len(v.block.Spans)))
		for _, sp := range v.block.Spans {
			b = appendString(b, sp.ID)
			b = binary.AppendUvarint(b, uint64(sp.Start))
			b = binary.AppendUvarint(b, uint64(sp.End))
		}
		b = appendHash(b, v.next)
		b = binary.AppendUvarint(b, uint64(storage.TimeOf(v.created)))
		b = binary.AppendUvarint(b, uint64(storage.TimeOf(v.used)))
	}
	return b
}

func appendHash(b []byte, h chainHash) []byte {
	b = binary.BigEndian.AppendUint64(b, h.Hi)
	return binary.BigEndian.AppendUint64(b, h.Lo)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeEntry refuses what appendEntry does not write: a block is replayed to an upstream, so it must be whole.
func decodeEntry(b []byte) (*entry, error) {
	d := decoder{b}
	e := &entry{}
	switch d.uint(positionVersion) {
	case entryVersion:
	case positionVersion:
		var err error
		e.at, err = decodePosition(d)
		return e, err
	default:
		return nil, errEntry
	}
	for range d.uint(maxVariants) {
		v := &variant{placement: dialect.Placement(d.byte()), conv: d.string(), taken: true} // or it would not be stored
		v.block.Text = d.string()
		spans := d.uint(uint64(len(v.block.Text)))
		for at := 0; spans > 0 && !d.broken(); spans-- {
			sp := fence.Span{ID: d.string(), Start: int(d.uint(uint64(len(v.block.Text)))), End: int(d.uint(uint64(len(v.block.Text))))}
			if sp.Start < at || sp.End < sp.Start {
				return nil, errEntry
			}
			at = sp.End
			v.block.Spans = append(v.block.Spans, sp)
		}
		v.next = d.hash()
		v.created = storage.Time(d.uint(1 << 62)).Std()
		v.used = storage.Time(d.uint(1 << 62)).Std()
		if d.broken() || v.placement > dialect.System {
			return nil, errEntry
		}
		e.variants = append(e.variants, v)
	}
	if d.broken() || len(d.rest) > 0 {
		return nil, errEntry
	}
	return e, nil
}

// decoder reads from rest, which is nil once something did not fit.
type decoder struct{ rest []byte }

func (d *decoder) broken() bool { return d.rest == nil }

// take returns the next n bytes. The rest of a whole record is empty, never nil.
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

func (d *decoder) hash() chainHash { return chainHash{Hi: d.uint64(), Lo: d.uint64()} }

func (d *decoder) string() string { return string(d.take(d.uint(uint64(len(d.rest))))) }
