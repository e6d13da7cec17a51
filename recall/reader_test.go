package recall

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/remora-proxy/remora/storage"
)

// pagesOf is a source whose pages arrive once released is closed.
type pagesOf struct {
	pages    map[string]storage.Page
	asked    []string
	released chan struct{}
}

func (p *pagesOf) Scan(ctx context.Context, _ storage.Scope, q storage.Query) (storage.Page, error) {
	p.asked = append(p.asked, q.After)
	if q.After == "" {
		return p.pages[""], nil
	}
	select {
	case <-p.released:
		return p.pages[q.After], nil
	case <-ctx.Done():
		return storage.Page{}, ctx.Err()
	}
}

// One page is read ahead, no more, and leave waits for a page that is not
// needed.
func TestOnePageIsAskedForAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &pagesOf{pages: map[string]storage.Page{"": {Next: "a"}, "a": {Next: "b"}, "b": {Next: "b"}}, released: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		r := pageReader{ctx: ctx, from: src, scope: alice}
		if page, err := r.next(); err != nil || page.Next != "a" {
			t.Fatalf("got %+v, %v", page, err)
		}
		synctest.Wait()
		if len(src.asked) != 2 {
			t.Errorf("asked for %q, want the first two pages", src.asked)
		}
		close(src.released)
		if _, err := r.next(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.next(); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("a cursor that does not advance: got %v", err)
		}
		src.released, r.query.After = make(chan struct{}), "a"
		r.ask()
		cancel()
		r.leave()
		if len(src.asked) != 4 {
			t.Errorf("asked for %q", src.asked)
		}
	})
}
