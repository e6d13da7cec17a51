package storage

import (
	"context"
	"fmt"
	"iter"
)

// Pages yields page after page. It calls read with the cursor of the page to
// read, "" for the first, and stops when read returns no next cursor. The
// sequence ends with the first error; a cursor that does not advance, and would
// make it endless, is [ErrUnavailable].
func Pages[P any](read func(after string) (page P, next string, err error)) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		for after := ""; ; {
			page, next, err := read(after)
			if err == nil && next != "" && next == after {
				err = fmt.Errorf("the store's cursor does not advance: %w", ErrUnavailable)
			}
			if !yield(page, err) || err != nil || next == "" {
				return
			}
			after = next
		}
	}
}

// ScanPages yields the pages of the memories that q selects, starting at the
// first.
func ScanPages(ctx context.Context, s Store, scope Scope, q Query) iter.Seq2[Page, error] {
	return Pages(func(after string) (Page, string, error) {
		q.After = after
		page, err := s.Scan(ctx, scope, q)
		return page, page.Next, err
	})
}

// RecordPages yields the pages of one bucket of a scope.
func RecordPages(ctx context.Context, l Local, bucket Bucket, scope Scope, limit int) iter.Seq2[RecordPage, error] {
	return Pages(func(after string) (RecordPage, string, error) {
		page, err := l.Records(ctx, bucket, scope, after, limit)
		return page, page.Next, err
	})
}
