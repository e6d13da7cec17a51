package persist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// Limits of revisions. Beyond either, the oldest of the memory, or of the
// scope, are deleted, and what they kept can't be brought back any more.
const (
	maxMemoryRevisions = 50
	maxScopeRevisions  = 5000
)

// Operations that leave a revision.
const (
	OpEdit   = "edit"
	OpDelete = "delete"
	OpUndo   = "undo"
	OpPrefer = "prefer" // an older fact holds again, and what held in its place does not
)

// Revision is a memory as it was before somebody changed it by hand.
type Revision struct {
	At     storage.Time
	Op     string
	Group  string // of what was discarded together
	By     string
	Why    string
	Before storage.Memory

	ref storage.RecordRef
}

// storedRevision is a Revision as it is sealed.
type storedRevision struct {
	Version              int
	At                   storage.Time
	Op, Group, By, Why   string
	MemoryVersion        uint64
	CreatedAt, UpdatedAt storage.Time
	Before               []byte // see storage.AppendMemory
}

const revisionVersion = 1

// keepRevisions writes the versions before a change. It comes before the
// change: after a crash in between there is a revision that equals what is
// stored.
func (e *erasure) keepRevisions(op, group string, cause Cause, before ...storage.Memory) error {
	now := storage.Clock()
	records := make([]storage.Record, len(before))
	for i := range before {
		m := &before[i]
		value, err := json.Marshal(storedRevision{
			Version: revisionVersion, At: storage.TimeOf(now), Op: op, Group: group, By: cause.By, Why: cause.Why,
			MemoryVersion: m.Version, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, Before: storage.AppendMemory(nil, m),
		})
		if err != nil {
			return err
		}
		records[i] = storage.Record{
			Bucket: storage.BucketRevision, Scope: e.scope, Key: fmt.Sprintf("%s-%016x", recordKey(m.ID), now.UnixNano()), Value: value,
			ExpiresAt: e.auditExpiry(now),
		}
	}
	if err := e.putRecords(e.ctx, records); err != nil {
		return err
	}
	return e.trimRevisions(before)
}

// trimRevisions deletes the oldest revisions beyond the limits.
func (e *erasure) trimRevisions(of []storage.Memory) error {
	keys, err := e.recordKeys(storage.BucketRevision)
	if err != nil {
		return err
	}
	var stale []string
	for i := range of {
		own := keysWithPrefix(keys, recordKey(of[i].ID))
		stale = append(stale, own[:max(0, len(own)-maxMemoryRevisions)]...)
	}
	if len(keys) > maxScopeRevisions {
		byAge := slices.Clone(keys)
		slices.SortFunc(byAge, func(a, b string) int { return strings.Compare(revisionTime(a), revisionTime(b)) })
		stale = append(stale, byAge[:len(keys)-maxScopeRevisions]...)
	}
	return e.deleteKeys(storage.BucketRevision, stale)
}

func revisionTime(key string) string { return key[strings.LastIndexByte(key, '-')+1:] }

func (e *erasure) deleteKeys(bucket storage.Bucket, keys []string) error {
	slices.Sort(keys)
	var refs []storage.RecordRef
	for _, key := range slices.Compact(keys) {
		refs = append(refs, storage.RecordRef{Bucket: bucket, Scope: e.scope, Key: key})
	}
	return e.deleteRecords(e.ctx, refs)
}

// recordKeys returns the keys of a bucket in order.
func (e *erasure) recordKeys(bucket storage.Bucket) (keys []string, err error) {
	if reader, ok := e.local.(storage.PrefixReader); ok {
		if keys, err = reader.RecordKeys(e.ctx, bucket, e.scope, 0); !errors.Is(err, errors.ErrUnsupported) {
			return keys, err
		}
	}
	err = e.eachRecord(e.ctx, bucket, e.scope, func(r storage.Record) { keys = append(keys, r.Key) })
	slices.Sort(keys)
	return keys, err
}

func keysWithPrefix(sorted []string, prefix string) []string {
	from, _ := slices.BinarySearch(sorted, prefix)
	to := from
	for to < len(sorted) && strings.HasPrefix(sorted[to], prefix) {
		to++
	}
	return sorted[from:to]
}

func (s *shared) revisions(ctx context.Context, scope storage.Scope, prefix string) (out []Revision, err error) {
	read := func(r storage.Record) {
		var v storedRevision
		if !strings.HasPrefix(r.Key, prefix) || json.Unmarshal(r.Value, &v) != nil || v.Version != revisionVersion {
			return
		}
		m, err := storage.DecodeMemory(v.Before)
		if err != nil {
			return
		}
		m.Scope, m.Version, m.CreatedAt, m.UpdatedAt = scope, v.MemoryVersion, v.CreatedAt, v.UpdatedAt
		out = append(out, Revision{v.At, v.Op, v.Group, v.By, v.Why, m, r.Ref()})
	}
	if reader, ok := s.local.(storage.PrefixReader); ok {
		pages := storage.Pages(func(after string) (storage.RecordPage, string, error) {
			page, err := reader.RecordsWithPrefix(ctx, storage.BucketRevision, scope, prefix, after, scanPage)
			return page, page.Next, err
		})
		for page, err := range pages {
			if err != nil {
				return nil, err
			}
			for _, r := range page.Records {
				read(r)
			}
		}
	} else if err := s.eachRecord(ctx, storage.BucketRevision, scope, read); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b Revision) int { return strings.Compare(revisionTime(b.ref.Key), revisionTime(a.ref.Key)) })
	return out, nil
}

// lastRevisions returns the newest revision of a memory, and those of the
// memories that were discarded or brought back in the same change.
func (e *erasure) lastRevisions(id string) ([]Revision, error) {
	own, err := e.revisions(e.ctx, e.scope, recordKey(id))
	if err != nil {
		return nil, err
	}
	m, err := e.store.Memory(e.ctx, e.scope, id)
	if err != nil {
		return nil, err
	}
	own = slices.DeleteFunc(own, func(r Revision) bool { return r.Before.Version == m.Version }) // of changes that were cut short
	if len(own) == 0 {
		return nil, storage.ErrNotFound
	}
	last := own[0]
	if last.Group == "" {
		return own[:1], nil
	}
	all, err := e.revisions(e.ctx, e.scope, "")
	if err != nil {
		return nil, err
	}
	same := slices.DeleteFunc(all, func(r Revision) bool {
		return r.Group != last.Group || revisionTime(r.ref.Key) != revisionTime(last.ref.Key)
	})
	return same, nil
}

// forgetCopies deletes what other records keep of memories that are erased:
// their revisions, and their lines in receipts.
func (e *erasure) forgetCopies(ids []string) error {
	keys, err := e.recordKeys(storage.BucketRevision)
	if err != nil {
		return err
	}
	gone := make(map[string]struct{}, len(ids))
	var stale []string
	for _, id := range ids {
		gone[id] = struct{}{}
		stale = append(stale, keysWithPrefix(keys, recordKey(id))...)
	}
	if err := e.deleteKeys(storage.BucketRevision, stale); err != nil {
		return err
	}
	e.out.record(storage.BucketRevision, len(stale))
	return e.rewriteReceipts(func(value []byte) ([]byte, bool) { return receipt.Forget(value, gone) })
}

// forgetQuestions deletes what receipts keep of the questions in exchanges.
func (e *erasure) forgetQuestions(of func(*receipt.Receipt) bool) error {
	return e.rewriteReceipts(func(value []byte) ([]byte, bool) { return receipt.ForgetQuestion(value, of) })
}

func (e *erasure) rewriteReceipts(change func([]byte) ([]byte, bool)) error {
	var rewritten []storage.Record
	err := e.eachRecord(e.ctx, storage.BucketExchange, e.scope, func(r storage.Record) {
		if value, changed := change(r.Value); changed {
			r.Value = value
			rewritten = append(rewritten, r)
		}
	})
	if err != nil {
		return err
	}
	if err := e.putRecords(e.ctx, rewritten); err != nil {
		return err
	}
	e.out.record(storage.BucketExchange, len(rewritten))
	return nil
}
