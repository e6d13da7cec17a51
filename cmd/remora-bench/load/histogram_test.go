package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogramQuantiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		name string
		draw func() time.Duration
	}{
		{"nanoseconds", func() time.Duration { return time.Duration(rnd.IntN(100)) }},
		{"microseconds", func() time.Duration { return time.Duration(rnd.IntN(500_000)) }},
		{"long tail", func() time.Duration { return time.Duration(math.Exp(rnd.NormFloat64()*2) * 1e6) }},
		{"constant", func() time.Duration { return 1234 * time.Microsecond }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var parts [3]histogram
			var all []time.Duration
			for i := range 20_000 {
				d := tc.draw()
				all = append(all, d)
				parts[i%3].add(d)
			}
			var h histogram
			for i := range parts {
				h.merge(&parts[i])
			}
			slices.Sort(all)
			for _, q := range []float64{0, .01, .5, .9, .99, .999, 1} {
				want := all[max(int(math.Ceil(q*float64(len(all)))), 1)-1]
				got := h.quantile(q)
				// A bucket is at most 1/128 of its value wide.
				if diff := math.Abs(float64(got - want)); diff > float64(want)/128+1 {
					t.Errorf("quantile(%v) = %v, want %v", q, got, want)
				}
			}
			if got, want := h.max, all[len(all)-1]; got != want {
				t.Errorf("max = %v, want %v", got, want)
			}
		})
	}
}

func TestHistogramEdges(t *testing.T) {
	var h histogram
	if got := h.quantile(.5); got != 0 {
		t.Errorf("quantile of nothing = %v, want 0", got)
	}
	for _, d := range []time.Duration{-5, 0, time.Hour, math.MaxInt64} {
		h.add(d)
	}
	if h.count() != 4 || h.max != math.MaxInt64 {
		t.Errorf("n, max = %d, %d, want all four counted", h.count(), h.max)
	}
}

func TestMedian(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 2, 3}, 2.5},
		{[]float64{nan, 7, nan}, 7},
		{[]float64{nan}, nan},
		{nil, nan},
	} {
		got := median(tc.values)
		if got != tc.want && !(math.IsNaN(got) && math.IsNaN(tc.want)) {
			t.Errorf("median(%v) = %v, want %v", tc.values, got, tc.want)
		}
	}
}
