package storage

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"
)

// Digest tells one state of a scope's memories from another. Two equal digests mean, but for chance of 2^-64, the same
// memories; a scan that gives another digest than the store keeps has missed some.
type Digest struct {
	Memories int    // records there are, also those that recall would never return
	Sum      uint64 // of their Fingerprints, wrapping
}

// Add takes m in.
func (d *Digest) Add(m *Memory) { d.Memories++; d.Sum += m.Fingerprint() }

// Remove takes m out.
func (d *Digest) Remove(m *Memory) { d.Memories--; d.Sum -= m.Fingerprint() }

// Plus is d with the records of o beside its own.
func (d Digest) Plus(o Digest) Digest {
	return Digest{Memories: d.Memories + o.Memories, Sum: d.Sum + o.Sum}
}

// Fingerprint is a hash of all that a caller writes in m but its scope, its redactions and its embedding. What the
// store sets (CreatedAt, UpdatedAt, Version) does not count, so it is the same before and after a Put, in every process
// and for good: it is kept on disk.
func (m *Memory) Fingerprint() uint64 {
	b := make([]byte, 0, 1024)
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	list := func(l []string) {
		b = binary.AppendUvarint(b, uint64(len(l)))
		for _, s := range l {
			text(s)
		}
	}
	for _, s := range [...]string{
		m.ID, m.Conversation, string(m.Kind), m.Text, m.Source, m.SupersededBy, m.Provenance.Turn, m.Provenance.Chain,
		string(m.Provenance.Role), m.Provenance.Speaker, m.Provenance.Model,
	} {
		text(s)
	}
	list(m.Entities)
	list(m.Tags)
	for _, n := range [...]uint64{
		uint64(m.Provenance.Seq), uint64(m.EventTime), uint64(m.ValidFrom), uint64(m.ValidTo), uint64(m.ExpiresAt), uint64(m.DeletedAt),
		math.Float64bits(m.Priority), math.Float64bits(m.Confidence), math.Float64bits(m.Trust),
	} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return xxh3.Hash(b)
}
