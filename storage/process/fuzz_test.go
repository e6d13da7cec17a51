//go:build unix

package process

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

func sample() storage.Memory {
	m := storagetest.Full("id", -3)
	m.Scope, m.Version = someone("u"), 8
	return m
}

func FuzzMemory(f *testing.F) {
	for _, m := range []storage.Memory{{}, sample()} {
		f.Add(appendMemory(nil, &m, someone("u")))
		f.Add(appendMemory(nil, &m, someone("v")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m storage.Memory
		d := newDecoder(b)
		d.memory(&m, someone("u"))
		if d.bad {
			return
		}
		var again storage.Memory
		e := newDecoder(appendMemory(nil, &m, someone("u")))
		e.memory(&again, someone("u"))
		if !e.ended() {
			t.Fatal("what was decoded can't be encoded and decoded")
		}
		if again.Fingerprint() != m.Fingerprint() || again.Scope != m.Scope || again.Version != m.Version || again.CreatedAt != m.CreatedAt {
			t.Errorf("got %+v, want %+v", again, m)
		}
	})
}

// FuzzCall has the server answer what a hostile client asks. It must not fall, nor allocate far beyond what came.
func FuzzCall(f *testing.F) {
	m, scope := sample(), someone("u")
	one := func(op operation, b []byte) { f.Add(byte(op), b) }
	one(opPut, appendMemory(append(appendString(appendScope(binary.AppendUvarint(nil, 1), scope), "turn"), 1), &m, scope))
	one(opMemory, appendString(appendScope(nil, scope), "id"))
	one(opScan, binary.AppendVarint(appendString(appendString(appendStrings(appendScope(nil, scope), []string{"fact"}), "c"), ""), 5))
	one(opDelete, appendStrings(appendScope(nil, scope), []string{"a", "b"}))
	one(opErase, appendScope(nil, scope))
	r := storage.Record{Bucket: storage.BucketSpool, Scope: scope, Key: "k", Value: []byte("v"), ExpiresAt: 9}
	one(opPutRecords, appendRecord([]byte{1}, &r))
	one(opRecords, binary.AppendVarint(appendString(appendString(appendScope(nil, scope), "spool"), ""), 5))
	one(opAllRecords, binary.AppendVarint(appendString(appendString(nil, "spool"), ""), 5))
	one(opDeleteRecords, appendRef([]byte{1}, r.Ref()))
	one(opRecord, appendRef(nil, r.Ref()))
	one(opProbe, appendString(appendScope([]byte{1}, scope), "id"))
	one(opInstallSecret, nil)
	one(opDigest, appendScope(nil, scope))
	one(opEraseTenant, appendString(nil, "tenant"))
	one(opEraseAll, nil)
	one(opPutRecords, []byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	s := serverOf(storagetest.Memory())
	f.Fuzz(func(t *testing.T, op byte, args []byte) {
		if operation(op) == opAdmin {
			return
		}
		_, _, _ = s.answer(t.Context(), operation(op), newDecoder(args), io.Discard)
	})
}

// FuzzConnection sends a server anything at all after the handshake. The connection must end, and everything with it.
func FuzzConnection(f *testing.F) {
	call := append(make([]byte, callHead), appendString(appendScope(nil, someone("u")), "id")...)
	call[0] = byte(opMemory)
	good := append(appendHead(nil, 1, kindCall, false, len(call)), call...)
	f.Add(good)
	f.Add(append(appendHead(nil, 1, kindCall, true, 1), append([]byte{1}, appendHead(nil, 1, kindCancel, false, 0)...)...))
	f.Add(appendHead(appendHead(nil, 0, kindPing, false, 0), 7, kindCredit, false, 0))
	f.Add(appendHead(nil, 9, kindCall, false, 1<<31))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := serverOf(storagetest.Memory())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c := &serverConn{server: s, out: newOutbox(), calls: make(map[uint32]*serverCall), changes: make(chan func(), maxCalls)}
		own, stop := context.WithCancel(ctx)
		_ = c.serve(own, stop, newFrames(bytes.NewReader(b)), io.Discard)
		if ctx.Err() != nil {
			t.Error("did not end")
		}
		if held := s.held.Load(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	page := storage.Page{Memories: []storage.Memory{sample()}, Next: "n", Damaged: 2}
	records := storage.RecordPage{Records: []storage.Record{{Bucket: "spool", Scope: someone("u"), Key: "k", Value: []byte("v")}}}
	f.Add(appendPage([]byte{codeOK}, &page, someone("u")))
	f.Add(appendRecordPage([]byte{codeOK}, &records))
	f.Add(errorAnswer(storage.ErrDamaged))
	f.Add(Status{Aside: []string{"a"}}.encode())
	f.Add(hello{protocol: protocol, build: "b"}.encode())
	f.Fuzz(func(_ *testing.T, b []byte) {
		d := newDecoder(b)
		if n := d.count(minMemory); n > 0 {
			memories := make([]storage.Memory, n)
			for i := range memories {
				d.memory(&memories[i], storage.Scope{})
			}
		}
		d = newDecoder(b)
		for range d.count(minRecord) {
			d.record()
		}
		_, _ = decodeStatus(b)
		_, _ = decodeHello(b)
	})
}

func TestMemoryIsWhole(t *testing.T) {
	if n := len(appendMemory(nil, &storage.Memory{}, storage.Scope{})); n != minMemory {
		t.Errorf("the empty memory takes %d bytes, want minMemory, %d", n, minMemory)
	}
	for _, want := range []storage.Memory{{}, sample(), {Embedding: &storage.Embedding{}}} {
		for _, outer := range []storage.Scope{someone("u"), someone("v")} {
			var got storage.Memory
			d := newDecoder(appendMemory(nil, &want, outer))
			d.memory(&got, outer)
			if diff := cmp.Diff(want, got); diff != "" || !d.ended() {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

func BenchmarkCall(b *testing.B) {
	ours, theirs, err := socketPair()
	if err != nil {
		b.Fatal(err)
	}
	r := connectedTo(b, serverOf(storagetest.Memory()), ours, theirs)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.InstallSecret(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLargeRecord reads a part of a snapshot of a large index.
func BenchmarkLargeRecord(b *testing.B) {
	ours, theirs, err := socketPair()
	if err != nil {
		b.Fatal(err)
	}
	r := connectedTo(b, serverOf(storagetest.Memory()), ours, theirs)
	record := storage.Record{Bucket: storage.BucketIndex, Scope: someone("u"), Key: "part", Value: bytes.Repeat([]byte{1}, 5<<20)}
	if err := r.PutRecords(b.Context(), []storage.Record{record}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(record.Value)))
	b.ReportAllocs()
	for b.Loop() {
		if got, err := r.Record(b.Context(), record.Ref()); err != nil || len(got.Value) != len(record.Value) {
			b.Fatal(len(got.Value), err)
		}
	}
}
