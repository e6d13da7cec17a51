package persist

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

const auditVersion = 1

// Keys in BucketAudit.
const (
	auditPrefix  = "audit-"  // + slot of the ring
	forgetPrefix = "forget-" // + id of the request
)

// AuditRecord describes one audit and its result. It holds no content.
type AuditRecord struct {
	Version      int
	At           storage.Time // when the audit was made
	Conversation string
	From, To     storage.Time   // of the window's messages
	Messages     int            // in the window
	Fresh        int            // of them, those that no audit had read
	Tokens       int            // of the window, estimated
	Candidates   int            `json:",omitempty"` // sentences that were scored
	Mean, Best   float64        `json:",omitempty"` // of their scores
	Saved        int            `json:",omitempty"`
	Superseded   int            `json:",omitempty"` // of those saved, the ones that replaced an older fact
	Reinforced   int            `json:",omitempty"`
	Quarantined  int            `json:",omitempty"`
	Rejected     map[string]int `json:",omitempty"` // sentences that were not saved, by reason
	Soft         bool           `json:",omitempty"` // the soft limit cut it short
	Distilled    bool           `json:",omitempty"` // a model proposed the candidates
	TookMicros   int64
}

func (r *AuditRecord) encode(at time.Time) []byte {
	r.Version, r.At = auditVersion, storage.TimeOf(at)
	b, _ := json.Marshal(r) // strings and numbers always encode
	return b
}

// PendingForget is a user's request to forget, which somebody is to confirm.
type PendingForget struct {
	Version      int
	ID           string
	At           storage.Time // when it was said
	Conversation string
	Turn         string
	Text         string   // the request, redacted
	Memories     []string // ids of the facts that it seems to mean
}

func (f *PendingForget) encode() ([]byte, error) { return json.Marshal(f) }

func decodePending(r *storage.Record) (f PendingForget, ok bool) {
	if !strings.HasPrefix(r.Key, forgetPrefix) {
		return f, false
	}
	err := json.Unmarshal(r.Value, &f)
	return f, err == nil && f.Version == auditVersion
}

// recordKey returns the key of a conversation's summary.
func recordKey(conversation string) string {
	h := sha256.Sum256([]byte(conversation))
	return hex.EncodeToString(h[:16])
}

func summaryRef(k conversationKey) storage.RecordRef {
	return storage.RecordRef{Bucket: storage.BucketSummary, Scope: k.scope, Key: recordKey(k.conversation)}
}

// readSummary reads a conversation's summary, or begins one.
func (s *shared) readSummary(ctx context.Context, k conversationKey) (*extract.Summary, error) {
	begun := &extract.Summary{Conversation: k.conversation}
	r, err := s.record(ctx, summaryRef(k))
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged):
		return begun, nil
	case err != nil:
		return nil, err
	}
	if found, err := extract.DecodeSummary(r.Value); err == nil {
		return found, nil
	}
	return begun, nil
}

func (s *shared) summaryRecord(k conversationKey, of *extract.Summary) storage.Record {
	ref := summaryRef(k)
	return storage.Record{Bucket: ref.Bucket, Scope: ref.Scope, Key: ref.Key, Value: of.Encode(), ExpiresAt: s.auditExpiry(storage.Clock())}
}

func (s *shared) auditExpiry(now time.Time) storage.Time {
	return storage.TimeOf(now.Add(s.cfg.Audit.Retention))
}

// keptRecords limits the audit records, summaries and requests of a scope.
type keptRecords struct {
	audits    int                     // number of the next audit record
	summaries map[string]storage.Time // when each was updated, by key
	pending   []pendingAge            // requests to forget, oldest first
}

type pendingAge struct {
	key string
	at  storage.Time
}

// load notes a record. newest is the time of the newest audit so far.
func (k *keptRecords) load(r *storage.Record, newest *storage.Time) {
	if r.Bucket == storage.BucketSummary {
		if s, err := extract.DecodeSummary(r.Value); err == nil {
			k.summaries[r.Key] = storage.TimeOf(s.Updated)
		}
		return
	}
	if f, ok := decodePending(r); ok {
		k.pending = append(k.pending, pendingAge{r.Key, f.At})
		return
	}
	var a struct{ At storage.Time }
	var slot int
	if _, err := fmt.Sscanf(r.Key, auditPrefix+"%d", &slot); err == nil && json.Unmarshal(r.Value, &a) == nil && a.At >= *newest {
		*newest, k.audits = a.At, slot+1
	}
}

// auditKey returns the slot of the next audit record in a ring of n.
func (k *keptRecords) auditKey(n int) string {
	slot := k.audits % n
	k.audits++
	return fmt.Sprintf("%s%05d", auditPrefix, slot)
}

// addSummary notes a summary and returns the oldest keys beyond limit.
func (k *keptRecords) addSummary(key string, updated storage.Time, limit int) (stale []string) {
	k.summaries[key] = updated
	for len(k.summaries) > limit {
		oldest := key
		for other, at := range k.summaries {
			if other != key && (oldest == key || at < k.summaries[oldest] || at == k.summaries[oldest] && other < oldest) {
				oldest = other
			}
		}
		delete(k.summaries, oldest)
		stale = append(stale, oldest)
	}
	return stale
}

// addPending notes a request and returns the oldest keys beyond limit.
func (k *keptRecords) addPending(key string, at storage.Time, limit int) (stale []string) {
	if !slices.ContainsFunc(k.pending, func(p pendingAge) bool { return p.key == key }) {
		k.pending = append(k.pending, pendingAge{key, at})
	}
	for len(k.pending) > limit {
		stale = append(stale, k.pending[0].key)
		k.pending = k.pending[1:]
	}
	return stale
}

// Audits returns the audit records of a scope, newest first.
func (p *Pipeline) Audits(ctx context.Context, scope storage.Scope) ([]AuditRecord, error) {
	var out []AuditRecord
	err := p.eachRecord(ctx, storage.BucketAudit, scope, func(r storage.Record) {
		var a AuditRecord
		if strings.HasPrefix(r.Key, auditPrefix) && json.Unmarshal(r.Value, &a) == nil && a.Version == auditVersion {
			out = append(out, a)
		}
	})
	slices.SortStableFunc(out, func(a, b AuditRecord) int { return cmp.Compare(b.At, a.At) })
	return out, err
}

// Summaries returns the summaries of a scope's conversations, newest first.
func (p *Pipeline) Summaries(ctx context.Context, scope storage.Scope) ([]extract.Summary, error) {
	var out []extract.Summary
	err := p.eachRecord(ctx, storage.BucketSummary, scope, func(r storage.Record) {
		if s, err := extract.DecodeSummary(r.Value); err == nil {
			out = append(out, *s)
		}
	})
	slices.SortStableFunc(out, func(a, b extract.Summary) int { return b.Updated.Compare(a.Updated) })
	return out, err
}

// PendingForgets returns requests that nobody has confirmed or dismissed,
// oldest first.
func (p *Pipeline) PendingForgets(ctx context.Context, scope storage.Scope) ([]PendingForget, error) {
	var out []PendingForget
	err := p.eachRecord(ctx, storage.BucketAudit, scope, func(r storage.Record) {
		if f, ok := decodePending(&r); ok {
			out = append(out, f)
		}
	})
	slices.SortFunc(out, func(a, b PendingForget) int { return cmp.Compare(a.At, b.At) })
	return out, err
}

// DismissForget removes a request and forgets nothing. To confirm one, call
// [Pipeline.ForgetMemories] and dismiss it then.
func (p *Pipeline) DismissForget(ctx context.Context, scope storage.Scope, id string) error {
	return p.local.DeleteRecords(ctx, []storage.RecordRef{{Bucket: storage.BucketAudit, Scope: scope, Key: forgetPrefix + id}})
}
