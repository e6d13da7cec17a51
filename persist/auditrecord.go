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

	"github.com/remora-proxy/remora/storage"
)

const auditVersion = 1

// Keys in BucketAudit and BucketSummary.
const (
	auditPrefix  = "audit-"  // + slot of the ring
	forgetPrefix = "forget-" // + id of the request
)

// AuditRecord says what one audit looked at and what came of it. It holds no content.
type AuditRecord struct {
	Version      int
	At           storage.Time // when the audit was made
	Conversation string
	From, To     storage.Time   // of the window's messages
	Messages     int            // in the window
	Fresh        int            // of them, those that no audit had seen
	Tokens       int            // of the window, estimated
	Candidates   int            `json:",omitempty"` // spans that were scored
	Mean, Best   float64        `json:",omitempty"` // of their scores
	Saved        int            `json:",omitempty"`
	Superseded   int            `json:",omitempty"` // of those saved, the ones that made an older fact give way
	Reinforced   int            `json:",omitempty"`
	Quarantined  int            `json:",omitempty"`
	Rejected     map[string]int `json:",omitempty"` // spans by the reason for which they were not saved
	Soft         bool           `json:",omitempty"` // the soft limit cut it short
	Distilled    bool           `json:",omitempty"` // a model proposed the candidates
	TookMicros   int64
}

func (r *AuditRecord) encode(at time.Time) []byte {
	r.Version, r.At = auditVersion, storage.TimeOf(at)
	b, _ := json.Marshal(r) // nothing in it can't be encoded
	return b
}

// Audits lists what is kept of a scope's audits, newest first.
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

// Summaries lists what is kept of a scope's conversations, newest first.
func (p *Pipeline) Summaries(ctx context.Context, scope storage.Scope) ([]Summary, error) {
	var out []Summary
	err := p.eachRecord(ctx, storage.BucketSummary, scope, func(r storage.Record) {
		if s, err := decodeSummary(r.Value); err == nil {
			out = append(out, *s)
		}
	})
	slices.SortStableFunc(out, func(a, b Summary) int { return cmp.Compare(b.Updated, a.Updated) })
	return out, err
}

// eachRecord reads one bucket of a scope.
func (p *Pipeline) eachRecord(ctx context.Context, bucket storage.Bucket, scope storage.Scope, found func(storage.Record)) error {
	for page, err := range storage.RecordPages(ctx, p.local, bucket, scope, scanPage) {
		if err != nil {
			return err
		}
		for _, r := range page.Records {
			found(r)
		}
	}
	return nil
}

// loadRecords fills in what a dossier knows of the scope's records: where the ring stands, the ages of the rest.
func (p *Pipeline) loadRecords(ctx context.Context, d *dossier) error {
	newest := storage.Time(0)
	err := p.eachRecord(ctx, storage.BucketAudit, d.scope, func(r storage.Record) {
		switch {
		case strings.HasPrefix(r.Key, auditPrefix):
			var a struct{ At storage.Time }
			var slot int
			if _, err := fmt.Sscanf(r.Key, auditPrefix+"%d", &slot); err == nil && json.Unmarshal(r.Value, &a) == nil && a.At >= newest {
				newest, d.records = a.At, slot+1
			}
		case strings.HasPrefix(r.Key, forgetPrefix):
			if f, err := decodePending(r.Value); err == nil {
				d.pending = append(d.pending, pendingAge{r.Key, f.At})
			}
		default:
			if t, ok := decodeTombstone(&r); ok {
				d.bury(&t)
			}
		}
	})
	if err != nil {
		return err
	}
	slices.SortFunc(d.pending, func(a, b pendingAge) int { return cmp.Compare(a.at, b.at) })
	return p.eachRecord(ctx, storage.BucketSummary, d.scope, func(r storage.Record) {
		if s, err := decodeSummary(r.Value); err == nil {
			d.summaries[r.Key] = s.Updated
		}
	})
}

// summaryOf reads a conversation's summary if there is one.
func (p *Pipeline) summaryOf(ctx context.Context, d *dossier, conversation string) (*Summary, error) {
	key := recordKey(conversation)
	s := &Summary{Conversation: conversation}
	if _, ok := d.summaries[key]; !ok {
		return s, nil
	}
	r, err := p.record(ctx, storage.RecordRef{Bucket: storage.BucketSummary, Scope: d.scope, Key: key})
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged): // it is begun anew
		return s, nil
	case err != nil:
		return s, err
	}
	if found, err := decodeSummary(r.Value); err == nil {
		s = found
	}
	return s, nil
}

// recordKey is the key of a conversation's summary.
func recordKey(conversation string) string {
	h := sha256.Sum256([]byte(conversation))
	return hex.EncodeToString(h[:16])
}

// PendingForget is something that a user asked to forget in a conversation. Nothing is forgotten until someone confirms it.
type PendingForget struct {
	Version      int
	ID           string
	At           storage.Time // when it was said
	Conversation string
	Turn         string
	Text         string   // the request, redacted
	Memories     []string // ids of facts that it seems to mean
}

func (f *PendingForget) encode() ([]byte, error) { return json.Marshal(f) }

func decodePending(value []byte) (PendingForget, error) {
	var f PendingForget
	if err := json.Unmarshal(value, &f); err != nil || f.Version != auditVersion {
		return f, errors.New("request is not readable")
	}
	return f, nil
}

// maxMeant bounds the facts that a request to forget names.
const maxMeant = 20

// forgetRequest finds the facts that share half of the request's telling words.
func (p *Pipeline) forgetRequest(d *dossier, m *windowMessage, conversation, text string) PendingForget {
	f := PendingForget{
		Version: auditVersion, ID: factID(d.scope, m.turn, text), At: storage.TimeOf(m.at), Conversation: conversation, Turn: m.turn, Text: head(text, 1024),
	}
	wanted, _ := contentOf(words(text))
	wanted = slices.DeleteFunc(wanted, func(w string) bool {
		return w == "forget" || w == "vergis" || w == "oubli" || w == "olvida" || w == "memory"
	})
	for id, known := range d.facts {
		shared := 0
		for _, w := range wanted {
			if _, ok := slices.BinarySearch(known.content, w); ok {
				shared++
			}
		}
		if shared > 0 && shared*2 >= len(wanted) {
			f.Memories = append(f.Memories, id)
		}
	}
	slices.Sort(f.Memories)
	f.Memories = f.Memories[:min(len(f.Memories), maxMeant)]
	return f
}

// PendingForgets lists what a scope's user asked to forget and nobody has confirmed or dismissed, oldest first.
func (p *Pipeline) PendingForgets(ctx context.Context, scope storage.Scope) ([]PendingForget, error) {
	var out []PendingForget
	err := p.eachRecord(ctx, storage.BucketAudit, scope, func(r storage.Record) {
		if strings.HasPrefix(r.Key, forgetPrefix) {
			if f, err := decodePending(r.Value); err == nil {
				out = append(out, f)
			}
		}
	})
	slices.SortFunc(out, func(a, b PendingForget) int { return cmp.Compare(a.At, b.At) })
	return out, err
}

// DismissForget takes a request off the list and forgets nothing. To confirm one, forget the memories that are meant
// with [Pipeline.ForgetMemories] and dismiss it then.
func (p *Pipeline) DismissForget(ctx context.Context, scope storage.Scope, id string) error {
	return p.local.DeleteRecords(ctx, []storage.RecordRef{{Bucket: storage.BucketAudit, Scope: scope, Key: forgetPrefix + id}})
}
