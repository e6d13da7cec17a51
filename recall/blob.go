package recall

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/remora-proxy/remora/recall/textcode"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// A blob is an index as bytes. It has three kinds of parts. The first part
// describes everything. The second has the postings and the bytes of words and
// names, with room for the first turns that are added. Each further part has
// chunks of the arena, exactly as in memory, so that loading does not copy
// them. Every part begins with
//
//	magic      4 bytes
//	version    uint32: blobVersion
//	build      uint64, the same in all parts of one blob
//	part       uint32, its number
//
// Hashes, tables and counts of postings are stored, since rebuilding them would
// read every record and posting. Links and sums are derived again. Any problem
// with a blob, from a lost part to another version, is errBlob, and the index
// is then built from the memories.
//
// Before a blob is written, verify checks that all of it can be searched
// without a panic. A load checks samples only, because the store seals what it
// keeps and reports any change as damage.

// blobVersion changes with the format of blobs and records, and with what
// analysis makes of a text, because an index of an older build would not match
// the queries of this one. A test compares it with the analysis of a fixture.
const blobVersion = 9

const (
	blobMagic  = "RRIX"
	partHeader = 20
	maxPart    = 8 << 20 // bytes of chunks in a part, unless one chunk is larger
)

var errBlob = errors.New("index snapshot damaged or of another version")

// capture returns a copy of the index that does not change. It shares what is
// append-only, so it is quick. It can be read like an index, but not searched
// or changed.
func (ix *index) capture() *index {
	c := (blobWriter{ix}).recordsOnly()
	c.posts = slices.Clone(ix.posts)
	c.speakers = maps.Clone(ix.speakers)
	for _, t := range []*table{&c.byTurn, &c.byID, &c.terms.at, &c.convs.names.at} {
		t.slots = slices.Clone(t.slots)
	}
	return c
}

// blobWriter writes an index, or a capture of one, as a blob.
type blobWriter struct{ *index }

// recordsOnly returns a capture of which only the records and the size can be
// read, by the numbers of turns and memories. That suffices to rebuild the
// index. Its lists and tables are the index's own.
func (ix blobWriter) recordsOnly() *index {
	c := *ix.index
	c.turns = slices.Clone(ix.turns)
	c.convs.list = slices.Clone(ix.convs.list)
	c.arena.chunks = slices.Clone(ix.arena.chunks)
	c.speakers, c.names, c.shapeOf, c.work = nil, nil, nil, nil
	return &c
}

// encode returns the parts of a blob. The index must not have deleted turns.
func (ix blobWriter) encode(t *tally, build uint64) [][]byte {
	p := packer{b: make([]byte, partHeader, partHeader+64*len(ix.turns)+4*len(ix.mems))}
	kept := packer{b: make([]byte, partHeader, partHeader+roomy(int(ix.postBytes))+len(ix.terms.bytes)+len(ix.convs.names.bytes))}
	p.uint(uint64(t.digest.Memories))
	p.b = binary.LittleEndian.AppendUint64(p.b, t.digest.Sum)
	p.uint(uint64(len(t.unindexed)))
	for id, print := range t.unindexed {
		p.b = binary.LittleEndian.AppendUint64(p.b, id)
		p.b = binary.LittleEndian.AppendUint64(p.b, print)
	}
	p.b = binary.LittleEndian.AppendUint64(p.b, ix.seed)
	p.names(&ix.terms, &kept)
	for i := range ix.posts {
		l := &ix.posts[i]
		for _, v := range [...]uint32{uint32(len(l.buf)), l.df, l.last} {
			p.b = binary.LittleEndian.AppendUint32(p.b, v)
		}
		kept.b = append(kept.b, l.buf...)
		kept.b = append(kept.b, make([]byte, roomy(len(l.buf))-len(l.buf))...)
	}
	some := slices.ContainsFunc(ix.posts, func(l postings) bool { return l.facts > 0 })
	if p.b = append(p.b, 0); some {
		p.b[len(p.b)-1] = 1
		for i := range ix.posts {
			p.uint(uint64(ix.posts[i].facts))
		}
	}
	p.names(&ix.convs.names, &kept)
	for i := range ix.convs.list {
		p.b = binary.LittleEndian.AppendUint32(p.b, ix.convs.list[i].project)
	}
	speakers := make([]string, len(ix.speakers))
	for name, n := range ix.speakers {
		speakers[n-1] = name
	}
	p.strings(speakers)
	p.uint(uint64(len(ix.shapes)))
	for i := range ix.shapes {
		p.shape(&ix.shapes[i])
	}
	p.coder(ix.coder)
	for _, n := range ix.spoken {
		p.uint(uint64(n))
	}
	p.uint(uint64(len(ix.turns)))
	for i := range ix.turns {
		p.turn(&ix.turns[i])
	}
	last := place(0)
	for _, m := range ix.mems {
		p.uint(uint64(m.rec - last))
		last = m.rec
	}
	p.table(&ix.byTurn)
	p.table(&ix.byID)
	p.uint(uint64(len(ix.arena.chunks)))
	for _, c := range ix.arena.chunks {
		p.uint(uint64(len(c)))
	}
	parts := [][]byte{p.b, kept.b}
	rest := ix.arena.chunks
	lengths := make([]int, len(rest))
	for i, c := range rest {
		lengths[i] = len(c)
	}
	for _, n := range partsOf(lengths) {
		parts = append(parts, append(make([]byte, partHeader), bytes.Join(rest[:n], nil)...))
		rest = rest[n:]
	}
	for i, part := range parts {
		copy(part, blobMagic)
		binary.LittleEndian.PutUint32(part[4:], blobVersion)
		binary.LittleEndian.PutUint64(part[8:], build)
		binary.LittleEndian.PutUint32(part[16:], uint32(i))
	}
	return parts
}

// partsOf returns how many chunks, given their lengths in bytes, go into each
// part after the second.
func partsOf(lengths []int) (parts []int) {
	for len(lengths) > 0 {
		n, size := 1, lengths[0]
		for n < len(lengths) && size+lengths[n] <= maxPart {
			size += lengths[n]
			n++
		}
		parts = append(parts, n)
		lengths = lengths[n:]
	}
	return parts
}

// names writes strings, and their bytes to kept.
func (p *packer) names(s *names, kept *packer) {
	p.uint(uint64(len(s.ends)))
	last := uint32(0)
	for _, end := range s.ends {
		p.uint(uint64(end - last))
		last = end
	}
	kept.b = append(kept.b, s.bytes[:last]...)
	p.table(&s.at)
}

func (p *packer) coder(c *textcode.Coder) {
	if c == nil {
		p.uint(0)
		return
	}
	table := c.AppendTable(nil)
	p.uint(uint64(len(table) / textcode.TableRow))
	p.b = append(p.b, table...)
}

// The sizes of a turn and of a list of postings in a blob, in bytes. Fixed
// sizes are read many times faster than varints.
const (
	turnRow = 36
	postRow = 12
)

func (p *packer) turn(t *turn) {
	le := binary.LittleEndian
	p.b = le.AppendUint32(le.AppendUint64(p.b, uint64(t.time)), uint32(t.conv))
	for _, v := range [...]uint16{t.count, t.userLen, t.asstLen, t.speaker, t.lives} {
		p.b = le.AppendUint16(p.b, v)
	}
	p.b = append(p.b, byte(t.flags), byte(t.traits))
	p.b = le.AppendUint32(le.AppendUint64(p.b, t.key), t.chain)
}

// blobReader opens the parts of a blob in order.
type blobReader struct {
	build uint64
	next  uint32
}

// open checks a part and returns its content.
func (r *blobReader) open(part []byte) ([]byte, error) {
	if len(part) < partHeader || string(part[:4]) != blobMagic || binary.LittleEndian.Uint32(part[4:]) != blobVersion {
		return nil, errBlob
	}
	build := binary.LittleEndian.Uint64(part[8:])
	if r.next == 0 {
		r.build = build
	}
	if build != r.build || binary.LittleEndian.Uint32(part[16:]) != r.next {
		return nil, errBlob
	}
	r.next++
	return part[partHeader:], nil
}

// blobDigest reads the digest of the memories from which a blob was built.
func blobDigest(u *unpacker) (d storage.Digest) {
	d.Memories = int(u.uint())
	d.Sum = u.uint64()
	return d
}

func (u *unpacker) uint64() uint64 {
	b := u.bytes(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (u *unpacker) uint32() uint32 {
	b := u.bytes(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

// count reads how many items of at least size bytes follow.
func (u *unpacker) count(size int) int {
	n := u.uint()
	if n > uint64(len(u.b)/size) {
		u.fail()
		return 0
	}
	return int(n)
}

// decode reads the first two parts of a blob. It returns the index without its
// arena and analyzer, the tally, and the lengths of the chunks in the further
// parts. It keeps the second part, and nothing of the first.
func decode(part, second []byte) (ix *index, t *tally, chunks []int, err error) {
	u, kept := unpacker{b: part}, unpacker{b: second}
	t = &tally{digest: blobDigest(&u)}
	for range u.count(16) {
		t.setUnindexed(u.uint64(), u.uint64())
	}
	ix = newIndex(u.uint64(), nil)
	if !ix.terms.read(&u, &kept) || ix.terms.len() < 2 || ix.spelled(text.MarkStatement) != text.EndOfStatement || ix.spelled(text.MarkQuestion) != text.EndOfQuestion {
		return nil, nil, nil, errBlob
	}
	ix.posts = make([]postings, ix.terms.len(), roomy(ix.terms.len()))
	rows := u.bytes(uint64(len(ix.posts) * postRow))
	if u.failed {
		return nil, nil, nil, errBlob
	}
	lists := kept.b
	for i := range ix.posts {
		l, row := &ix.posts[i], rows[i*postRow:][:postRow]
		n := int(binary.LittleEndian.Uint32(row))
		room := roomy(n)
		if room > len(lists) {
			return nil, nil, nil, errBlob
		}
		l.buf, lists = lists[:n:room], lists[room:]
		l.df, l.last = binary.LittleEndian.Uint32(row[4:]), binary.LittleEndian.Uint32(row[8:])
	}
	ix.postBytes = int64(len(kept.b) - len(lists))
	kept.b = lists
	if u.byte() > 0 {
		for i := range ix.posts {
			ix.posts[i].facts = uint32(u.uint())
		}
	}
	if !ix.convs.names.read(&u, &kept) || kept.failed || len(kept.b) > 0 {
		return nil, nil, nil, errBlob
	}
	ix.convs.list = make([]conv, ix.convs.names.len())
	for i := range ix.convs.list {
		ix.convs.list[i] = conv{last: -1, project: u.uint32()}
	}
	for i, name := range u.strings() {
		if ix.speaker(name) != uint16(i+1) {
			return nil, nil, nil, errBlob
		}
	}
	for range u.count(7) {
		ix.addShape(u.shape())
	}
	if ix.coder, err = u.coder(); err != nil {
		return nil, nil, nil, err
	}
	for i := range ix.spoken {
		ix.spoken[i] = int(u.uint() & (1<<32 - 1))
	}
	turns := u.count(turnRow)
	ix.turns = make([]turn, turns, roomy(turns)) // room, or the first added turn would copy them all
	mems := 0
	rows = u.bytes(uint64(len(ix.turns) * turnRow))
	for i := range ix.turns {
		ix.turns[i].read(rows[i*turnRow:][:turnRow])
		ix.turns[i].mem = int32(mems)
		mems += int(ix.turns[i].count)
	}
	if u.failed || mems > len(u.b) {
		return nil, nil, nil, errBlob
	}
	ix.mems = make([]mem, mems, roomy(mems))
	last := place(0)
	for n := range ix.turns {
		t := &ix.turns[n]
		for i := t.mem; i < t.mem+int32(t.count); i++ {
			last += place(u.uint())
			ix.mems[i] = mem{rec: last, turn: int32(n)}
		}
	}
	if !ix.byTurn.read(&u) || !ix.byID.read(&u) {
		return nil, nil, nil, errBlob
	}
	chunks = make([]int, u.count(1))
	for i := range chunks {
		chunks[i] = int(u.uint())
	}
	if u.failed || len(u.b) > 0 || len(chunks) >= maxChunks {
		return nil, nil, nil, errBlob
	}
	return ix, t, chunks, nil
}

// read reads what packer.names wrote. No string is empty.
func (s *names) read(u, kept *unpacker) bool {
	n := u.count(1)
	s.ends = make([]uint32, n, roomy(n))
	total := uint64(0)
	for i := range s.ends {
		n := u.uint()
		if total += n; n == 0 || total > uint64(len(kept.b)) {
			return false
		}
		s.ends[i] = uint32(total)
	}
	s.bytes = kept.bytes(total)
	return !kept.failed && s.at.read(u)
}

func (u *unpacker) coder() (*textcode.Coder, error) {
	n := u.count(textcode.TableRow)
	if n == 0 {
		return nil, nil
	}
	c, ok := textcode.ReadTable(u.bytes(uint64(textcode.TableRow * n)))
	if !ok {
		return nil, errBlob
	}
	return c, nil
}

// read reads what packer.turn wrote.
func (t *turn) read(row []byte) {
	_ = row[turnRow-1]
	le := binary.LittleEndian
	*t = turn{
		time: storage.Time(le.Uint64(row)), conv: int32(le.Uint32(row[8:])), prev: -1, next: -1, count: le.Uint16(row[12:]),
		userLen: le.Uint16(row[14:]), asstLen: le.Uint16(row[16:]), speaker: le.Uint16(row[18:]), lives: le.Uint16(row[20:]),
		flags: flags(row[22]), traits: text.Traits(row[23]), key: le.Uint64(row[24:]), chain: le.Uint32(row[32:]),
	}
}

// complete derives what a blob does not contain from what decode and the chunks
// brought, and validates a sample of one in every records and lists of
// postings. An index validated in full can be searched without a fault,
// whatever wrote the blob.
func (ix *index) complete(every int) error {
	turns := len(ix.turns)
	ix.headers = make([]turnHeader, turns, roomy(turns))
	order := make([]int32, 0, turns)
	sorted := true
	for i := range ix.turns {
		t := &ix.turns[i]
		if t.count == 0 || int(t.conv) >= len(ix.convs.list) || t.conv < -1 || int(t.speaker) > len(ix.speakers) ||
			t.flags&^(turnFact|turnResource|turnExpires|turnSpoken|turnPrivate|turnUnwanted|turnQuoted) != 0 {
			return errBlob
		}
		ix.private = ix.private || t.flags&turnPrivate != 0
		ix.quoted = ix.quoted || t.flags&turnQuoted != 0
		ix.unwanted = ix.unwanted || t.flags&turnUnwanted != 0
		ix.live++
		ix.liveFacts += int(t.fact())
		ix.liveMems += int(t.count)
		ix.count(t, +1)
		if t.conv >= 0 && t.flags&turnFact == 0 {
			sorted = sorted && (len(order) == 0 || ix.turns[order[len(order)-1]].time <= t.time)
			order = append(order, int32(i))
		}
	}
	if !sorted {
		slices.SortStableFunc(order, func(a, b int32) int { return int(min(max(ix.turns[a].time-ix.turns[b].time, -1), 1)) })
	}
	for _, n := range order { // like link, for turns in order
		t := &ix.turns[n]
		c := &ix.convs.list[t.conv]
		if t.prev = c.last; t.prev >= 0 {
			ix.turns[t.prev].next = n
		}
		c.last = n
		c.count++
	}
	for i := range ix.turns {
		ix.headers[i] = ix.turns[i].turnHeader()
	}
	for i := range ix.posts {
		if p := &ix.posts[i]; int(p.last) > turns || p.df > p.last || p.facts > p.df {
			return errBlob
		}
	}
	if every == 1 && !(ix.byTurn.validate(turns) && ix.byID.validate(len(ix.mems)) && ix.terms.validate() && ix.convs.names.validate()) || !ix.sample(every) {
		return errBlob
	}
	return nil
}

// sampleEvery is the sampling rate when a blob is read.
const sampleEvery = 64

// sample validates one in every turns and lists of postings, including the
// first and the last.
func (ix *index) sample(every int) bool {
	for i := 0; i < len(ix.turns); i = nextSample(i, every, len(ix.turns)) {
		if !(validator{ix}).validTurn(int32(i)) {
			return false
		}
	}
	for i := 0; i < len(ix.posts); i = nextSample(i, every, len(ix.posts)) {
		if !(validator{ix}).validPostings(&ix.posts[i]) {
			return false
		}
	}
	return true
}

func nextSample(i, every, n int) int {
	if i < n-1 {
		return min(i+every, n-1)
	}
	return n
}

// verify reads a blob as a load does, and validates all of it.
func verify(parts [][]byte) error {
	var r blobReader
	var content [][]byte
	for _, part := range parts {
		c, err := r.open(part)
		if err != nil {
			return err
		}
		content = append(content, c)
	}
	ix, _, chunks, err := decode(content[0], content[1])
	if err != nil {
		return err
	}
	for _, part := range content[2:] {
		if chunks, err = ix.arena.take(part, chunks); err != nil {
			return err
		}
	}
	if len(chunks) > 0 {
		return errBlob
	}
	return ix.complete(1)
}

// anyMemory reports whether is holds for any memory of a turn that may expire.
func (ix blobWriter) anyMemory(is func(i int32) bool) bool {
	for n := range ix.turns {
		t := &ix.turns[n]
		if t.flags&turnExpires == 0 || t.flags&turnDead != 0 {
			continue
		}
		for i := t.mem; i < t.mem+int32(t.count); i++ {
			if is(i) {
				return true
			}
		}
	}
	return false
}

// firstExpiry returns when the first memory expires, 0 for never.
func (ix blobWriter) firstExpiry() (first storage.Time) {
	ix.anyMemory(func(i int32) bool {
		if at := ix.expires(i); at != 0 && (first == 0 || at < first) {
			first = at
		}
		return false
	})
	return first
}

// snapshotable reports whether the index is worth a snapshot, complete, and
// small enough that its description fits into one record, which ends at some
// 150,000 memories.
func (ix blobWriter) snapshotable() bool {
	const perTurn, perMemory, perTerm = 52, 6, 8 // bytes, rarely exceeded; of a term, besides its name
	names := ix.terms.held() + ix.convs.names.held()
	first := int64(perTurn*len(ix.turns)+perMemory*len(ix.mems)+perTerm*len(ix.posts)+4*len(ix.byTurn.slots)+4*len(ix.byID.slots)) + names + ix.coder.Held()
	return ix.liveMems >= minSnapshotMemories && ix.omitted == 0 && max(first, int64(roomy(int(ix.postBytes)))+names) < storage.MaxRecord &&
		len(ix.arena.chunks) <= storage.MaxRecords-2
}

// take adds the chunks of a part, and returns the lengths of those that are
// still to come.
func (a *arena) take(part []byte, lengths []int) ([]int, error) {
	for first := true; first || len(part) > 0; first = false {
		if len(lengths) == 0 || lengths[0] <= 0 || lengths[0] > len(part) {
			return nil, errBlob
		}
		n := lengths[0]
		a.chunks = append(a.chunks, part[:n:n])
		a.size += int64(n)
		part, lengths = part[n:], lengths[1:]
	}
	return lengths, nil
}
