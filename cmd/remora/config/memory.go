package config

import (
	"strconv"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// containerMemory returns the memory limit of this process's control group, in
// bytes, or 0 if it has none.
func containerMemory() uint64 {
	limit, err := memlimit.FromCgroup()
	if err != nil { // no limit, or no control groups
		return 0
	}
	return limit
}

// minShare is the least that a container's size lowers a limit to, in bytes.
const minShare = 1 << 20

// fitMemory lowers defaults to their share of the container's memory, but not
// below minShare or below a setting that must fit in and was set explicitly.
func (r *report) fitMemory(table []setting, memory uint64) {
	if memory == 0 {
		return
	}
	for _, s := range table {
		var share float64
		switch _, set := r.origins[s.key]; {
		case set || s.share == 0 && s.each == 0:
			continue
		case s.each > 0:
			share = max(float64(memory)/s.each, s.at.(number).minimum())
		default:
			share = max(minShare, float64(memory)*s.share, s.at.(number).minimum())
		}
		for _, part := range table {
			if _, set := r.origins[part.key]; set && part.key == s.atLeast {
				share = max(share, part.at.(number).amount())
			}
		}
		if s.at.(number).amount() > share {
			if err := s.at.parse(strconv.FormatInt(int64(share), 10)); err != nil {
				r.add(s.key, "its share of the container's memory "+err.Error())
			}
			r.fitted[s.key] = true
		}
	}
}

// memoryLimit returns the soft memory limit for the proxy's process, in bytes,
// or 0 outside containers: 13/16 of the container's memory, less what the
// store's process may take, and at least a quarter. The other 3/16 are for what
// the runtime does not count: its own 4 MiB in each process, buffers of the
// kernel and mapped files. At full limits half of it is live and bodies and
// answers take another quarter, so that the collector keeps up.
func (c *Config) memoryLimit(container uint64) int64 {
	if container == 0 {
		return 0
	}
	rest := int64(container - container/16*3)
	if c.Store.Isolation != IsolationInline {
		rest -= c.Store.MemoryBytes
	}
	return max(rest, int64(container/4))
}
