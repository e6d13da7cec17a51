package control

import (
	"slices"
	"time"
)

// times are how long calls took.
type times []time.Duration

// quantile returns the smallest time that at least the share q of the calls did
// not exceed, 0 if there are none.
func (t times) quantile(q float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// middle returns the median of figures, NaN if there are none.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return nan
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
