package process

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestStoodStill: the time in which a whole machine stood still is not the peer's.
func TestStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := &pending{since: time.Now()}
		l := &link{out: newOutbox(), calls: map[uint32]*pending{1: call}}
		time.Sleep(2 * time.Second)
		if silent, oldest := l.ping(time.Now()); silent != 0 || oldest != 2*time.Second {
			t.Fatalf("got %v, %v", silent, oldest)
		}
		time.Sleep(time.Minute + time.Second)
		l.stoodStill(time.Minute)
		if silent, oldest := l.ping(time.Now()); silent != time.Second || oldest != 3*time.Second {
			t.Errorf("after a minute: silent for %v, a call of %v, want 1s and 3s", silent, oldest)
		}
		l.stoodStill(time.Hour) // more than there was
		if silent, oldest := l.ping(time.Now()); silent != 0 || oldest != 0 {
			t.Errorf("got %v, %v, want none", silent, oldest)
		}
	})
}
