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
		limit        uint64
		want         int
	}{
		{"idle", 0, 20 << 20, 1 << 62, leastGCPercent},
		{"nothing live yet", 1 << 20, 0, 1 << 62, mostGCPercent},
		{"next to nothing lives", 1 << 30, 1 << 10, 1 << 62, 3200}, // 128 MiB: the runtime takes a heap for 4 MiB at least
		{"between", 10 << 20, 40 << 20, 1 << 62, 100},
		{"in quarters", 15 << 20, 100 << 20, 1 << 62, 75},
		{"busy", 1 << 30, 40 << 20, 1 << 62, 320},
		{"busy and large", 1 << 30, 1 << 30, 1 << 62, mostGCPercent},
		{"busy in a small container", 1 << 30, 40 << 20, 128 << 20, mostGCPercent},
		{"busy in a container", 1 << 30, 40 << 20, 512 << 20, 160},
	} {
		if got := gcPercent(tt.allocs, tt.live, headroomWithin(tt.limit)); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}
