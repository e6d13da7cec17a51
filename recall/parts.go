package recall

import (
	"context"
	"errors"

	"github.com/remora-proxy/remora/storage"
)

// partReader reads the parts of a snapshot in their order. The next may be asked for before the one at hand has come, so that the
// store unseals it while this one is on its way or is read.
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

// partsAhead is how many parts are asked for at a time, at most.
const partsAhead = 2

// ask asks for the part behind those that are asked for.
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

// leave waits for what is asked for and no longer wanted.
func (r *partReader) leave() {
	for _, got := range r.asked {
		<-got
	}
}
