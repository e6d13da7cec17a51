package proxy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What is asked of a lazy deadline, before or after it has passed, is what the standard library's says.
func TestLazyDeadline(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{false, true} {
		for _, end := range []string{"deadline", "parent", "own", "parent's deadline", "nothing"} {
			synctest.Test(t, func(t *testing.T) {
				top, stop := context.WithCancel(t.Context())
				defer stop()
				if end == "parent's deadline" {
					var cancel context.CancelFunc
					top, cancel = context.WithTimeout(top, time.Second/2)
					defer cancel()
				}
				at := time.Now().Add(time.Second)
				lazy := withLazyDeadline(top, at)
				plain, cancel := context.WithDeadline(top, at)
				defer cancel()
				defer lazy.end()
				if asks {
					lazy.Done()
				}
				if err := lazy.Err(); err != nil {
					t.Errorf("%s: %v at once", end, err)
				}
				switch end {
				case "deadline", "parent's deadline":
					time.Sleep(time.Second)
				case "parent":
					stop()
				case "own":
					cancel()
					lazy.end()
				}
				synctest.Wait()
				if got, want := lazy.Err(), plain.Err(); !errors.Is(got, want) {
					t.Errorf("%s, Done asked for %v: got %v, want %v", end, asks, got, want)
				}
				if want, _ := plain.Deadline(); !func() bool { got, ok := lazy.Deadline(); return ok && got.Equal(want) }() {
					t.Errorf("%s: another deadline than %v", end, want)
				}
				select {
				case <-lazy.Done():
					if end == "nothing" {
						t.Error("done before its time")
					}
				default:
					if end != "nothing" {
						t.Errorf("%s: not done", end)
					}
				}
			})
		}
	}
}

// Err never changes what it has said, whatever else comes to end the context afterwards.
func TestLazyDeadlineKeepsItsReason(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"deadline", "parent", "own"} {
		for _, look := range []bool{false, true} { // else the cancel function is the first to see it
			for _, asks := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					top, stop := context.WithTimeout(t.Context(), time.Minute)
					defer stop()
					parent, cancel := context.WithCancel(top)
					defer cancel()
					lazy := withLazyDeadline(parent, time.Now().Add(time.Second))
					if asks {
						lazy.Done()
					}
					want := context.Canceled
					switch first {
					case "deadline":
						time.Sleep(time.Second)
						want = context.DeadlineExceeded
					case "parent":
						cancel()
					case "own":
						lazy.end()
					}
					synctest.Wait()
					if got := lazy.Err(); look && !errors.Is(got, want) {
						t.Errorf("%s: got %v, want %v", first, got, want)
					}
					for _, then := range []func(){lazy.end, cancel, func() { time.Sleep(2 * time.Second) }, func() { <-lazy.Done() }, func() { time.Sleep(time.Hour) }} {
						then()
						synctest.Wait()
						if got := lazy.Err(); !errors.Is(got, want) {
							t.Fatalf("%s, looked at %v, Done asked for %v: has become %v, was %v", first, look, asks, got, want)
						}
					}
				})
			}
		}
	}
}
