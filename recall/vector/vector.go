// Package vector holds the embeddings of one scope's memories, finds those
// nearest to a query's, and reads and writes the records that they are stored
// in.
//
// A [Store] knows memories by the hash of their id under the index's seed;
// which of them still exist is for the index to say. Each vector is held twice:
// as one bit a number, its sign against the center of all, in one contiguous
// array that a query scans; and as one byte a number, by which the best of the
// scan are compared again. A vector takes dim/8 + dim + 28 bytes and a slot of
// a map: 0.95 kB at 768. Cosines of different models mean different things, so
// Nearest compares each with those of a sample of the scope.
//
// A Store belongs to its owner's lock: any number of readers or one writer.
// When it is to embed, and when to write, is the owner's business. Records are
// read back defensively: one that is damaged, or of another model, gives an
// error or is skipped, and its memories are embedded again.
package vector

import (
	"cmp"
	"math"
	"slices"

	"github.com/remora-proxy/remora/storage"
)

// Store holds the vectors of one scope, all of one dimension, and knows which
// memories still need one.
type Store struct {
	dim, words int // words of 64 signs; 0 before the first vector

	ids    []uint64 // by slot: the index's hash of the memory's id
	marks  []Mark   // by slot
	codes  []uint64 // by slot, words each
	scales []float32
	exact  [][]int8 // chunks of exactChunk slots, dim each

	at       map[uint64]int32 // slot by id, or wanted, or refused
	wanting  int              // ids that are wanted
	queue    []uint64         // wanted ids, the most urgent last; those that at doesn't call wanted are skipped
	center   []float32        // what the signs are taken against
	centerAt int              // number of vectors at which the center is computed again
}

// Mark ties a vector to the record that holds it and to the text that it was
// made of.
type Mark struct {
	Memory, Text uint64 // Hash of the memory's id and of its text
	Segment      uint32 // number of the record, 0 before there is one
}

// Entry is a vector with what it belongs to.
type Entry struct {
	ID      uint64 // the index's hash of the memory's id
	Mark    Mark
	Numbers []int8 // as Quantize returns them; nil if the server refused the text
}

const (
	wanted  int32 = -1 // no vector yet
	refused int32 = -2 // the server won't make one

	exactChunk = 256

	// The center is computed at so many vectors, then at four times as many,
	// and no more from the last on: it is good enough by then, and computing it
	// would stop the scope for too long.
	firstCenter, lastCenter = 16, 4096
)

// New returns an empty store.
func New() *Store { return &Store{at: map[uint64]int32{}, centerAt: firstCenter} }

// Len returns the number of vectors.
func (v *Store) Len() int { return len(v.ids) }

// Dim returns the dimension of the vectors, 0 before the first.
func (v *Store) Dim() int { return v.dim }

// Bytes estimates the heap that the store holds; a nil one holds none.
func (v *Store) Bytes() int64 {
	if v == nil {
		return 0
	}
	return int64(cap(v.ids)+cap(v.codes)+cap(v.queue))*8 + int64(cap(v.marks))*24 + int64(cap(v.scales)+cap(v.center))*4 +
		int64(len(v.exact)*exactChunk*v.dim) + int64(len(v.at))*28
}

// Want notes that a memory needs a vector, and drops the one that it has. It is
// the most urgent then.
func (v *Store) Want(id uint64) {
	if v.Wants(id) {
		return
	}
	v.Remove(id)
	v.at[id] = wanted
	v.wanting++
	if len(v.queue) > 2*len(v.at)+1024 { // mostly of memories that came and went
		v.queue = v.queue[:0]
		for id, at := range v.at {
			if at == wanted {
				v.queue = append(v.queue, id)
			}
		}
		return
	}
	v.queue = append(v.queue, id)
}

// Wants reports whether a memory is known to need a vector.
func (v *Store) Wants(id uint64) bool {
	at, ok := v.at[id]
	return ok && at == wanted
}

// Wanting returns how many memories need a vector.
func (v *Store) Wanting() int { return v.wanting }

// Knows reports whether a memory has a vector, needs one, or was refused one.
func (v *Store) Knows(id uint64) bool {
	_, ok := v.at[id]
	return ok
}

// Next takes up to n wanted ids from the queue, the most urgent first. They
// stay wanted; Requeue puts back those that got no vector.
func (v *Store) Next(n int) []uint64 {
	var ids []uint64
	for len(v.queue) > 0 && len(ids) < n {
		id := v.queue[len(v.queue)-1]
		v.queue = v.queue[:len(v.queue)-1]
		if v.at[id] == wanted && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Requeue puts those of the ids that are still wanted back into the queue.
func (v *Store) Requeue(ids []uint64) {
	for _, id := range ids {
		if v.Wants(id) {
			v.queue = append(v.queue, id)
		}
	}
}

// Queued reports whether Next may find something.
func (v *Store) Queued() bool { return len(v.queue) > 0 }

// ReverseQueue makes the least urgent the most urgent.
func (v *Store) ReverseQueue() { slices.Reverse(v.queue) }

// Find returns the mark of a memory's vector.
func (v *Store) Find(id uint64) (Mark, bool) {
	if at, ok := v.at[id]; ok && at >= 0 {
		return v.marks[at], true
	}
	return Mark{}, false
}

// Put stores the vector of a memory, as Quantize returns it. It reports false,
// and stores nothing, if the store's vectors have another dimension.
func (v *Store) Put(id uint64, m Mark, numbers []int8) bool {
	if v.dim == 0 {
		v.dim, v.words = len(numbers), (len(numbers)+63)/64
	}
	if len(numbers) != v.dim {
		return false
	}
	slot, ok := v.at[id]
	if !ok || slot < 0 {
		if ok && slot == wanted {
			v.wanting--
		}
		slot = int32(len(v.ids))
		v.at[id] = slot
		v.ids = append(v.ids, id)
		v.marks = append(v.marks, Mark{})
		v.scales = append(v.scales, 0)
		v.codes = append(v.codes, make([]uint64, v.words)...)
		if int(slot)/exactChunk == len(v.exact) {
			v.exact = append(v.exact, make([]int8, exactChunk*v.dim))
		}
	}
	v.marks[slot] = m
	copy(v.numbers(slot), numbers)
	v.scales[slot] = scaleOf(numbers)
	v.encode(slot)
	if len(v.ids) >= v.centerAt && v.centerAt <= lastCenter {
		v.centerAt *= 4
		v.computeCenter()
	}
	return true
}

// Refuse notes that a memory gets no vector.
func (v *Store) Refuse(id uint64) {
	v.Remove(id)
	v.at[id] = refused
}

// Remove forgets a memory.
func (v *Store) Remove(id uint64) {
	slot, ok := v.at[id]
	if !ok {
		return
	}
	delete(v.at, id)
	if slot == wanted {
		v.wanting--
	}
	if slot < 0 {
		return
	}
	last := int32(len(v.ids) - 1)
	if slot != last { // the last moves into its place
		v.ids[slot], v.marks[slot], v.scales[slot] = v.ids[last], v.marks[last], v.scales[last]
		copy(v.code(slot), v.code(last))
		copy(v.numbers(slot), v.numbers(last))
		v.at[v.ids[slot]] = slot
	}
	clear(v.numbers(last))
	v.ids, v.marks, v.scales = v.ids[:last], v.marks[:last], v.scales[:last]
	v.codes = v.codes[:int(last)*v.words]
	if chunks := (int(last) + exactChunk - 1) / exactChunk; chunks < len(v.exact) {
		v.exact = slices.Delete(v.exact, chunks, len(v.exact))
	}
}

// Keep drops all vectors but the n whose memories are the newest by when, and
// gives their memory back. oldest is the time of the oldest that is left, if
// one was dropped and one is left.
func (v *Store) Keep(n int, when func(id uint64) storage.Time) (dropped int, oldest storage.Time) {
	if n >= len(v.ids) {
		return 0, 0
	}
	order := slices.Clone(v.ids)
	times := make(map[uint64]storage.Time, len(order))
	for _, id := range order {
		times[id] = when(id)
	}
	slices.SortFunc(order, func(a, b uint64) int { return cmp.Compare(times[a], times[b]) })
	for _, id := range order[:len(order)-n] {
		v.Remove(id)
		dropped++
	}
	if n > 0 {
		oldest = times[order[len(order)-n]]
	}
	// Bytes counts capacity, so it must be given back.
	v.ids, v.marks, v.codes, v.scales = slices.Clone(v.ids), slices.Clone(v.marks), slices.Clone(v.codes), slices.Clone(v.scales)
	v.queue, v.exact = slices.Clone(v.queue), slices.Clone(v.exact)
	return dropped, oldest
}

// GiveUp forgets the queued ids that are not newer. Those that Next has taken
// are not asked about.
func (v *Store) GiveUp(newer func(id uint64) bool) (dropped int) {
	left := make([]uint64, 0, len(v.queue))
	for _, id := range v.queue {
		switch {
		case !v.Wants(id):
		case newer(id):
			left = append(left, id)
		default:
			v.Remove(id)
			dropped++
		}
	}
	v.queue = slices.Clip(left)
	return dropped
}

// InSegments returns the entries whose marks name one of these segments, by
// segment. Their numbers are the store's own.
func (v *Store) InSegments(segments map[uint32]bool) map[uint32][]Entry {
	found := map[uint32][]Entry{}
	for slot, m := range v.marks {
		if segments[m.Segment] {
			found[m.Segment] = append(found[m.Segment], Entry{ID: v.ids[slot], Mark: m, Numbers: v.numbers(int32(slot))})
		}
	}
	return found
}

func (v *Store) code(slot int32) []uint64 {
	return v.codes[int(slot)*v.words : (int(slot)+1)*v.words]
}

func (v *Store) numbers(slot int32) []int8 {
	from := int(slot) % exactChunk * v.dim
	return v.exact[slot/exactChunk][from : from+v.dim]
}

// encode sets the signs of a slot.
func (v *Store) encode(slot int32) {
	code := v.code(slot)
	clear(code)
	scale := v.scales[slot]
	for i, n := range v.numbers(slot) {
		x := float32(n) * scale
		if v.center != nil {
			x -= v.center[i]
		}
		if x > 0 {
			code[i/64] |= 1 << (i % 64)
		}
	}
}

// computeCenter makes the mean of all vectors the center. The vectors of most
// models share a direction, so signs against zero are nearly the same for all.
func (v *Store) computeCenter() {
	v.center = make([]float32, v.dim)
	for slot := range v.ids {
		scale := v.scales[slot] / float32(len(v.ids))
		for i, n := range v.numbers(int32(slot)) {
			v.center[i] += float32(n) * scale
		}
	}
	for slot := range v.ids {
		v.encode(int32(slot))
	}
}

// Quantize returns a vector as bytes, which keep its direction and lose its
// length.
func Quantize(x []float32) []int8 {
	largest := float32(0)
	for _, f := range x {
		largest = max(largest, f, -f)
	}
	q := make([]int8, len(x))
	if largest > 0 {
		for i, f := range x {
			q[i] = int8(math.Round(float64(f / largest * 127)))
		}
	}
	return q
}

// scaleOf returns the factor by which the bytes become a vector of length one.
func scaleOf(numbers []int8) float32 {
	sum := 0
	for _, n := range numbers {
		sum += int(n) * int(n)
	}
	if sum == 0 {
		return 0
	}
	return float32(1 / math.Sqrt(float64(sum)))
}
