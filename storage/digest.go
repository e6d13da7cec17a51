package storage

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"
)

// Digest identifies one state of a scope's memories. Equal digests mean equal
// memories, with a chance of error of 2^-64; a scan whose digest differs from
// the one that the store keeps has missed some.
type Digest struct {
	Memories int    // records, including those that recall would never return
	Sum      uint64 // of their fingerprints, wrapping
}

// Add counts m in.
func (d *Digest) Add(m *Memory) { d.Memories++; d.Sum += m.Fingerprint() }

// Remove counts m out.
func (d *Digest) Remove(m *Memory) { d.Memories--; d.Sum -= m.Fingerprint() }

// Plus returns the digest of the memories of both.
func (d Digest) Plus(o Digest) Digest {
	return Digest{Memories: d.Memories + o.Memories, Sum: d.Sum + o.Sum}
}

// Minus returns the digest of d's memories without those of o.
func (d Digest) Minus(o Digest) Digest {
	return Digest{Memories: d.Memories - o.Memories, Sum: d.Sum - o.Sum}
}

// Fingerprint hashes all that a caller writes in m except its scope, redactions
// and embedding. Fields that the store sets (CreatedAt, UpdatedAt, Version) are
// left out as well, so a Put does not change it. Stores keep fingerprints on
// disk: the value for a given memory never changes.
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
