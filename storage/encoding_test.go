package storage_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// FuzzDecodeMemory: no bytes make it panic or allocate beyond their size, and
// what decodes encodes to a memory that is equal.
func FuzzDecodeMemory(f *testing.F) {
	m := storagetest.Full("id", -3)
	whole := storage.AppendMemory(nil, &m)
	f.Add(whole)
	f.Add(storage.AppendMemory(nil, &storage.Memory{}))
	for i := range whole {
		f.Add(whole[:i])
		flipped := slices.Clone(whole)
		flipped[i] = 0xff
		f.Add(flipped)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := storage.DecodeMemory(b)
		if err != nil {
			if !errors.Is(err, storage.ErrDamaged) {
				t.Errorf("got %v, want ErrDamaged", err)
			}
			return
		}
		again, err := storage.DecodeMemory(storage.AppendMemory(nil, &m))
		if err != nil || !bytes.Equal(storage.AppendMemory(nil, &again), storage.AppendMemory(nil, &m)) {
			t.Errorf("a second time it reads %+v, %v, first %+v", again, err, m)
		}
	})
}

// TestDecodeTruncated: no proper prefix of an encoding is taken for a memory.
func TestDecodeTruncated(t *testing.T) {
	want := storagetest.Full("id", -3)
	whole := storage.AppendMemory(nil, &want)
	for i := range whole {
		if _, err := storage.DecodeMemory(whole[:i]); !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("%d of %d bytes: got %v, want ErrDamaged", i, len(whole), err)
		}
	}
	got, err := storage.DecodeMemory(whole)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("decoded (-want +got):\n%s", d)
	}
}
