package process

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPausesAreNotSilence guards that the time for which the whole machine was
// stopped does not count against the peer.
func TestPausesAreNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := &pendingCall{since: time.Now()}
		l := &link{out: newOutbox(), calls: map[uint32]*pendingCall{1: call}}
		time.Sleep(2 * time.Second)
		if silent, oldest := l.ping(time.Now()); silent != 0 || oldest != 2*time.Second {
			t.Fatalf("got %v, %v", silent, oldest)
		}
		time.Sleep(time.Minute + time.Second)
		l.addPause(time.Minute)
		if silent, oldest := l.ping(time.Now()); silent != time.Second || oldest != 3*time.Second {
			t.Errorf("after a minute: silent for %v, a call of %v, want 1s and 3s", silent, oldest)
		}
		l.addPause(time.Hour) // more than has passed
		if silent, oldest := l.ping(time.Now()); silent != 0 || oldest != 0 {
			t.Errorf("got %v, %v, want none", silent, oldest)
		}
	})
}
