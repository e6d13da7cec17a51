package recall

import "github.com/remora-proxy/remora/storage"

// shape is what many memories have in common.
type shape struct {
	kind                   storage.Kind
	source, speaker, model string
	role                   storage.Role
	life                   storage.Time // from the event to the expiry
	dies                   bool         // it has an expiry
}

// maxShapes bounds the table of shapes. A memory beyond it has its shape in its record.
const maxShapes = 1 << 14

func (ix *records) packShape(p *packer, m *storage.Memory) {
	s := shape{
		kind: m.Kind, source: m.Source, speaker: m.Provenance.Speaker, model: m.Provenance.Model, role: m.Provenance.Role,
	}
	if m.ExpiresAt != 0 {
		s.life, s.dies = m.ExpiresAt-m.EventTime, true
	}
	n, ok := ix.shapeOf[s]
	if !ok && len(ix.shapes) < maxShapes {
		n, ok = ix.addShape(cloneShape(s)), true
	}
	if ok {
		p.uint(uint64(n) + 1)
		return
	}
	p.uint(0)
	p.shape(&s)
}

func (ix *records) addShape(s shape) uint32 {
	n := uint32(len(ix.shapes))
	ix.shapes = append(ix.shapes, s)
	ix.shapeOf[s] = n
	ix.shapeBytes += int64(len(s.kind) + len(s.source) + len(s.speaker) + len(s.model) + len(s.role) + shapeOverhead)
	return n
}

func cloneShape(s shape) shape {
	all := string(s.kind) + s.source + s.speaker + s.model + string(s.role)
	cut := func(n int) string {
		v := all[:n]
		all = all[n:]
		return v
	}
	return shape{
		kind: storage.Kind(cut(len(s.kind))), source: cut(len(s.source)), speaker: cut(len(s.speaker)), model: cut(len(s.model)),
		role: storage.Role(cut(len(s.role))), life: s.life, dies: s.dies,
	}
}

func (p *packer) shape(s *shape) {
	for _, v := range [...]string{string(s.kind), s.source, s.speaker, s.model, string(s.role)} {
		p.string(v)
	}
	p.int(int64(s.life))
	p.b = append(p.b, 0)
	if s.dies {
		p.b[len(p.b)-1] = 1
	}
}

func (u *unpacker) shape() shape {
	return shape{
		kind: storage.Kind(u.string()), source: u.string(), speaker: u.string(), model: u.string(), role: storage.Role(u.string()),
		life: storage.Time(u.int()), dies: u.byte() != 0,
	}
}

// unpackShape reads the shape.
func (ix *records) unpackShape(u *unpacker) shape {
	switch n := u.uint(); {
	case n == 0:
		return u.shape()
	case n <= uint64(len(ix.shapes)):
		return ix.shapes[n-1]
	}
	u.fail()
	return shape{}
}
