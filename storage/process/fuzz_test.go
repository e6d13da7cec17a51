//go:build unix

package process

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
	"github.com/remora-proxy/remora/storage/wire"
)

func sample() storage.Memory {
	m := storagetest.Full("id", -3)
	m.Version = 8
	return m
}

// encoded returns v as code writes it.
func encoded[T any](code func(*wire.Coder, *T), v T) []byte {
	w := wire.Writer(nil)
	code(w, &v)
	return w.Bytes()
}

func FuzzMemory(f *testing.F) {
	for _, m := range []storage.Memory{{}, sample()} {
		f.Add(encoded(codeMemory, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, again storage.Memory
		r := wire.Reader(b)
		if codeMemory(r, &m); r.Failed() {
			return
		}
		r = wire.Reader(encoded(codeMemory, m))
		if codeMemory(r, &again); !r.Done() {
			t.Fatal("a decoded memory cannot be encoded and decoded")
		}
		if again.Fingerprint() != m.Fingerprint() || again.Version != m.Version || again.CreatedAt != m.CreatedAt {
			t.Errorf("got %+v, want %+v", again, m)
		}
	})
}

// FuzzCall makes the server answer a hostile client. It must neither fail nor
// allocate far beyond what it received.
func FuzzCall(f *testing.F) {
	scope := someone("u")
	add := func(op opcode, args []byte) { f.Add(byte(op), args) }
	r := storage.Record{Bucket: storage.BucketSpool, Scope: scope, Key: "k", Value: []byte("v"), ExpiresAt: 9}
	ref := storage.MemoryRef{Scope: scope, ID: "id"}
	add(opPut, encoded(put.args, []storage.Write{{Scope: scope, Turn: "turn", Memories: []storage.Memory{sample()}}}))
	add(opMemory, encoded(memory.args, ref))
	add(opScan, encoded(scan.args, scanArgs{scope, storage.Query{Kinds: []storage.Kind{"fact"}, Conversation: "c", Limit: 5}}))
	add(opDelete, encoded(remove.args, deleteArgs{scope, []string{"a", "b"}}))
	add(opErase, encoded(erase.args, scope))
	add(opPutRecords, encoded(putRecords.args, []storage.Record{r}))
	add(opRecords, encoded(records.args, recordsArgs{storage.BucketSpool, scope, "p", "", 5}))
	add(opAllRecords, encoded(allRecords.args, recordsArgs{bucket: storage.BucketSpool, limit: 5}))
	add(opDeleteRecords, encoded(deleteRecords.args, []storage.RecordRef{r.Ref()}))
	add(opRecord, encoded(record.args, r.Ref()))
	add(opProbe, encoded(probe.args, []storage.MemoryRef{ref}))
	add(opInstallSecret, nil)
	add(opDigest, encoded(digest.args, scope))
	add(opEraseTenant, encoded(eraseTenant.args, "tenant"))
	add(opEraseAll, nil)
	add(opPutRecords, []byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	s := serverOf(storagetest.Memory())
	f.Fuzz(func(t *testing.T, op byte, args []byte) {
		if opcode(op) == opAdmin {
			return
		}
		_, _, _ = s.answer(t.Context(), opcode(op), args, io.Discard)
	})
}

// FuzzConnection sends a server arbitrary bytes after the handshake. The
// connection must end, and release everything.
func FuzzConnection(f *testing.F) {
	call := append(make([]byte, callHeadSize), encoded(memory.args, storage.MemoryRef{Scope: someone("u"), ID: "id"})...)
	call[0] = byte(opMemory)
	good := append(appendFrameHead(nil, 1, kindCall, false, len(call)), call...)
	f.Add(good)
	f.Add(append(appendFrameHead(nil, 1, kindCall, true, 1), append([]byte{1}, appendFrameHead(nil, 1, kindCancel, false, 0)...)...))
	f.Add(appendFrameHead(appendFrameHead(nil, 0, kindPing, false, 0), 7, kindCredit, false, 0))
	f.Add(appendFrameHead(nil, 9, kindCall, false, 1<<31))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := serverOf(storagetest.Memory())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		own, stop := context.WithCancel(ctx)
		_ = newServerConn(s, &peer{}).serve(own, stop, newFrameReader(bytes.NewReader(b)), io.Discard)
		if ctx.Err() != nil {
			t.Error("the connection did not end")
		}
		if held := s.held.Load(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}

// FuzzAnswer decodes arbitrary bytes as what a server sends.
func FuzzAnswer(f *testing.F) {
	f.Add(encoded(codePage, storage.Page{Memories: []storage.Memory{sample()}, Next: "n", Damaged: 2}))
	f.Add(encoded(codeRecordPage, storage.RecordPage{Records: []storage.Record{{Bucket: "spool", Scope: someone("u"), Key: "k", Value: []byte("v")}}}))
	f.Add(errorAnswer(storage.ErrDamaged))
	f.Add(Status{SetAside: []string{"a"}}.encode())
	f.Add(hello{protocol: protocolVersion, build: "b"}.encode())
	f.Fuzz(func(_ *testing.T, b []byte) {
		var page storage.Page
		codePage(wire.Reader(b), &page)
		var records storage.RecordPage
		codeRecordPage(wire.Reader(b), &records)
		var receipt storage.Receipt
		codeReceipt(wire.Reader(b), &receipt)
		_, _ = decodeStatus(b)
		_, _ = decodeHello(b)
	})
}

func TestMemoryRoundTrip(t *testing.T) {
	if n := len(encoded(codeMemory, storage.Memory{})); n != minMemory {
		t.Errorf("the empty memory takes %d bytes, want minMemory, %d", n, minMemory)
	}
	for _, want := range []storage.Memory{{}, sample()} {
		var got storage.Memory
		r := wire.Reader(encoded(codeMemory, want))
		codeMemory(r, &got)
		if diff := cmp.Diff(want, got); diff != "" || !r.Done() {
			t.Errorf("(-want +got):\n%s", diff)
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

// BenchmarkLargeRecord reads a part of the snapshot of a large index.
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
