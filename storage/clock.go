package storage

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// clock is what [SetClock] was given; nil = the machine's.
var clock atomic.Pointer[func() time.Time]

// SetClock has [Clock] and [Now] ask now instead of the machine, for tests and
// measurements that play months in minutes. What is dated, expires, or is said
// to be so long ago follows this clock; deadlines, pauses and durations do not.
func SetClock(now func() time.Time) { clock.Store(&now) }

// Clock returns the current date and time.
func Clock() time.Time {
	if now := clock.Load(); now != nil {
		return (*now)()
	}
	return time.Now()
}

// Now is Clock as a Time.
func Now() Time { return TimeOf(Clock()) }

// FollowClock sets the clock to the machine's and what the file at path says to
// add to it: a duration such as -720h, read at every look at the clock. While
// the file can't be read, the last duration holds.
func FollowClock(path string) error {
	read := func() (time.Duration, error) {
		b, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		return time.ParseDuration(strings.TrimSpace(string(b)))
	}
	first, err := read()
	if err != nil {
		return fmt.Errorf("the clock's file: %w", err)
	}
	var last atomic.Int64
	last.Store(int64(first))
	SetClock(func() time.Time {
		if d, err := read(); err == nil {
			last.Store(int64(d))
		}
		return time.Now().Add(time.Duration(last.Load()))
	})
	return nil
}
