package persist

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// forgetNotes takes passages that are gone out of what was noted of their conversations: requests to forget that were
// made in them, and summaries, which are made anew of what is left. The gate is closed.
func (p *Pipeline) forgetNotes(ctx context.Context, scope storage.Scope, turns, talks map[string]bool, out *Erasure) error {
	if len(turns) == 0 {
		return nil
	}
	var refs []storage.RecordRef
	err := p.eachRecord(ctx, storage.BucketAudit, scope, func(r storage.Record) {
		if f, err := decodePending(r.Value); err == nil && strings.HasPrefix(r.Key, forgetPrefix) && turns[f.Turn] {
			refs = append(refs, r.Ref())
		}
	})
	if err != nil {
		return err
	}
	var summed []string // conversations
	err = p.eachRecord(ctx, storage.BucketSummary, scope, func(r storage.Record) {
		for c := range talks {
			if r.Key == recordKey(c) {
				refs, summed = append(refs, r.Ref()), append(summed, c)
			}
		}
	})
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(refs, storage.MaxRecords) {
		if err := p.local.DeleteRecords(ctx, batch); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		out.record(ref.Bucket, 1)
	}
	for c := range talks {
		if t := p.auditor.talks[talkKey{scope, c}]; t != nil {
			t.summary, t.summarised = nil, 0 // to be read anew
		}
	}
	for _, c := range summed {
		if err := p.summarise(ctx, talkKey{scope, c}); err != nil {
			return err
		}
	}
	return nil
}

// summarise makes a conversation's summary of its passages, but for those that the next audit reads.
func (p *Pipeline) summarise(ctx context.Context, key talkKey) error {
	due := p.auditor.unseen(key)
	s := &Summary{Conversation: key.conversation}
	var some []storage.Memory
	read := func() {
		for _, h := range rebuilt(key, some) {
			if !due[h.turn] {
				r := newReading()
				for i := range h.messages {
					r.take(&h.messages[i])
				}
				s.read(r)
			}
		}
		some = some[:0]
	}
	q := storage.Query{Conversation: key.conversation, Kinds: []storage.Kind{storage.KindEpisode}}
	err := p.eachMemory(ctx, key.scope, q, func(m *storage.Memory) {
		if m.Conversation != key.conversation {
			return
		}
		if some = append(some, *m); len(some) == scanPage {
			read()
		}
	})
	if err != nil {
		return err
	}
	if read(); s.Messages == 0 {
		return nil
	}
	expires := storage.TimeOf(time.Now().Add(p.cfg.Audit.Retention))
	return p.local.PutRecords(ctx, []storage.Record{{Bucket: storage.BucketSummary, Scope: key.scope, Key: recordKey(key.conversation), Value: s.encode(), ExpiresAt: expires}})
}
