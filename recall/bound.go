package recall

import "math"

// boundTables are what the bounds of a crowd's marks are made of, in small whole numbers, each rounded up. Of a sum of
// x/(k1+x) the bound is that of its tangents, so that what two words bring is added up before lengths count.
type boundTables struct {
	words                [crowdWords]boundWord
	userLen, asstLen     [16]uint8 // by the coarse length, shifted
	low, high            [16]uint8 // factors by the lower four signs, and by the others
	base                 int16
	userShift, asstShift uint16
}

// boundWord is what a posting's upper and lower four bits add.
type boundWord struct{ lower, upper, assistant [16]uint8 }

const (
	mostLength = 127 // of userLen and asstLen, whose bytes count as signed
	mostBound  = 1<<15 - 1
	onceBound  = 80 // what a word adds that the user tells once
)

// of is the bound of a turn, 1 or more; what is too large to tell is mostBound.
func (t *boundTables) of(first, second frequency, l brief) int16 {
	a, b := &t.words[0], &t.words[1]
	user := int(a.lower[first&15]) + int(a.upper[first>>4]) + int(b.lower[second&15]) + int(b.upper[second>>4])
	asst := int(a.assistant[first>>4]) + int(b.assistant[second>>4])
	if user >= math.MaxUint8 || asst >= math.MaxUint8 {
		return mostBound
	}
	sum := user*int(t.userLen[min(l.user()>>t.userShift, 15)]) + asst*int(t.asstLen[min(l.assistant()>>t.asstShift, 15)]) + int(t.base)
	if sum >= mostBound {
		return mostBound
	}
	sum = sum*int(t.low[l.signs()&15])>>8 + 1
	return int16(sum*int(t.high[l>>20&15])>>8 + 1)
}

// bound fills bounds, of marks or of sums.
func (c *crowd) bound(ix *index, k1 float32, q *query, s *scratch, marks bool) {
	n := len(c.words[0].by)
	if size := (n + 63) &^ 63; cap(c.bounds) < size {
		size += size / 4 &^ 63
		c.bounds, c.over, c.more = make([]int16, size), make([]uint64, size/64), make([]uint64, size/64)
	}
	c.bounds, c.over, c.more = c.bounds[:(n+63)&^63], c.over[:(n+63)/64], c.more[:(n+63)/64]
	clear(c.bounds[n:])
	if !c.fill(ix, float64(k1), q, s, marks) { // the weights are none that bounds can be made of
		c.scale = math.MaxFloat32
		for i := range n {
			c.bounds[i] = mostBound
		}
		return
	}
	second := c.words[0].by // its table is zero
	if len(c.words) > 1 {
		second = c.words[1].by
	}
	c.tables.bounds(c.bounds[:n], c.words[0].by, second, ix.briefs)
}

// fill makes the tables.
func (c *crowd) fill(ix *index, k1 float64, q *query, s *scratch, marks bool) bool {
	const up = 1 + 1e-6 // rounding of float32
	t, m := &c.tables, &s.norms
	*t = boundTables{userShift: lengthShift(ix.userLen, ix.userTurns), asstShift: lengthShift(ix.asstLen, ix.asstTurns)}
	base, once := 0.0, 0.0
	var slopes [crowdWords]float64
	for i, w := range c.words {
		share, weight := float64(w.share), float64(w.weight)
		x := share * float64(m.user[1]+m.assistant[1]) * 1.1 // where the tangent is: what is picked has a little more than most
		slopes[i] = share * weight * k1 / ((k1 + x) * (k1 + x))
		base += weight * x * x / ((k1 + x) * (k1 + x))
		once += slopes[i] * float64(m.user[1])
	}
	user, asst := mostLength*(1-up+1)/float64(m.userLength[0]), mostLength*(1-up+1)/float64(m.assistantLength[0])
	c.scale = onceBound / once * user
	if !(c.scale > 0 && c.scale < 1e30 && user > 0 && asst > 0) {
		return false
	}
	for i := range c.words {
		for j := range 16 {
			t.words[i].lower[j] = ceil8(up * slopes[i] * float64(m.user[j]) * c.scale / user)
			t.words[i].upper[j] = ceil8(up * slopes[i] * float64(m.user[j&1<<4]) * c.scale / user)
			t.words[i].assistant[j] = ceil8(up * slopes[i] * float64(m.assistant[j>>1]) * c.scale / asst)
		}
	}
	for j := range 16 {
		t.userLen[j] = ceil8(user * float64(m.userLength[j<<t.userShift]))
		t.asstLen[j] = ceil8(asst * float64(m.assistantLength[j<<t.asstShift]))
	}
	t.base = int16(min(math.Ceil(up*base*c.scale), mostBound))
	c.factors(&s.factors, q, marks)
	return true
}

// factors makes the tables of factors. A dead turn's is 0.
func (c *crowd) factors(f *briefFactors, q *query, marks bool) {
	t := &c.tables
	factor := func(signs int) float64 {
		if !marks {
			return 1
		}
		return f.by[0][signs]
	}
	mostLow, mostHigh := 0.0, 0.0
	for i := range 16 {
		mostLow = max(mostLow, factor(i))
		mostHigh = max(mostHigh, factor(i&3<<4))
	}
	const most = math.MaxUint8 * (1 - 1e-6)
	for i := range 16 {
		t.low[i] = ceil8(most * factor(i) / mostLow)
		if i&4 == 0 {
			t.high[i] = ceil8(most * factor(i&3<<4) / mostHigh)
		}
	}
	c.scale *= most / 256 / mostLow * most / 256 / mostHigh
	if marks && q.speaker != 0 {
		c.scale /= max(1, f.by[1][0])
	}
}

// lengthShift takes lengths up to a little more than the mean to sixteen.
func lengthShift(sum, n int64) uint16 {
	shift := uint16(0)
	for ; n > 0 && shift < 4 && 16<<shift < sum*5/4/n; shift++ {
	}
	return shift
}

func ceil8(v float64) uint8 {
	n := int(min(v, math.MaxUint8))
	if float64(n) < v {
		n++
	}
	return uint8(min(n, math.MaxUint8))
}

// boundsByOne is bounds, one by one.
func (t *boundTables) boundsByOne(out []int16, first, second []frequency, briefs []brief) {
	for i := range out {
		tf := frequency(0)
		if i < len(second) {
			tf = second[i]
		}
		out[i] = t.of(first[i], tf, briefs[i])
	}
}

// overByOne is overBounds, one by one.
func overByOne(bounds []int16, least int16, over []uint64) {
	for i := range over {
		word := uint64(0)
		for j, b := range bounds[i<<6 : i<<6+64] {
			if b >= least {
				word |= 1 << j
			}
		}
		over[i] = word
	}
}
