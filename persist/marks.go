package persist

import (
	"fmt"
	"maps"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// A conversation with messages that no audit has read has a mark in the spool,
// written before its turn leaves the spool and deleted once the conversation
// was audited and has been idle. So an audit that was due at a crash is due
// again at the next start, and reads its messages from the store. The ids of
// facts follow from their words, so an audit made twice adds nothing.

const (
	markPrefix      = "due-"           // of the key of a mark in the spool
	maxMarks        = 4096             // of conversations; audits of those beyond are lost at a crash
	resumedPassages = 50               // read back for a mark
	idleMark        = 10 * time.Minute // after which the mark of an audited conversation is deleted
	markSweep       = time.Minute      // how often marks are swept
	marksPerSweep   = 128              // thousands in one commit would occupy the store for a tenth of a second
)

type dueMark struct {
	conversationKey
	key   string
	since storage.Time
}

// add hands stored turns to the auditor. If conversations have no durable mark
// yet, it hands over nothing and returns the marks to write; the caller then
// calls it again.
func (a *auditor) add(turns []auditTurn) []storage.Record {
	a.mu.Lock()
	defer a.mu.Unlock()
	var marks []storage.Record
	for i := range turns {
		t := &turns[i]
		if _, ok := a.marked[t.conversationKey]; ok || len(a.marked) >= maxMarks {
			continue
		}
		since := storage.Time(0)
		for _, m := range t.messages {
			if at := storage.TimeOf(m.Time); since == 0 || at < since {
				since = at
			}
		}
		value, err := encodeMark(t.conversation, since)
		if err != nil {
			continue // strings and numbers always encode
		}
		key := fmt.Sprintf("%s%016x-%s", markPrefix, time.Now().UnixNano(), recordKey(t.conversation))
		a.marked[t.conversationKey] = key
		marks = append(marks, storage.Record{Bucket: storage.BucketSpool, Scope: t.scope, Key: key, Value: value})
	}
	clear(a.marking)
	if len(marks) > 0 { // not to be swept before the second call
		for i := range turns {
			a.marking[turns[i].conversationKey] = true
		}
		return marks
	}
	for _, t := range turns {
		if len(a.incoming) >= a.tuning.maxIncoming || a.incomingBytes+t.size() > a.cfg.Audit.MaxBytes {
			a.stats.shed.Add(1)
			continue
		}
		a.incoming = append(a.incoming, t)
		a.incomingBytes += t.size()
	}
	return nil
}

// unmarked forgets marks that could not be written, so that the next turn of
// their conversations writes one.
func (a *auditor) unmarked(marks []storage.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	failed := make(map[string]bool, len(marks))
	for i := range marks {
		failed[marks[i].Key] = true
	}
	maps.DeleteFunc(a.marked, func(_ conversationKey, key string) bool { return failed[key] })
}

// resume takes over the audits that were due when an earlier run ended.
func (a *auditor) resume(due []dueMark) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range due {
		a.marked[m.conversationKey] = m.key
	}
	a.resumed = append(a.resumed, due...)
}

// readBack reads the messages of a scope's conversations whose audits were due
// when an earlier run ended.
func (r *round) readBack(scope storage.Scope, due []dueMark) {
	r.undo.marks = append(r.undo.marks, due...)
	episodes := map[string][]storage.Memory{}
	since := map[string]storage.Time{}
	for _, m := range due {
		since[m.conversation] = m.since
	}
	err := r.scan(scope, storage.KindEpisode, "audit", func(e *storage.Memory) {
		if from, ok := since[e.Conversation]; ok && e.EventTime >= from {
			list := append(episodes[e.Conversation], *e)
			episodes[e.Conversation] = list[max(0, len(list)-resumedPassages):]
		}
	})
	if err != nil {
		r.ended = !permanent(err)
		return
	}
	for _, m := range due {
		for _, t := range turnsOf(m.conversationKey, episodes[m.conversation]) {
			r.take(&t)
		}
	}
}

// sweepMarks drops the marks that nothing needs any more and returns them for
// deletion: of conversations that are not held, or were audited and have been
// idle. With stopping set, that were audited at all. A conversation of an
// incoming turn keeps its mark. Unless stopping, it returns a limited number,
// and whether there are more.
func (a *auditor) sweepMarks(now time.Time, stopping bool) (refs []storage.RecordRef, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !stopping && now.Sub(a.swept) < markSweep {
		return nil, false
	}
	needed := maps.Clone(a.marking)
	for i := range a.incoming {
		needed[a.incoming[i].conversationKey] = true
	}
	for _, m := range a.resumed {
		needed[m.conversationKey] = true
	}
	for k, key := range a.marked {
		c := a.conversations[k]
		if needed[k] || c != nil && (c.dirty() || !stopping && now.Sub(c.last) < idleMark) {
			continue
		}
		if !stopping && len(refs) == marksPerSweep {
			return refs, true
		}
		delete(a.marked, k)
		refs = append(refs, storage.RecordRef{Bucket: storage.BucketSpool, Scope: k.scope, Key: key})
	}
	a.swept = now
	return refs, false
}
