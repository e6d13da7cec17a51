package receipt

import (
	"fmt"
	"testing"
	"time"
)

// TestUseOf guards that one use is found as in all of them, whatever ids look
// like.
func TestUseOf(t *testing.T) {
	ids := []string{"m1", "m10", "n", "t", `"`, `a"b`, `b":{"n":7}`, `\`, "<&>", "é", "b", `,"m1`}
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, _ func()) {
		if got, err := UseOf(t.Context(), local, alice, "m1"); err != nil || got != (Use{}) {
			t.Errorf("before any: %+v, %v", got, err)
		}
		for i, id := range ids {
			in := inserted(false, "x")
			in.Spans[0].ID = id
			for range i + 1 {
				r.Record(told(alice, "q", in))
			}
		}
		written()
		all, err := Uses(t.Context(), local, alice)
		if err != nil || len(all) != len(ids) {
			t.Fatalf("%d uses, %v; want %d", len(all), err, len(ids))
		}
		for i, id := range ids {
			if got, err := UseOf(t.Context(), local, alice, id); err != nil || got != all[id] || got.Count != i+1 {
				t.Errorf("%q: got %+v, %v; want %+v", id, got, err, all[id])
			}
		}
		for _, id := range []string{"m", "1", "", "m100", `b"`} {
			if got, err := UseOf(t.Context(), local, alice, id); err != nil || got != (Use{}) {
				t.Errorf("%q, which was never used: %+v, %v", id, got, err)
			}
		}
	})
}

// TestUsesWait guards that the record of a user with many is written seldom,
// that nothing is lost by that, and that what is erased meanwhile is not
// counted.
func TestUsesWait(t *testing.T) {
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, stop func()) {
		const many = 1000
		first := told(alice, "many", Insertion{Text: "x"})
		for i := range many {
			first.Inserted[0].Spans = append(first.Inserted[0].Spans, blockOf(fmt.Sprint("m", i)).Spans...)
		}
		count := func(id string, want int) {
			t.Helper()
			if got, err := UseOf(t.Context(), local, alice, id); err != nil || got.Count != want {
				t.Errorf("%s: %d, %v; want %d", id, got.Count, err, want)
			}
		}
		r.Record(first)
		written()
		count("m7", 1)
		r.Record(told(alice, "again", inserted(false, "m7")))
		written()
		count("m7", 1)
		time.Sleep(many * usesPause)
		count("m7", 2)
		r.Record(first)
		written()
		r.Record(told(alice, "once more", inserted(false, "m7", "m8", "m9")))
		written()
		count("m7", 3)
		r.Erased(alice, "m8")
		stop()
		count("m7", 4)
		count("m8", 2)
		count("m9", 3)
	})
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, stop func()) {
		first := told(alice, "many", Insertion{Text: "x"})
		for i := range 500 {
			first.Inserted[0].Spans = append(first.Inserted[0].Spans, blockOf(fmt.Sprint("m", i)).Spans...)
		}
		r.Record(first)
		written()
		r.Record(told(alice, "again", inserted(false, "m7")))
		written()
		r.Drop(alice)
		stop()
		if got, err := UseOf(t.Context(), local, alice, "m7"); err != nil || got.Count != 1 {
			t.Errorf("after all was dropped: %+v, %v; want what was written before", got, err)
		}
	})
}
