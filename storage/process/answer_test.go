//go:build unix

package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// TestRecordsOfAllSizes guards the division of large answers into frames.
func TestRecordsOfAllSizes(t *testing.T) {
	r := connected(t, serverOf(storagetest.Memory()))
	for _, n := range []int{0, 1, maxFrame - 200, maxFrame - 60, maxFrame - 40, maxFrame, maxFrame + 1, 2*maxFrame - 40, 5 << 20} {
		record := storage.Record{Bucket: storage.BucketIndex, Scope: someone("u"), Key: "part", Value: make([]byte, n)}
		for i := range record.Value {
			record.Value[i] = byte(i * 7 >> 3)
		}
		if err := r.PutRecords(t.Context(), []storage.Record{record}); err != nil {
			t.Fatal(err)
		}
		got, err := r.Record(t.Context(), record.Ref())
		if err != nil || !bytes.Equal(got.Value, record.Value) || got.Key != record.Key || got.Scope != record.Scope {
			t.Errorf("%d bytes: got %d bytes, key %s, scope %v, error %v", n, len(got.Value), got.Key, got.Scope, err)
		}
	}
	if _, err := r.Record(t.Context(), storage.RecordRef{Bucket: storage.BucketIndex, Scope: someone("u"), Key: "other"}); !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
}

// TestInvalidSizes guards that a size that is impossible, or sent too late,
// ends the connection.
func TestInvalidSizes(t *testing.T) {
	size := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	for name, sent := range map[string]func(call uint32) []byte{
		"too large": func(call uint32) []byte {
			return append(appendFrameHead(nil, call, kindSize, false, 4), size(maxMessage+1)...)
		},
		"short": func(call uint32) []byte { return append(appendFrameHead(nil, call, kindSize, false, 3), 1, 2, 3) },
		"twice": func(call uint32) []byte {
			one := append(appendFrameHead(nil, call, kindSize, false, 4), size(1)...)
			return append(one, one...)
		},
		"late": func(call uint32) []byte {
			b := append(appendFrameHead(nil, call, kindAnswer, true, 1), codeOK)
			return append(append(b, appendFrameHead(nil, call, kindSize, false, 4)...), size(1)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			go func() {
				in := newFrameReader(theirs)
				if welcome(theirs, in, testBuild) != nil {
					return
				}
				for {
					f, err := in.next()
					if err != nil {
						return
					}
					if f.kind == kindCall {
						_, _ = theirs.Write(sent(f.call))
						_, _ = io.Copy(io.Discard, theirs)
						return
					}
				}
			}()
			l, err := newLink(ours, testBuild, &bufferPool{})
			if err != nil {
				t.Fatal(err)
			}
			defer l.close()
			if _, err := l.call(t.Context(), opInstallSecret, make([]byte, callHeadSize), nil); !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("got %v, want the connection to end", err)
			}
		})
	}
}
