package process

import (
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/wire"
)

// Values on the wire. Both ends are of one build, so there are no versions. A
// memory carries no scope: it has that of the call.

// The minimum sizes of encoded values, in bytes.
const (
	minScope     = 4
	minMemory    = 4 + 1 + 46
	minMemoryRef = minScope + 1
	minWrite     = minScope + 2
	minRecord    = minScope + 2 // also of a reference
)

func codeScope(c *wire.Coder, s *storage.Scope) {
	wire.String(c, &s.Tenant)
	wire.String(c, &s.App)
	wire.String(c, &s.Project)
	wire.String(c, &s.User)
}

func codeMemory(c *wire.Coder, m *storage.Memory) {
	c.Nested(func(c *wire.Coder) {
		wire.Uint(c, &m.Version)
		storage.CodeMemory(c, m)
	})
}

func codeMemoryRef(c *wire.Coder, r *storage.MemoryRef) {
	codeScope(c, &r.Scope)
	wire.String(c, &r.ID)
}

func codeWrite(c *wire.Coder, w *storage.Write) {
	codeScope(c, &w.Scope)
	wire.String(c, &w.Turn)
	wire.List(c, &w.Memories, minMemory, codeMemory)
	if c.Reading() {
		setScope(w.Memories, w.Scope)
	}
}

func setScope(memories []storage.Memory, scope storage.Scope) {
	for i := range memories {
		memories[i].Scope = scope
	}
}

func codePage(c *wire.Coder, p *storage.Page) {
	wire.Uint(c, &p.Damaged)
	wire.String(c, &p.Next)
	codeDigest(c, &p.Expired)
	wire.List(c, &p.Memories, minMemory, codeMemory)
}

func codeDigest(c *wire.Coder, d *storage.Digest) {
	wire.Int(c, &d.Memories)
	wire.Uint(c, &d.Sum)
}

func codeReceipt(c *wire.Coder, r *storage.Receipt) {
	wire.Uint(c, &r.Scopes)
	wire.Uint(c, &r.Memories)
	wire.Int(c, &r.At)
	type count struct {
		bucket storage.Bucket
		n      int
	}
	var counts []count
	for bucket, n := range r.Records {
		counts = append(counts, count{bucket, n})
	}
	wire.List(c, &counts, 2, func(c *wire.Coder, v *count) {
		wire.String(c, &v.bucket)
		wire.Uint(c, &v.n)
	})
	if c.Reading() && len(counts) > 0 {
		r.Records = make(map[storage.Bucket]int, len(counts))
		for _, v := range counts {
			r.Records[v.bucket] = v.n
		}
	}
}

func codeRecordRef(c *wire.Coder, r *storage.RecordRef) {
	wire.String(c, &r.Bucket)
	codeScope(c, &r.Scope)
	wire.String(c, &r.Key)
}

// codeRecordHead codes all of a record except its value.
func codeRecordHead(c *wire.Coder, r *storage.Record) {
	ref := r.Ref()
	codeRecordRef(c, &ref)
	r.Bucket, r.Scope, r.Key = ref.Bucket, ref.Scope, ref.Key
	wire.Int(c, &r.ExpiresAt)
}

func codeRecord(c *wire.Coder, r *storage.Record) {
	codeRecordHead(c, r)
	c.Blob(&r.Value)
}

func codeRecordPage(c *wire.Coder, p *storage.RecordPage) {
	wire.Uint(c, &p.Damaged)
	wire.String(c, &p.Next)
	wire.List(c, &p.Records, minRecord, codeRecord)
}

// recordsSize estimates the encoded size of records.
func recordsSize(list *[]storage.Record) (n int) {
	for i := range *list {
		n += len((*list)[i].Value) + 256
	}
	return n
}

func recordPageSize(p *storage.RecordPage) int { return recordsSize(&p.Records) }

// code codes what the server knows of itself: PID and Restarts are the
// client's.
func (s *Status) code(c *wire.Coder) {
	c.Bool(&s.Open)
	c.Bool(&s.Opening)
	wire.String(c, &s.Reason)
	wire.Uint(c, &s.FailedOpens)
	wire.Uint(c, &s.FreeBytes)
	wire.Uint(c, &s.Damaged)
	wire.Uint(c, &s.Panics)
	wire.Strings(c, &s.SetAside)
}

func (s Status) encode() []byte {
	s.Reason = s.Reason[:min(len(s.Reason), maxText)]
	c := wire.Writer(nil)
	s.code(c)
	return c.Bytes()
}

func decodeStatus(b []byte) (s Status, ok bool) {
	c := wire.Reader(b)
	s.code(c)
	return s, c.Done()
}
