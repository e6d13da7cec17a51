package vector

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

func randomVector(r *rand.Rand, dim int, offset float64) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(r.NormFloat64() + offset)
	}
	return unit(v)
}

// unit scales a vector to length one, in place.
func unit(v []float32) []float32 {
	length := math.Sqrt(dot(v, v))
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return v
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// The scan must not lose what exact cosines would find, even if all vectors
// share a direction.
func TestNearestFindsTheNearest(t *testing.T) {
	for _, offset := range []float64{0, 2} {
		for _, dim := range []int{64, 100, 384} {
			r := rand.New(rand.NewPCG(1, uint64(dim)))
			v := New()
			var all [][]float32
			for i := range 2000 {
				x := randomVector(r, dim, offset)
				all = append(all, x)
				v.Put(uint64(i+1), Mark{}, Quantize(x))
			}
			found, close := 0, 0.0
			for i := range 20 {
				q := slices.Clone(all[i*7])
				for j := range q { // like one of them, but not it
					q[j] += float32(r.NormFloat64() * 0.5 / math.Sqrt(float64(dim)))
				}
				unit(q)
				best := v.Nearest(q, new(Scratch))
				if len(best) < rescored {
					t.Fatalf("got %d, want at least %d", len(best), rescored)
				}
				top := slices.MaxFunc(best, func(a, b Neighbor) int { return cmp.Compare(a.Z, b.Z) })
				if top.ID == uint64(i*7+1) {
					found++
				}
				order, like := make([]int, len(all)), make([]float64, len(all))
				for k := range order {
					order[k], like[k] = k, dot(all[k], q)
				}
				slices.SortFunc(order, func(a, b int) int { return cmp.Compare(like[b], like[a]) })
				for _, k := range order[:10] {
					if slices.ContainsFunc(best, func(n Neighbor) bool { return n.ID == uint64(k+1) }) {
						close += 0.1
					}
				}
			}
			if found < 20 {
				t.Errorf("dimension %d, offset %g: %d of 20 found", dim, offset, found)
			}
			if close/20 < 0.7 { // of ten, nine are noise
				t.Errorf("dimension %d, offset %g: %.2f of the ten nearest survive the scan", dim, offset, close/20)
			}
		}
	}
}

// Computed by hand: the cosines of four vectors along the axes to a query along
// the first are one 1 and three 0.
func TestBackgroundByHand(t *testing.T) {
	v := New()
	for i := range 4 {
		x := make([]float32, 4)
		x[i] = 1
		v.Put(uint64(i+1), Mark{}, Quantize(x))
	}
	best := v.Nearest([]float32{1, 0, 0, 0}, new(Scratch))
	deviation := math.Sqrt(3.0 / 16 * (1 + prior/4.0))
	want := map[uint64]float64{1: 0.75 / deviation, 2: -0.25 / deviation, 3: -0.25 / deviation, 4: -0.25 / deviation}
	for _, n := range best {
		if math.Abs(n.Z-want[n.ID]) > 1e-6 {
			t.Errorf("%d: got %f, want %f", n.ID, n.Z, want[n.ID])
		}
		delete(want, n.ID)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if got := v.Nearest([]float32{1, 0, 0}, new(Scratch)); got != nil {
		t.Errorf("a query of another dimension finds %v", got)
	}
	alone := New()
	alone.Put(1, Mark{}, Quantize([]float32{1, 0}))
	if got := alone.Nearest([]float32{1, 0}, new(Scratch)); got != nil {
		t.Errorf("a single memory stands out: %v", got)
	}
}

// TestStoreAgainstMap compares random changes to those of plain maps.
func TestStoreAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	v := New()
	model := map[uint64][]int8{}
	waits := map[uint64]bool{}
	for range 20_000 {
		id := uint64(r.IntN(900) + 1)
		switch r.IntN(5) {
		case 0, 1:
			x := Quantize(randomVector(r, 70, 0))
			v.Put(id, Mark{Memory: id}, x)
			model[id] = x
			delete(waits, id)
		case 2:
			v.Remove(id)
			delete(model, id)
			delete(waits, id)
		case 3:
			v.Want(id)
			delete(model, id)
			waits[id] = true
		case 4:
			for _, id := range v.Next(2) {
				if !waits[id] {
					t.Fatalf("Next returns %d, which needs no vector", id)
				}
				v.Refuse(id)
				delete(waits, id)
			}
		}
		if len(v.queue) > 2*len(v.at)+1025 {
			t.Fatalf("%d ids are queued for %d memories", len(v.queue), len(v.at))
		}
	}
	if v.Len() != len(model) || v.wanting != len(waits) || len(v.codes) != v.Len()*v.words {
		t.Fatalf("got %d vectors and %d wanted, want %d and %d", v.Len(), v.wanting, len(model), len(waits))
	}
	for id, x := range model {
		m, ok := v.Find(id)
		if !ok || m.Memory != id || !slices.Equal(x, v.numbers(v.at[id])) {
			t.Fatalf("the vector of %d is not the one that was put", id)
		}
		code := slices.Clone(v.code(v.at[id]))
		if v.encode(v.at[id]); !slices.Equal(code, v.code(v.at[id])) {
			t.Fatalf("%d has the signs of another vector", id)
		}
	}
	dropped, oldest := v.Keep(10, func(id uint64) storage.Time { return storage.Time(id) })
	if dropped != len(model)-10 || v.Len() != 10 || uint64(oldest) != slices.Min(v.ids) {
		t.Errorf("kept %d of %d", v.Len(), len(model))
	}
	for _, id := range v.ids {
		newer := 0
		for other := range model {
			if other > id {
				newer++
			}
		}
		if newer >= 10 {
			t.Errorf("%d is kept but not among the ten newest", id)
		}
	}
	for id := range uint64(8) {
		v.Remove(1000 + id)
		v.Want(1000 + id)
	}
	if v.GiveUp(func(id uint64) bool { return id >= 1004 }); v.wanting != 4 || !slices.Equal(v.queue, []uint64{1004, 1005, 1006, 1007}) {
		t.Errorf("%d are wanted and %v queued, want the four that are newer", v.wanting, v.queue)
	}
}

func TestReadSegment(t *testing.T) {
	s := Segment{Number: 1, Model: "m"}
	s.Add(Mark{Memory: 1, Text: 2}, []int8{1, -2, 127})
	s.Add(Mark{Memory: 3, Text: 4}, []int8{-127, 0, 5})
	got, err := ReadSegment(1, s.Value())
	if err != nil || got.Len() != 2 || got.Model != "m" || got.Dim != 3 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if m, n := got.Mark(1), got.Numbers(1); m != (Mark{3, 4, 1}) || !slices.Equal(n, []int8{-127, 0, 5}) {
		t.Errorf("got %+v, %v", m, n)
	}
	for cut := range len(s.Value()) - 1 {
		if s, err := ReadSegment(1, s.Value()[:cut]); err == nil && s.Len() > 1 {
			t.Errorf("cut at %d: %d entries", cut, s.Len())
		}
	}
	for key, want := range map[string]bool{Key(1): true, "v/00000001": true, "v/1": false, "snapshot": false, "v/0000000g": false, "v/000000001": false} {
		if _, ok := SegmentOf(key); ok != want {
			t.Errorf("%s: got %v, want %v", key, ok, want)
		}
	}
}

func FuzzReadSegment(f *testing.F) {
	s := Segment{Model: "m"}
	s.Add(Mark{Memory: 1, Text: 2}, []int8{1, -2, 127})
	f.Add(s.Value())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ReadSegment(0, b)
		if err != nil {
			return
		}
		for i := range s.Len() {
			if n := s.Numbers(i); len(n) != s.Dim {
				t.Fatalf("entry %d has dimension %d, want %d", i, len(n), s.Dim)
			}
		}
	})
}

func BenchmarkNearest(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%dx768", n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			v := New()
			numbers := make([]int8, 768)
			for i := range n {
				for j := range numbers {
					numbers[j] = int8(r.Uint32())
				}
				v.Put(uint64(i+1), Mark{}, numbers)
			}
			q := randomVector(r, 768, 0)
			s := new(Scratch)
			for b.Loop() {
				v.Nearest(q, s)
			}
			b.ReportMetric(float64(v.Bytes())/float64(n), "B/vector")
		})
	}
}
