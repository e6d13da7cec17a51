package main

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// containerMemory is the least limit of memory, in bytes, that a control group of Linux sets to this process: its own or one above
// it, of either version. 0 = none.
func containerMemory(readFile func(string) ([]byte, error)) uint64 {
	least := uint64(0)
	look := func(root, group, file string) {
		for dir := path.Join("/", group); ; dir = path.Dir(dir) {
			b, _ := readFile(path.Join(root, dir, file))
			// "max" is no limit, as is the largest number of pages.
			if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); err == nil && n < 1<<62 && (least == 0 || n < least) {
				least = n
			}
			if dir == "/" {
				return
			}
		}
	}
	groups, _ := readFile("/proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // cgroups(7): hierarchy, controllers, path
		switch {
		case len(f) < 3:
		case f[1] == "":
			look("/sys/fs/cgroup", f[2], "memory.max")
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			look("/sys/fs/cgroup/memory", f[2], "memory.limit_in_bytes")
		}
	}
	return least
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
