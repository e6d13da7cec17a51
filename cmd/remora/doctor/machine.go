package doctor

import (
	"fmt"
	"time"
)

// Limits of the clock: certificates and the times of memories bear some minutes,
// signatures of requests often five.
const (
	maxSkew    = 2 * time.Minute // beyond, it is a warning
	maxTrusted = time.Hour       // beyond, it fails
)

// Clock compares this machine's clock with those of the upstreams.
func Clock(skews []Skew) Finding {
	f := Finding{Subject: "clock", Status: OK}
	if len(skews) == 0 {
		f.Text = "not compared: no upstream has told its time"
		return f
	}
	nearest := skews[0]
	for _, s := range skews[1:] {
		if s.By.Abs() < nearest.By.Abs() { // a single upstream may be wrong
			nearest = s
		}
	}
	by := nearest.By.Abs().Round(time.Second)
	if by <= maxSkew {
		f.Text = fmt.Sprintf("agrees with upstream %s to %s", nearest.Upstream, max(by, time.Second))
		return f
	}
	direction := "behind"
	if nearest.By < 0 {
		direction = "ahead of"
	}
	f.Status, f.Text = Warning, fmt.Sprintf("%s %s upstream %s", by, direction, nearest.Upstream)
	if by > maxTrusted {
		f.Status = Failed
	}
	f.Fix = "Synchronise the clock of this machine (NTP): memories get its time, and certificates depend on it."
	return f
}

// Disk reports whether there is space for the store. free is what is free where
// it lies, and least what it must have to accept anything, in bytes.
func Disk(dir string, free uint64, err error, least uint64) Finding {
	f := Finding{Subject: "disk", Status: OK, Text: fmt.Sprintf("%d MiB are free where %s lies", free>>20, dir)}
	switch {
	case err != nil:
		f.Status, f.Text = Warning, fmt.Sprintf("how much is free where %s lies can't be measured: %v", dir, err)
	case free < least:
		f.Status, f.Text = Failed, fmt.Sprintf("%s, %d MiB are needed", f.Text, least>>20)
		f.Fix = "Free some space, or move the store to another disk (storage.dir): without space nothing new is remembered."
	case free < 2*least:
		f.Status, f.Text = Warning, fmt.Sprintf("%s, and memory is off below %d MiB", f.Text, least>>20)
		f.Fix = "Free some space soon."
	}
	return f
}

// Ephemeral reports that the memories in dir will be lost, why, and what to do
// about it.
func Ephemeral(dir, reason, fix string) Finding {
	return Finding{
		Subject: "lifetime", Status: Warning, Text: fmt.Sprintf("the memories in %s will be lost: %s", dir, reason),
		Fix: fix,
	}
}
