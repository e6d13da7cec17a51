package recall

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/remora-proxy/remora/storage"
)

// vectors holds the embeddings of one scope's memories. Each stands in two forms: one bit per number, its sign against the
// centre of all, in one contiguous array that a query scans; and one byte per number, by which the best of the scan are
// judged again. A vector takes dim/8 + dim + 28 bytes and a slot of a map: 0.95 kB at 768.
//
// Memories are known by the hash of their id under the index's seed; which of them are still there, the index knows. The
// owner guards it: any number of readers or one writer.
type vectors struct {
	dim, words int // words of 64 signs; 0 before the first vector

	ids    []uint64 // by slot: the index's hash of the memory's id
	marks  []mark   // by slot
	codes  []uint64 // by slot, words each
	scales []float32
	exact  [][]int8 // chunks of exactChunk slots, dim each

	at      map[uint64]int32 // slot by id, or wanted, or refused
	wanting int              // memories without a vector yet
	todo    []uint64         // ids to embed, the most urgent last; those that at does not call wanted are skipped
	center  []float32        // what the signs are taken against
	recode  int              // number of vectors at which the centre is taken anew
}

// mark ties a vector to the record that holds it and to the text that it was made of.
type mark struct {
	id, text uint64 // stable hashes, see stableHash
	segment  uint32
}

const (
	wanted  int32 = -1 // no vector yet
	refused int32 = -2 // the server will not make one

	exactChunk = 256

	// The centre follows the vectors up to so many; then it is as good as it gets, and moving it would cost too long a
	// stop.
	firstRecode, lastRecode = 16, 4096
)

func newVectors() *vectors { return &vectors{at: map[uint64]int32{}, recode: firstRecode} }

func (v *vectors) len() int { return len(v.ids) }

// bytes estimates the heap that is held.
func (v *vectors) bytes() int64 {
	if v == nil {
		return 0
	}
	return int64(cap(v.ids)+cap(v.codes)+cap(v.todo))*8 + int64(cap(v.marks))*24 + int64(cap(v.scales)+cap(v.center))*4 +
		int64(len(v.exact)*exactChunk*v.dim) + int64(len(v.at))*28
}

// want notes that a memory has no vector yet.
func (v *vectors) want(id uint64) {
	if at, ok := v.at[id]; ok && at == wanted {
		return
	}
	v.remove(id)
	v.at[id] = wanted
	v.wanting++
	if len(v.todo) > 2*len(v.at)+1024 { // mostly of memories that came and went
		v.todo = v.todo[:0]
		for id, at := range v.at {
			if at == wanted {
				v.todo = append(v.todo, id)
			}
		}
		return
	}
	v.todo = append(v.todo, id)
}

// next takes up to n wanted ids. They stay wanted.
func (v *vectors) next(n int) []uint64 {
	var ids []uint64
	for len(v.todo) > 0 && len(ids) < n {
		id := v.todo[len(v.todo)-1]
		v.todo = v.todo[:len(v.todo)-1]
		if v.at[id] == wanted && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// has returns the mark of a memory's vector.
func (v *vectors) has(id uint64) (mark, bool) {
	if at, ok := v.at[id]; ok && at >= 0 {
		return v.marks[at], true
	}
	return mark{}, false
}

// put takes the vector of a memory, in the bytes of quantize. One of another dimension than those here is not taken.
func (v *vectors) put(id uint64, m mark, numbers []int8) bool {
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
		v.marks = append(v.marks, mark{})
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
	if len(v.ids) >= v.recode && v.recode <= lastRecode {
		v.recode *= 4
		v.takeCenter()
	}
	return true
}

// refuse notes that a memory gets no vector.
func (v *vectors) refuse(id uint64) {
	v.remove(id)
	v.at[id] = refused
}

// remove forgets a memory.
func (v *vectors) remove(id uint64) {
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

// keep drops all but the newest, by when, down to at most n vectors. oldest is the time of the oldest that stays, and
// does not tell anything where none does.
func (v *vectors) keep(n int, when func(id uint64) storage.Time) (dropped int, oldest storage.Time) {
	if n < len(v.ids) {
		order := make([]uint64, len(v.ids))
		copy(order, v.ids)
		times := make(map[uint64]storage.Time, len(order))
		for _, id := range order {
			times[id] = when(id)
		}
		slices.SortFunc(order, func(a, b uint64) int { return cmp.Compare(times[a], times[b]) })
		for _, id := range order[:len(order)-n] {
			v.remove(id)
			dropped++
		}
		if n > 0 {
			oldest = times[order[len(order)-n]]
		}
		// What is counted is what is held, so the room must be given back.
		v.ids, v.marks, v.codes, v.scales = slices.Clone(v.ids), slices.Clone(v.marks), slices.Clone(v.codes), slices.Clone(v.scales)
		v.todo, v.exact = slices.Clone(v.todo), slices.Clone(v.exact)
	}
	return dropped, oldest
}

// giveUp drops of what waits all that is not newer; what is with the server is not asked about.
func (v *vectors) giveUp(newer func(id uint64) bool) (dropped int) {
	left := make([]uint64, 0, len(v.todo))
	for _, id := range v.todo {
		switch at, ok := v.at[id]; {
		case !ok || at != wanted:
		case newer(id):
			left = append(left, id)
		default:
			v.remove(id)
			dropped++
		}
	}
	v.todo = slices.Clip(left)
	return dropped
}

func (v *vectors) code(slot int32) []uint64 {
	return v.codes[int(slot)*v.words : (int(slot)+1)*v.words]
}

func (v *vectors) numbers(slot int32) []int8 {
	from := int(slot) % exactChunk * v.dim
	return v.exact[slot/exactChunk][from : from+v.dim]
}

// encode sets the signs of a slot.
func (v *vectors) encode(slot int32) {
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

// takeCenter moves the centre to the mean. The vectors of most models share a direction, which makes signs against zero
// alike for all.
func (v *vectors) takeCenter() {
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

// quantize turns a vector into bytes; its length is lost.
func quantize(x []float32) []int8 {
	most := float32(0)
	for _, f := range x {
		most = max(most, f, -f)
	}
	q := make([]int8, len(x))
	if most > 0 {
		for i, f := range x {
			q[i] = int8(math.Round(float64(f / most * 127)))
		}
	}
	return q
}

// scaleOf is what makes the bytes a vector of length one.
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

// near is a memory and how far its likeness to the query stands above that of the scope's others.
type near struct {
	id uint64
	z  float64 // standard deviations of the cosine above the mean of the scope
}

const (
	rescored = 256 // of the scan's best are judged by their bytes
	sampled  = 128 // vectors give the background
	// prior is how many vectors' worth of doubt the background starts with: among a handful nothing stands out.
	prior = 16
)

// nearScratch is what one search needs; it is pooled.
type nearScratch struct {
	far   []uint16 // by slot
	count []int32  // by distance
	code  []uint64
	query []int32
	best  []near
}

// nearest returns the memories whose vectors are most like the query's, of length one, in no order. The cosines of any
// model mean nothing by themselves, so they are told against those of a sample of the scope to the same query. The
// result is valid until the scratch is used again. A query of another dimension is nobody's neighbour.
func (v *vectors) nearest(q []float32, s *nearScratch) []near {
	n := len(v.ids)
	s.best = s.best[:0]
	if n == 0 || len(q) != v.dim {
		return nil
	}
	// By Cauchy and Schwarz a sum of products is at most 2047 * 127 * sqrt(dim), far below 2^31.
	s.query = slices.Grow(s.query[:0], v.dim)[:v.dim]
	for i, x := range q {
		s.query[i] = int32(math.Round(float64(max(-1, min(x, 1)) * 2047)))
	}
	mean, deviation := v.background(s.query)
	if deviation == 0 {
		return nil
	}
	limit := v.scan(q, s)
	for slot, far := range s.far[:n] {
		if int(far) > limit {
			continue
		}
		if len(s.best) == 2*rescored { // many at the same distance: the dimension is small
			break
		}
		s.best = append(s.best, near{v.ids[slot], (v.cosine(int32(slot), s.query) - mean) / deviation})
	}
	return s.best
}

// scan fills s.far with Hamming distances and returns the one up to which about the rescored best lie.
func (v *vectors) scan(q []float32, s *nearScratch) (limit int) {
	s.code = slices.Grow(s.code[:0], v.words)[:v.words]
	clear(s.code)
	for i, x := range q {
		if v.center != nil {
			x -= v.center[i]
		}
		if x > 0 {
			s.code[i/64] |= 1 << (i % 64)
		}
	}
	n := len(v.ids)
	s.far = slices.Grow(s.far[:0], n)[:n]
	s.count = slices.Grow(s.count[:0], v.dim+1)[:v.dim+1]
	clear(s.count)
	query, words := s.code, v.words
	for slot := range s.far {
		code := v.codes[slot*words:][:len(query)]
		far := 0
		for i, c := range code {
			far += bits.OnesCount64(c ^ query[i])
		}
		s.far[slot] = uint16(far)
		s.count[far]++
	}
	total := int32(0)
	for d, c := range s.count {
		if total += c; total >= rescored {
			return d
		}
	}
	return v.dim
}

// background is the mean and the standard deviation of the cosines of a sample.
func (v *vectors) background(q []int32) (mean, deviation float64) {
	n := len(v.ids)
	if n < 2 {
		return 0, 0
	}
	k := min(n, sampled)
	var sum, squares float64
	for i := range k {
		c := v.cosine(int32(i*n/k), q)
		sum += c
		squares += c * c
	}
	mean = sum / float64(k)
	variance := squares/float64(k) - mean*mean
	if variance <= 1e-12 {
		return mean, 0
	}
	return mean, math.Sqrt(variance * (1 + prior/float64(n)))
}

// cosine of a slot to a query of 12 bits.
func (v *vectors) cosine(slot int32, q []int32) float64 {
	numbers := v.numbers(slot)
	numbers = numbers[:len(q)]
	var a, b int32
	i := 0
	for ; i+4 <= len(q); i += 4 {
		x, y := q[i:i+4:i+4], numbers[i:i+4:i+4]
		a += x[0]*int32(y[0]) + x[1]*int32(y[1])
		b += x[2]*int32(y[2]) + x[3]*int32(y[3])
	}
	for ; i < len(q); i++ {
		a += q[i] * int32(numbers[i])
	}
	return float64(a+b) * float64(v.scales[slot]) / 2047
}
