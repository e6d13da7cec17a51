package breaker

import (
	"testing"
	"time"
)

// A breaker opens after three failures in a row, lets one request pass after
// each cooldown, doubles the cooldown up to its limit, and closes once that
// request is answered.
func TestBreaker(t *testing.T) {
	b := Breaker{MinCooldown: 5 * time.Second, MaxCooldown: 30 * time.Second}
	now := time.Unix(0, 0)
	b.Failed(now, false, 0)
	b.Failed(now, false, 0)
	b.Succeeded(false)
	for i := range FailuresToOpen {
		if ok, probe := b.Allow(now); !ok || probe {
			t.Fatalf("closed: %t %t", ok, probe)
		}
		if opened := b.Failed(now, false, 0); opened != (i == FailuresToOpen-1) {
			t.Errorf("failure %d: opened %t", i, opened)
		}
	}
	for _, cooldown := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, 30 * time.Second} {
		if ok, _ := b.Allow(now.Add(cooldown - 1)); ok || !b.IsOpen() {
			t.Errorf("it is asked before %v have passed", cooldown)
		}
		now = now.Add(cooldown)
		if ok, probe := b.Allow(now); !ok || !probe {
			t.Errorf("after %v: %t %t", cooldown, ok, probe)
		}
		if ok, _ := b.Allow(now); ok {
			t.Error("a second probe")
		}
		b.Withdraw(false) // sent before it opened
		if ok, _ := b.Allow(now); ok {
			t.Error("an older request ended the probe")
		}
		b.Withdraw(true)
		if ok, probe := b.Allow(now); !ok || !probe {
			t.Error("a probe that showed nothing is not repeated")
		}
		if b.Failed(now, true, 0) {
			t.Error("it opened twice")
		}
	}
	now = now.Add(30 * time.Second)
	if _, probe := b.Allow(now); !probe || !b.Succeeded(true) || b.IsOpen() {
		t.Error("it is not closed by a probe that is answered")
	}
	if !b.Failed(now, false, time.Minute) {
		t.Error("it does not open for a server that asks for it")
	}
	if ok, _ := b.Allow(now.Add(30 * time.Second)); !ok {
		t.Error("a server makes it wait for longer than the limit")
	}
}
