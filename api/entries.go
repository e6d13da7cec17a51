package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// Keyed memory of tools: values under keys of a namespace, each with a time to
// live. It is never recalled and never leaves with a request.

// Entry is a keyed value.
type Entry struct {
	Namespace string          `json:"namespace"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	CreatedAt string          `json:"createdAt"`
	UpdatedAt string          `json:"updatedAt"`
	ExpiresAt string          `json:"expiresAt"`
	Version   uint64          `json:"version"`
}

// EntryDraft is a value to keep.
type EntryDraft struct {
	Value json.RawMessage `json:"value"` // any JSON
	// TTL is how long it is kept, in seconds: 1 to 31,536,000. It must be
	// given.
	TTL int64 `json:"ttl"`
}

const maxEntryTTL = 365 * 24 * 60 * 60

// DefaultNamespace is the namespace of entries that name none.
const DefaultNamespace = "default"

type storedEntry struct {
	Value                json.RawMessage
	CreatedAt, UpdatedAt storage.Time
	Version              uint64
}

// entryKey returns the record key of an entry: no namespace holds a NUL.
func entryKey(namespace, key string) string { return namespace + "\x00" + key }

func checkEntry(namespace, key string) error {
	switch {
	case namespace == "" || len(namespace) > MaxNamespace/4 || !printable(namespace):
		return invalid("namespace", "must have 1 to %d bytes of printable UTF-8", MaxNamespace/4)
	case key == "" || len(key) > MaxEntryKey || !printable(key):
		return invalid("key", "must have 1 to %d bytes of printable UTF-8", MaxEntryKey)
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func (s *entries) entryRef(scope storage.Scope, namespace, key string) storage.RecordRef {
	return storage.RecordRef{Bucket: storage.BucketEntry, Scope: scope, Key: entryKey(namespace, key)}
}

// PutEntry keeps a value under a key, and replaces the one there. version is
// what the caller has seen: 0 = any.
func (s *entries) PutEntry(ctx context.Context, p Principal, t Target, namespace, key string, version uint64, d EntryDraft) (Entry, bool, error) {
	if err := checkEntry(namespace, key); err != nil {
		return Entry{}, false, err
	}
	switch {
	case len(d.Value) == 0 || !json.Valid(d.Value):
		return Entry{}, false, invalid("value", "must be JSON")
	case len(d.Value) > MaxEntry:
		return Entry{}, false, invalid("value", "must have at most %d bytes", MaxEntry)
	case d.TTL < 1 || d.TTL > maxEntryTTL:
		return Entry{}, false, invalid("ttl", "must be 1..%d seconds", maxEntryTTL)
	}
	if s.HidesSecret(readable(d.Value)) {
		return Entry{}, false, persist.ErrSecret
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return Entry{}, false, err
	}
	ref := s.entryRef(scope, namespace, key)
	was, err := s.entry(ctx, ref)
	created := errors.Is(err, storage.ErrNotFound)
	if err != nil && !created {
		return Entry{}, false, err
	}
	if version != 0 && version != was.Version {
		return Entry{}, false, persist.ErrChanged
	}
	if created {
		keys, err := s.Store.RecordsWithPrefix(ctx, storage.BucketEntry, scope, entryKey(namespace, ""), "", 1)
		if err != nil {
			return Entry{}, false, err
		}
		if keys.Next != "" { // more than one: count them
			all, err := s.Store.RecordKeys(ctx, storage.BucketEntry, scope, 0)
			if err != nil {
				return Entry{}, false, err
			}
			own := slices.DeleteFunc(all, func(k string) bool { return !strings.HasPrefix(k, entryKey(namespace, "")) })
			if len(own) >= MaxEntries {
				return Entry{}, false, invalid("namespace", "has %d entries, as many as one may have", MaxEntries)
			}
		}
	}
	now := storage.TimeOf(s.Now())
	next := storedEntry{d.Value, was.CreatedAt, now, was.Version + 1}
	if created {
		next.CreatedAt = now
	}
	value, err := json.Marshal(next)
	if err != nil {
		return Entry{}, false, err
	}
	rec := storage.Record{Bucket: ref.Bucket, Scope: scope, Key: ref.Key, Value: value, ExpiresAt: now + storage.Time(time.Duration(d.TTL)*time.Second/time.Millisecond)}
	if err := s.Store.PutRecords(ctx, []storage.Record{rec}); err != nil {
		return Entry{}, false, err
	}
	return next.show(rec.Key, rec.ExpiresAt), created, nil
}

// readable returns the strings in a JSON value, for rules that look for
// secrets: escapes would hide them.
func readable(value json.RawMessage) string {
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for k, e := range v {
				b.WriteString(k + ": ")
				walk(e)
			}
		}
	}
	var v any
	if json.Unmarshal(value, &v) == nil {
		walk(v)
	}
	return b.String()
}

func (s *entries) entry(ctx context.Context, ref storage.RecordRef) (e storedEntry, err error) {
	rec, err := s.Store.Record(ctx, ref)
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal(rec.Value, &e)
}

func (e *storedEntry) show(recordKey string, expires storage.Time) Entry {
	namespace, key, _ := strings.Cut(recordKey, "\x00")
	return Entry{namespace, key, e.Value, stamp(e.CreatedAt), stamp(e.UpdatedAt), stamp(expires), e.Version}
}

// GetEntry returns the value under a key.
func (s *entries) GetEntry(ctx context.Context, p Principal, t Target, namespace, key string) (Entry, error) {
	if err := checkEntry(namespace, key); err != nil {
		return Entry{}, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return Entry{}, err
	}
	rec, err := s.Store.Record(ctx, s.entryRef(scope, namespace, key))
	if err != nil {
		return Entry{}, err
	}
	var e storedEntry
	if err := json.Unmarshal(rec.Value, &e); err != nil {
		return Entry{}, err
	}
	return e.show(rec.Key, rec.ExpiresAt), nil
}

// DeleteEntry deletes the value under a key, at once and permanently.
func (s *entries) DeleteEntry(ctx context.Context, p Principal, t Target, namespace, key string) error {
	if err := checkEntry(namespace, key); err != nil {
		return err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return err
	}
	ref := s.entryRef(scope, namespace, key)
	if _, err := s.Store.Record(ctx, ref); err != nil {
		return err
	}
	return s.Store.DeleteRecords(ctx, []storage.RecordRef{ref})
}

// EntryPage is a page of entries.
type EntryPage struct {
	Entries []Entry `json:"entries"`
	Next    string  `json:"next,omitempty"`
}

// Entries lists the entries of a namespace whose keys begin with prefix, in the
// order of their keys.
func (s *entries) Entries(ctx context.Context, p Principal, t Target, namespace, prefix, cursor string, limit int) (EntryPage, error) {
	out := EntryPage{Entries: []Entry{}}
	limit, err := pageSize(limit)
	if err != nil {
		return out, err
	}
	if err := checkEntry(namespace, "k"+prefix); err != nil {
		return out, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return out, err
	}
	page, err := s.Store.RecordsWithPrefix(ctx, storage.BucketEntry, scope, entryKey(namespace, prefix), cursor, limit)
	if err != nil {
		return out, cursorError(err, cursor)
	}
	for i := range page.Records {
		var e storedEntry
		if r := &page.Records[i]; json.Unmarshal(r.Value, &e) == nil {
			out.Entries = append(out.Entries, e.show(r.Key, r.ExpiresAt))
		}
	}
	out.Next = page.Next
	return out, nil
}
