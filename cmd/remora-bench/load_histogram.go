package main

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// Buckets of a histogram: values below 2^histogramBits ns have one each; above, every power of two is cut into
// 2^histogramBits, so that a bucket is at most 0.8 % wide. The last bucket also takes what is longer than 68 s.
const (
	histogramBits    = 7
	histogramSub     = 1 << histogramBits
	histogramBuckets = (37 - histogramBits) * histogramSub
)

// histogram counts durations in 15 KiB whatever their number. It is not safe for concurrent use: each worker fills one
// of its own and they are merged afterwards.
type histogram struct {
	counts [histogramBuckets]uint32
	n      uint64
	max    time.Duration
}

func histogramBucket(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < histogramSub {
		return int(v)
	}
	shift := bits.Len64(v) - histogramBits - 1
	return min(shift*histogramSub+int(v>>shift), histogramBuckets-1)
}

// histogramRange is the half-open range of nanoseconds that a bucket counts.
func histogramRange(bucket int) (low, high float64) {
	if bucket < 2*histogramSub {
		return float64(bucket), float64(bucket + 1)
	}
	shift := bucket/histogramSub - 1
	v := uint64(bucket-shift*histogramSub) << shift
	return float64(v), float64(v + 1<<shift)
}

func (h *histogram) add(d time.Duration) {
	h.counts[histogramBucket(d)]++
	h.n++
	h.max = max(h.max, d)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
	h.max = max(h.max, other.max)
}

// quantile is the smallest duration that at least the share q of the values does not exceed, interpolated within its
// bucket; 0 where there are no values.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(q*float64(h.n))), 1)
	var before uint64
	for i, n := range h.counts {
		if n == 0 || before+uint64(n) < rank {
			before += uint64(n)
			continue
		}
		low, high := histogramRange(i)
		at := low + (high-low)*(float64(rank-before)-0.5)/float64(n)
		return min(time.Duration(at), h.max)
	}
	return h.max
}

// median is the middle of the values, the mean of the two middle ones where their number is even, and NaN where there
// are none. Values that are NaN do not count.
func median(values []float64) float64 {
	sorted := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	slices.Sort(sorted)
	switch n := len(sorted); {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}
