package recall

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/recall/vector"
	"github.com/remora-proxy/remora/storage"
)

// A vector that the server returns between the deletion of its memory and
// Forget is never written.
func TestForgottenMemoryGetsNoVector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := memories(30)
		local, em := newLocal(ms), newFake()
		gone, left := vector.Hash(ms[7].ID), append(memories(7), ms[8:]...)
		local.beforePut(func(rs []storage.Record) error {
			for _, r := range rs {
				n, ok := vector.SegmentOf(r.Key)
				if !ok {
					continue
				}
				s, err := vector.ReadSegment(n, r.Value)
				if err != nil {
					t.Error(err)
				}
				for i := range s.Len() {
					if s.Mark(i).Memory == gone {
						t.Error("the forgotten memory's vector was written")
					}
				}
			}
			return nil
		})
		asked, answer := heldUp(em)
		e := vectorEngine(t, em, local)
		<-asked
		release, err := e.PauseWrites(t.Context(), alice)
		if err != nil {
			t.Fatal(err)
		}
		local.mu.Lock()
		local.ms[alice] = left
		local.mu.Unlock()
		close(answer)
		time.Sleep(time.Minute)
		e.Forget(alice, ms[7].ID)
		release()
		settled(t, e, alice)
		wantStored(t, "afterwards", local, left)
	})
}

// Vectors that the server returns during the erasure of their scope are never
// written, and the erasure waits for a write that is under way.
func TestErasedScopeGetsNoVectors(t *testing.T) {
	erase := func(t *testing.T, e *Engine, local *fakeLocal, during func()) {
		release, err := e.PauseWrites(t.Context(), alice)
		if err != nil {
			t.Fatal(err)
		}
		local.mu.Lock()
		local.ms[alice] = nil
		local.mu.Unlock()
		local.rmu.Lock()
		maps.DeleteFunc(local.records, func(r storage.RecordRef, _ storage.Record) bool { return r != foreign.Ref() })
		before := local.puts
		local.rmu.Unlock()
		during()
		e.Drop(alice)
		release()
		time.Sleep(time.Hour)
		synctest.Wait()
		local.rmu.Lock()
		defer local.rmu.Unlock()
		if local.puts != before || len(local.records) > 1 {
			t.Errorf("%d writes after the erasure, %d records left", local.puts-before, len(local.records)-1)
		}
	}
	t.Run("embedded meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			local, em := newLocal(memories(100)), newFake()
			asked, answer := heldUp(em)
			e := vectorEngine(t, em, local)
			<-asked
			erase(t, e, local, func() {
				close(answer)
				time.Sleep(time.Minute)
				synctest.Wait()
			})
		})
	})
	t.Run("written meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			local := newLocal(memories(100))
			begun, landed := make(chan struct{}), false
			first := true
			local.beforePut(func(rs []storage.Record) error {
				if _, ok := vector.SegmentOf(rs[0].Key); ok && first {
					first = false
					close(begun)
					time.Sleep(10 * time.Second)
					landed = true
				}
				return nil
			})
			e := vectorEngine(t, newFake(), local)
			<-begun
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := e.PauseWrites(ctx, alice); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("while a batch is being written: got %v", err)
			}
			erase(t, e, local, func() {
				if !landed {
					t.Error("the erasure did not wait for the batch")
				}
			})
		})
	})
	t.Run("a snapshot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			src := newDigesting(t, town(1200))
			e := loadedEngine(t, src)
			put := 0
			src.onPut = func() { put++ }
			release, err := e.PauseWrites(t.Context(), alice)
			if err != nil {
				t.Fatal(err)
			}
			saved := make(chan struct{})
			go func() { e.snapshots.saveAll(t.Context(), always); close(saved) }()
			time.Sleep(time.Second)
			if _, err := src.Erase(t.Context(), alice); err != nil {
				t.Fatal(err)
			}
			e.Drop(alice)
			release()
			<-saved
			if put != 0 {
				t.Error("written into an erased scope")
			}
		})
	})
}

// A pause does not affect other scopes, and a second pause of the scope waits
// for the first.
func TestPauseIsPerScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(patient(), newLocal(nil), nil, nil)
		defer e.Close()
		release, err := e.PauseWrites(t.Context(), alice)
		if err != nil {
			t.Fatal(err)
		}
		other := alice
		other.User = "bob"
		done, ok := e.pauses.beginWrite(t.Context(), other)
		if !ok {
			t.Fatal("another scope's writer was refused")
		}
		done()
		second := make(chan struct{})
		go func() {
			if release, err := e.PauseWrites(t.Context(), alice); err == nil {
				release()
			}
			close(second)
		}()
		synctest.Wait()
		select {
		case <-second:
			t.Error("two pauses at once")
		default:
		}
		release()
		<-second
		if done, ok := e.pauses.beginWrite(t.Context(), alice); !ok {
			t.Error("refused after the release")
		} else {
			done()
		}
		if len(e.pauses.paused)+len(e.pauses.writers)+len(e.pauses.idle) > 0 {
			t.Error("state is left over")
		}
	})
}

// heldUp blocks the first texts: asked is closed when they arrive, and closing
// answer lets them be embedded.
func heldUp(em *fakeEmbedder) (asked <-chan struct{}, answer chan<- struct{}) {
	came, let := make(chan struct{}), make(chan struct{})
	first := true
	em.onDocs = func() {
		if first {
			first = false
			close(came)
			<-let
		}
	}
	return came, let
}
