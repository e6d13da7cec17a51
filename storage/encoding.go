package storage

import (
	"fmt"
	"maps"
	"slices"

	"github.com/remora-proxy/remora/storage/wire"
)

// memoryFormat is the first byte of an encoded memory. Stores keep encoded
// memories on disk, so any change of form needs a new format, and a new schema
// of the stores that keep the old one.
const memoryFormat = 2

// AppendMemory appends the encoded m to b, without its Scope and Version, which
// its place in the store gives. Equal memories give equal bytes.
func AppendMemory(b []byte, m *Memory) []byte {
	c := wire.Writer(append(b, memoryFormat))
	CodeMemory(c, m)
	return c.Bytes()
}

// DecodeMemory decodes what [AppendMemory] wrote, all of encoded, and shares
// nothing with it. The error wraps [ErrDamaged].
func DecodeMemory(encoded []byte) (m Memory, err error) {
	if len(encoded) == 0 || encoded[0] != memoryFormat {
		return m, fmt.Errorf("decode memory: unknown format: %w", ErrDamaged)
	}
	c := wire.Reader(encoded[1:])
	if CodeMemory(c, &m); !c.Done() {
		return Memory{}, fmt.Errorf("decode memory: %w", ErrDamaged)
	}
	return m, nil
}

// CodeMemory codes m, without its Scope and Version, to the end of c: its
// strings share one allocation.
func CodeMemory(c *wire.Coder, m *Memory) {
	c.ShareStrings()
	wire.String(c, &m.ID)
	wire.String(c, &m.Conversation)
	wire.String(c, &m.Kind)
	wire.String(c, &m.Text)
	wire.Strings(c, &m.Entities)
	wire.Strings(c, &m.Tags)
	c.Float(&m.Priority)
	c.Float(&m.Confidence)
	c.Float(&m.Trust)
	wire.String(c, &m.Source)
	wire.String(c, &m.Provenance.Turn)
	wire.String(c, &m.Provenance.Chain)
	wire.String(c, &m.Provenance.Role)
	wire.String(c, &m.Provenance.Speaker)
	wire.Int(c, &m.Provenance.Seq)
	wire.String(c, &m.Provenance.Model)
	codeRedactions(c, m)
	wire.Int(c, &m.CreatedAt)
	wire.Int(c, &m.UpdatedAt)
	wire.Int(c, &m.EventTime)
	wire.Int(c, &m.ValidFrom)
	wire.Int(c, &m.ValidTo)
	wire.Int(c, &m.ExpiresAt)
	wire.Int(c, &m.DeletedAt)
	wire.String(c, &m.SupersededBy)
}

func codeRedactions(c *wire.Coder, m *Memory) {
	n := c.Len(len(m.Redactions), 2)
	if n == 0 {
		return
	}
	if !c.Reading() {
		for _, key := range slices.Sorted(maps.Keys(m.Redactions)) {
			value := m.Redactions[key]
			wire.String(c, &key)
			wire.String(c, &value)
		}
		return
	}
	m.Redactions = make(map[string]string, min(n, 64))
	for range n {
		var key, value string
		wire.String(c, &key)
		if wire.String(c, &value); c.Failed() {
			return
		}
		m.Redactions[key] = value
	}
}
