package recall

import (
	"context"
	"errors"
	"fmt"

	"github.com/remora-proxy/remora/storage"
)

// pageReader reads all memories of a scope by pages. It requests the next page
// while the caller uses the last, so at most two are in memory.
type pageReader struct {
	ctx   context.Context
	from  Source
	scope storage.Scope
	query storage.Query // of the next page
	asked chan readPage // nil if none is
}

type readPage struct {
	page storage.Page
	err  error
}

func (r *pageReader) ask() {
	got, query := make(chan readPage, 1), r.query
	r.asked = got
	go func() {
		p := readPage{err: fmt.Errorf("panic: %w", storage.ErrUnavailable)} // if the store panics
		defer func() {
			_ = recover()
			got <- p
		}()
		page, err := r.from.Scan(r.ctx, r.scope, query)
		p = readPage{page, err}
	}()
}

// next returns the next page. The last page has no Next.
func (r *pageReader) next() (storage.Page, error) {
	if r.asked == nil {
		r.ask()
	}
	p := <-r.asked
	r.asked = nil
	switch {
	case p.err == nil:
	case errors.Is(p.err, storage.ErrUnavailable):
		return storage.Page{}, fmt.Errorf("load index: %w", p.err)
	default:
		return storage.Page{}, fmt.Errorf("load index: %w", errors.Join(storage.ErrUnavailable, p.err))
	}
	if next := p.page.Next; next != "" {
		if next == r.query.After {
			return storage.Page{}, fmt.Errorf("load index: the store's cursor does not advance: %w", storage.ErrUnavailable)
		}
		r.query.After = next
		r.ask()
	}
	return p.page, nil
}

// leave waits for a page that was requested and is not needed.
func (r *pageReader) leave() {
	if r.asked != nil {
		<-r.asked
	}
}
