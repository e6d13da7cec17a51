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

// FuzzDecodeMemory guards that arbitrary bytes neither panic nor decode to a memory that encodes differently.
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
			t.Errorf("decoded again: %+v, %v, want %+v", again, err, m)
		}
	})
}

// TestDecodeTruncated guards that no proper prefix of an encoding decodes.
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
