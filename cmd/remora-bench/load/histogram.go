package load

import (
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the longest duration that a histogram distinguishes; longer
// ones count as it.
const maxLatency = time.Minute

// latencyDigits is the precision of a histogram, in significant decimal digits.
const latencyDigits = 2

// histogram counts durations, at a precision of 1/128 of their value, in some
// 30 KiB. The zero value is empty. It is not safe for concurrent use: each
// worker fills its own, and they are merged.
type histogram struct {
	hdr *hdrhistogram.Histogram
	max time.Duration // exact
}

func (h *histogram) init() {
	if h.hdr == nil {
		h.hdr = hdrhistogram.New(1, int64(maxLatency), latencyDigits)
	}
}

func (h *histogram) add(d time.Duration) {
	h.init()
	_ = h.hdr.RecordValue(int64(min(max(d, 0), maxLatency))) // within its range
	h.max = max(h.max, d)
}

func (h *histogram) merge(other *histogram) {
	if other.hdr == nil {
		return
	}
	h.init()
	h.hdr.Merge(other.hdr) // of the same range, so nothing is dropped
	h.max = max(h.max, other.max)
}

// count returns the number of durations.
func (h *histogram) count() int64 {
	if h.hdr == nil {
		return 0
	}
	return h.hdr.TotalCount()
}

// quantile returns the smallest duration that at least the share q of the
// durations does not exceed, 0 if there are none. It is the upper end of its
// bucket, and for q = 0 the lower end.
func (h *histogram) quantile(q float64) time.Duration {
	if h.hdr == nil {
		return 0
	}
	return min(time.Duration(h.hdr.ValueAtPercentile(100*q)), h.max)
}

// median returns the middle of the values, the mean of the two middle ones if
// their number is even, and NaN if there are none. Values that are NaN do not
// count.
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
