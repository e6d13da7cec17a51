package recall

import (
	"context"
	"errors"

	"github.com/remora-proxy/remora/storage"
)

// partReader reads the parts of a snapshot in order. It can request parts
// ahead, so that the store decrypts one while another is decoded.
type partReader struct {
	ctx   context.Context
	from  SnapshotStore
	scope storage.Scope
	blob  blobReader
	asked []chan readPart // from blob.next on
}

type readPart struct {
	value []byte
	err   error
}

// partsAhead bounds the parts that are requested at a time.
const partsAhead = 2

// ask requests the part after those that are requested.
func (r *partReader) ask() {
	got := make(chan readPart, 1)
	key := partKey(int(r.blob.next) + len(r.asked))
	r.asked = append(r.asked, got)
	go func() {
		p := readPart{err: errBlob} // if the store panics
		defer func() {
			_ = recover()
			got <- p
		}()
		record, err := r.from.Record(r.ctx, storage.RecordRef{Bucket: storage.BucketIndex, Scope: r.scope, Key: key})
		p = readPart{record.Value, err}
	}()
}

// next returns the content of the next part.
func (r *partReader) next() ([]byte, error) {
	if len(r.asked) == 0 {
		r.ask()
	}
	p := <-r.asked[0]
	r.asked = r.asked[1:]
	switch {
	case errors.Is(p.err, storage.ErrDamaged), errors.Is(p.err, storage.ErrNotFound) && r.blob.next > 0:
		return nil, errBlob
	case p.err != nil:
		return nil, p.err
	}
	return r.blob.open(p.value)
}

// leave waits for parts that were requested and are not needed.
func (r *partReader) leave() {
	for _, got := range r.asked {
		<-got
	}
}
