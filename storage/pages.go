package storage

import (
	"context"
	"fmt"
	"iter"
)

// Pages reads page after page: read is told where to go on, "" at first, and returns where the next page begins, "" after the last one.
// The sequence ends with the first error, which is [ErrUnavailable] where a cursor stands still: it would never end.
func Pages[P any](read func(after string) (page P, next string, err error)) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		for after := ""; ; {
			page, next, err := read(after)
			if err == nil && next != "" && next == after {
				err = fmt.Errorf("the store's cursor stands still: %w", ErrUnavailable)
			}
			if !yield(page, err) || err != nil || next == "" {
				return
			}
			after = next
		}
	}
}

// ScanPages are the [Pages] of memories that q selects, from the first on.
func ScanPages(ctx context.Context, s Store, scope Scope, q Query) iter.Seq2[Page, error] {
	return Pages(func(after string) (Page, string, error) {
		q.After = after
		page, err := s.Scan(ctx, scope, q)
		return page, page.Next, err
	})
}

// RecordPages are the [Pages] of one bucket of a scope.
func RecordPages(ctx context.Context, l Local, bucket Bucket, scope Scope, limit int) iter.Seq2[RecordPage, error] {
	return Pages(func(after string) (RecordPage, string, error) {
		page, err := l.Records(ctx, bucket, scope, after, limit)
		return page, page.Next, err
	})
}
