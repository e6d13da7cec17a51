package control

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"
)

// resident is what a process has in memory, in MiB. Pages of files, such as
// the tables of the store that it has mapped, are the system's to drop.
type resident struct {
	anon  float64 // not of files
	all   float64
	known bool
}

const sampleEvery = 10 * time.Millisecond

// residentOf reads /proc; where there is none, nothing is known.
func residentOf(pid int) resident {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return resident{}
	}
	anon, ok := kib(status, "RssAnon:")
	all, _ := kib(status, "VmRSS:")
	return resident{anon / 1024, all / 1024, ok}
}

func kib(status []byte, field string) (float64, bool) {
	_, after, ok := bytes.Cut(status, []byte(field))
	if !ok {
		return 0, false
	}
	fields := bytes.Fields(after[:min(len(after), 40)])
	if len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(fields[0]), 64)
	return n, err == nil
}

// watchMemory samples processes until ctx ends and returns the highest of each.
func watchMemory(ctx context.Context, pids []int) []resident {
	highest := make([]resident, len(pids))
	for {
		for i, pid := range pids {
			now, top := residentOf(pid), &highest[i]
			top.anon, top.all, top.known = max(top.anon, now.anon), max(top.all, now.all), top.known || now.known
		}
		select {
		case <-time.After(sampleEvery):
		case <-ctx.Done():
			return highest
		}
	}
}
