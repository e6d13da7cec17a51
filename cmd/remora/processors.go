package main

import "runtime"

// leastProcessors is how many threads run Go code at once, at least, on a machine that is the process's alone. On fewer, a
// batch that is redacted and a file that is synced take all of them, and a request that comes meanwhile waits for the
// scheduler of the runtime, up to 10 ms, where that of the system would let it run at once. With four, collections, audits and the
// turns that are stored still took them all, half of the times that streams stood still, and nobody looked at the network.
const leastProcessors = 6

// spareProcessors raises GOMAXPROCS to leastProcessors on small machines. It leaves alone what was set, and a container with
// a share of the processors: more threads would use the share up sooner and then stand still.
func spareProcessors(getenv func(string) string) {
	if n := processors(getenv("GOMAXPROCS"), runtime.GOMAXPROCS(0), runtime.NumCPU()); n > 0 {
		runtime.GOMAXPROCS(n)
	}
}

// processors is what GOMAXPROCS is to be, 0 = as it is.
func processors(set string, now, machine int) int {
	if set != "" || now != machine || now >= leastProcessors {
		return 0
	}
	return leastProcessors
}
