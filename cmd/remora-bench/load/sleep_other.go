//go:build !linux

package load

import "time"

func sharpenTimers() {}

func shortenSlices() {}

func usualSlice() {}

func preciseSleep(d time.Duration) { time.Sleep(d) }
