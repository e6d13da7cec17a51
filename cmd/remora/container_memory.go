package main

import (
	"strconv"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// containerMemory returns the memory limit of this process's control group, in bytes, or 0 if it has none.
func containerMemory() uint64 {
	limit, err := memlimit.FromCgroup()
	if err != nil { // no limit, or no control groups
		return 0
	}
	return limit
}

// fit lowers what was left at its default to its share of a container's memory, but not below a part of it that is set.
func (l *loader) fit(table []setting) {
	if l.place.memory == 0 {
		return
	}
	for _, s := range table {
		if _, set := l.origins[s.key]; set || s.share == 0 {
			continue
		}
		share := max(s.least, int64(float64(l.place.memory)*s.share))
		for _, part := range table {
			if _, set := l.origins[part.key]; set && part.key == s.holds {
				if n, ok := part.at.encode().(int64); ok {
					share = max(share, n)
				}
			}
		}
		if n, ok := s.at.encode().(int64); !ok || n <= share {
			continue
		}
		if err := s.at.parse(strconv.FormatInt(share, 10)); err != nil {
			l.found.add(s.key, "its share of the container's memory", err.Error())
		}
	}
}

// ownMemory is what the runtime of the proxy's process is to stay below in a container: what the store's process leaves, but for
// 3/16 of all. That is for what the runtimes don't count, some 4 MiB each, and the system's, for its buffers and the files that both
// have mapped. 0 = no limit. What lives at full bounds is half of it, but for bodies and answers, which are another quarter: a collector
// that had to take more than half of the processor time would let the heap grow beyond its limit instead.
func (c *config) ownMemory(container uint64) int64 {
	if container == 0 {
		return 0
	}
	rest := int64(container - container/16*3)
	if c.store.isolation != isolationInline {
		rest -= c.store.memoryBytes
	}
	return max(rest, int64(container/4))
}
