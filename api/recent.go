package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// RecentExchanges is a page of the newest receipts of several users.
type RecentExchanges struct {
	Exchanges []Exchange `json:"exchanges"`
	Next      string     `json:"next,omitempty"`
	// Partial reports that there are more users than a call looks at, whose
	// receipts are missing: name a user.
	Partial bool `json:"partial,omitempty"`
}

const (
	// maxRecentUsers bounds the users that Recent and Benefit look at. Which
	// have the newest receipts is not known, so the store's first ones count.
	maxRecentUsers = 50
	// maxRecentRead bounds the receipts that one call of Recent reads.
	maxRecentRead = 5000
)

// exchangeFilter is an ExchangeFilter whose times have been read.
type exchangeFilter struct {
	ExchangeFilter
	since, until storage.Time // 0 = any
}

// compile checks a filter and reads its times.
func (f ExchangeFilter) compile() (out exchangeFilter, err error) {
	out.ExchangeFilter = f
	for _, field := range [...]struct {
		name, value string
		limit       int
	}{
		{"conversation", f.Conversation, storage.MaxScopePart}, {"status", f.Status, MaxTag}, {"model", f.Model, storage.MaxScopePart},
		{"memory", f.Memory, storage.MaxID}, {"client", f.Client, storage.MaxScopePart}, {"upstream", f.Upstream, storage.MaxScopePart},
	} {
		if err := checkLength(field.name, field.value, field.limit); err != nil {
			return out, err
		}
	}
	if out.since, err = parseTime("since", f.Since); err != nil {
		return out, err
	}
	out.until, err = parseTime("until", f.Until)
	return out, err
}

// page checks what a page of receipts is asked for by.
func (f ExchangeFilter) page(cursor string, limit int) (out exchangeFilter, size int, err error) {
	if size, err = pageSize(limit); err != nil {
		return out, 0, err
	}
	if cursor != "" && !receiptID(cursor) {
		return out, 0, invalid("cursor", "is not one of this list")
	}
	out, err = f.compile()
	return out, size, err
}

// timely reports whether a receipt with this id is of the filter's time.
func (f *exchangeFilter) timely(id string) bool {
	return (f.since == 0 || id >= firstID(f.since)) && (f.until == 0 || id < firstID(f.until))
}

func (f *exchangeFilter) matches(r *receipt.Receipt) bool {
	differs := func(want, is string) bool { return want != "" && want != is }
	switch {
	case differs(f.Conversation, r.Conversation), differs(f.Status, r.Status), differs(f.Model, r.Model),
		differs(f.Client, r.Client), differs(f.Upstream, r.Upstream), !f.timely(r.ID):
		return false
	case f.Memory == "":
		return true
	}
	for i := range r.Inserted {
		for _, span := range r.Inserted[i].Spans {
			if span.ID == f.Memory {
				return true
			}
		}
	}
	return false
}

// firstID returns what the ids of receipts from a time on are not less than.
func firstID(at storage.Time) string { return fmt.Sprintf("x%012x", uint64(at)) }

// reached returns at most limit users that the principal may reach by a target,
// and whether there are more. For the admin, a target without a tenant means
// all of them.
func (s *access) reached(ctx context.Context, p Principal, t Target, limit int) (scopes []storage.Scope, more bool, err error) {
	want, err := s.everyone(p, t)
	if err != nil {
		return nil, false, err
	}
	if want.Validate() == nil { // all parts are named
		return []storage.Scope{want}, false, nil
	}
	for page, err := range scopePages(ctx, s.Store, "") {
		if err != nil {
			return nil, false, err
		}
		for _, scope := range page.Scopes {
			if !covers(want, scope) {
				continue
			}
			if len(scopes) == limit {
				return scopes, true, nil
			}
			scopes = append(scopes, scope)
		}
	}
	return scopes, false, nil
}

// recentKey is the id of a receipt, with whose it is.
type recentKey struct {
	id   string
	user int // in the list of users
}

// Recent lists the newest receipts of all users that the principal may reach by
// a target. A page may be short though there is more (Next): a call reads a
// bounded number of receipts.
func (s *questions) Recent(
	ctx context.Context, p Principal, t Target, f ExchangeFilter, cursor string, limit int,
) (RecentExchanges, error) {
	out := RecentExchanges{Exchanges: []Exchange{}}
	if s.Receipts == nil {
		return out, ErrOff
	}
	chosen, limit, err := f.page(cursor, limit)
	if err != nil {
		return out, err
	}
	scopes, more, err := s.reached(ctx, p, t, maxRecentUsers)
	if err != nil {
		return out, err
	}
	out.Partial = more
	keys, err := s.recentKeys(ctx, scopes, &chosen, cursor)
	if err != nil {
		return out, err
	}
	for n, key := range keys {
		if len(out.Exchanges) == limit || n == maxRecentRead {
			out.Next = keys[n-1].id
			break
		}
		r, err := receipt.Get(ctx, s.Store, scopes[key.user], key.id)
		if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
			continue
		}
		if err != nil {
			return out, err
		}
		if chosen.matches(&r) {
			out.Exchanges = append(out.Exchanges, s.showExchange(r))
		}
	}
	return out, nil
}

// recentKeys returns the ids of the receipts of users before a cursor, newest
// first.
func (s *questions) recentKeys(
	ctx context.Context, scopes []storage.Scope, f *exchangeFilter, cursor string,
) (keys []recentKey, err error) {
	for i, scope := range scopes {
		ids, err := s.Store.RecordKeys(ctx, storage.BucketExchange, scope, 0)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if receiptID(id) && (cursor == "" || id < cursor) && f.timely(id) {
				keys = append(keys, recentKey{id, i})
			}
		}
	}
	slices.SortFunc(keys, func(a, b recentKey) int {
		return cmp.Or(strings.Compare(b.id, a.id), cmp.Compare(a.user, b.user))
	})
	return keys, nil
}
