package vector

import (
	"math"
	"math/bits"
	"slices"
)

// Neighbor is a memory and how far the cosine of its vector to the query's
// stands out from the scope's.
type Neighbor struct {
	ID uint64
	Z  float64 // standard deviations above the mean of the scope
}

const (
	rescored   = 256 // of the scan's best are compared by their bytes
	sampleSize = 128 // vectors give the mean and the deviation of the scope
	// prior widens the deviation of small scopes as if so many more vectors
	// were uncertain: among a handful nothing stands out.
	prior = 16
)

// Scratch is the memory that one search needs; it can be pooled.
type Scratch struct {
	far   []uint16 // Hamming distance by slot
	count []int32  // slots by distance
	code  []uint64
	query []int32
	best  []Neighbor
}

// Nearest returns, in no order, the memories whose vectors are most like a
// query's, which has length one. There are none if the query has another
// dimension, or if all vectors of the scope are equally like it. The result is
// valid until the scratch is used again.
func (v *Store) Nearest(q []float32, s *Scratch) []Neighbor {
	n := len(v.ids)
	s.best = s.best[:0]
	if n == 0 || len(q) != v.dim {
		return nil
	}
	// By Cauchy and Schwarz a sum of products is at most 2047 * 127 *
	// sqrt(dim), far below 2^31.
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
		s.best = append(s.best, Neighbor{v.ids[slot], (v.cosine(int32(slot), s.query) - mean) / deviation})
	}
	return s.best
}

// scan fills s.far with Hamming distances and returns the distance within which
// about the rescored best lie.
func (v *Store) scan(q []float32, s *Scratch) (limit int) {
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

// background returns the mean and the standard deviation of the cosines of a
// sample.
func (v *Store) background(q []int32) (mean, deviation float64) {
	n := len(v.ids)
	if n < 2 {
		return 0, 0
	}
	k := min(n, sampleSize)
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

// cosine returns the cosine of a slot's vector to a query of 12 bits a number.
func (v *Store) cosine(slot int32, q []int32) float64 {
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
