package main

import "testing"

func TestProcessors(t *testing.T) {
	for _, tt := range []struct {
		name         string
		set          string
		now, machine int
		want         int
	}{
		{"small machine", "", 2, 2, leastProcessors},
		{"one core", "", 1, 1, leastProcessors},
		{"large machine", "", 8, 8, 0},
		{"share of a machine", "", 2, 16, 0},
		{"set by the environment", "2", 2, 2, 0},
	} {
		if got := processors(tt.set, tt.now, tt.machine); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestGCPercent(t *testing.T) {
	for _, tt := range []struct {
		name         string
		allocs, live uint64
		want         int
	}{
		{"idle", 0, 20 << 20, leastGCPercent},
		{"nothing live yet", 1 << 20, 0, mostGCPercent},
		{"between", 40 << 20, 40 << 20, 50},
		{"busy", 1 << 30, 40 << 20, mostGCPercent},
	} {
		if got := gcPercent(tt.allocs, tt.live); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}
