package main

import "testing"

func TestMappedFiles(t *testing.T) {
	const mib = 1 << 20
	var m mappedFiles
	for i, tick := range []struct {
		allocs, mapped uint64
		want           bool
	}{
		{20 * mib, 10 * mib, false}, // the start is busy
		{2 * mib, 14 * mib, true},
		{2 * mib, 9 * mib, false}, // what a light load uses
		{2 * mib, 11 * mib, false},
		{2 * mib, 14 * mib, true}, // a user was loaded
		{2 * mib, 11 * mib, false},
		{0, 11 * mib, true}, // it ends
		{0, 3 * mib, false},
		{0, 3 * mib, false},
		{20 * mib, 30 * mib, false},
		{0, 30 * mib, true},
		{0, 6 * mib, false}, // can't be let go of
		{0, 6 * mib, false},
	} {
		if got := m.due(tick.allocs, tick.mapped); got != tick.want {
			t.Errorf("tick %d: %t, want %t", i, got, tick.want)
		}
	}
}
