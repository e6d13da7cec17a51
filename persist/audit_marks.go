package persist

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// What the auditor has heard is marked in the spool before the turn leaves it, one mark for a conversation, which goes
// once the conversation was audited and has been idle: an audit that was due at a crash is due again at the next start,
// and reads its messages from the store. Facts have ids that follow from their words, so an audit made twice adds nothing.

const (
	markPrefix     = "due-"           // of a mark's key in the spool
	maxMarks       = 4096             // conversations marked as due; beyond, one is lost at a crash
	recoveredTurns = 50               // passages read back for a mark
	idleMark       = 10 * time.Minute // after which the mark of a conversation that was audited goes
	markSweep      = time.Minute      // how often that is looked at
	marksAtOnce    = 128              // go in one round: thousands at once would keep the store for a tenth of a second
)

type dueMark struct {
	talkKey
	key   string
	since storage.Time
}

// note hands stored turns to the auditor. Where conversations have no durable mark yet it hands nothing over and returns
// the marks: they are to be written, and note to be called again.
func (a *auditor) note(hs []heardTurn) []storage.Record {
	a.mu.Lock()
	defer a.mu.Unlock()
	var marks []storage.Record
	for i := range hs {
		h := &hs[i]
		if _, ok := a.marked[h.talkKey]; ok || len(a.marked) >= maxMarks {
			continue
		}
		since := storage.Time(0)
		for _, m := range h.messages {
			if at := storage.TimeOf(m.at); since == 0 || at < since {
				since = at
			}
		}
		value, err := encodeMark(h.conversation, since)
		if err != nil {
			continue // never: strings and a number
		}
		key := fmt.Sprintf("%s%016x-%s", markPrefix, time.Now().UnixNano(), recordKey(h.conversation))
		a.marked[h.talkKey] = key
		marks = append(marks, storage.Record{Bucket: storage.BucketSpool, Scope: h.scope, Key: key, Value: value})
	}
	clear(a.noted)
	if len(marks) > 0 { // not to be swept before the second call
		for i := range hs {
			a.noted[hs[i].talkKey] = true
		}
		return marks
	}
	for _, h := range hs {
		if len(a.heard) >= a.p.cfg.Audit.MaxHeard || a.heardBytes+h.size() > a.p.cfg.Audit.MaxBytes {
			a.p.stats.shed.Add(1)
			continue
		}
		a.heard = append(a.heard, h)
		a.heardBytes += h.size()
	}
	return nil
}

// unmarked has the next turn of conversations marked as due, whose marks could not be written.
func (a *auditor) unmarked(marks []storage.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	failed := make(map[string]bool, len(marks))
	for i := range marks {
		failed[marks[i].Key] = true
	}
	maps.DeleteFunc(a.marked, func(_ talkKey, key string) bool { return failed[key] })
}

// resume takes up the audits that were due when an earlier run ended.
func (a *auditor) resume(due []dueMark) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range due {
		a.marked[m.talkKey] = m.key
	}
	a.recovered = append(a.recovered, due...)
}

// recall takes up the audits of a scope that were due when an earlier run ended: it reads the conversations' messages back.
func (a *auditor) recall(r *roundWork, scope storage.Scope, due []dueMark) {
	r.undoing.marks = append(r.undoing.marks, due...)
	episodes := map[string][]storage.Memory{}
	since := map[string]storage.Time{}
	for _, m := range due {
		since[m.conversation] = m.since
	}
	pages := storage.Pages(func(after string) (page storage.Page, next string, err error) {
		q := storage.Query{Kinds: []storage.Kind{storage.KindEpisode}, After: after, Limit: scanPage}
		err = r.retry("audit", func() (err error) {
			page, err = a.p.store.Scan(r.work, scope, q)
			return err
		})
		return page, page.Next, err
	})
	begun := time.Now()
	for page, err := range pages {
		if err != nil {
			r.ended = !permanent(err)
			return
		}
		for _, e := range page.Memories {
			if from, ok := since[e.Conversation]; ok && e.EventTime >= from {
				list := append(episodes[e.Conversation], e)
				episodes[e.Conversation] = list[max(0, len(list)-recoveredTurns):]
			}
		}
		if page.Next != "" {
			pause(time.Since(begun), nil, nil, r.work.Done())
		}
		begun = time.Now()
	}
	for _, m := range due {
		for _, h := range rebuilt(m.talkKey, episodes[m.conversation]) {
			a.hear(r, &h)
		}
	}
}

// rebuilt makes turns of their passages, which come in order.
func rebuilt(key talkKey, episodes []storage.Memory) []heardTurn {
	var out []heardTurn
	for i := range episodes {
		e := &episodes[i]
		if e.Trust == 0 {
			continue
		}
		n := len(out)
		if n == 0 || out[n-1].turn != e.Provenance.Turn {
			out = append(out, heardTurn{talkKey: key, turn: e.Provenance.Turn, again: true, due: true})
			n++
		}
		h := &out[n-1]
		user := e.Provenance.Role == storage.RoleUser
		text, goesOn := strings.CutPrefix(e.Text, cutMark)
		text = strings.TrimSuffix(text, cutMark)
		if k := len(h.messages); goesOn && k > 0 && h.messages[k-1].user == user {
			h.messages[k-1].text = head(h.messages[k-1].text+" "+text, maxHeldUser)
			continue
		}
		h.messages = append(h.messages, windowMessage{
			turn: e.Provenance.Turn, chain: e.Provenance.Chain, source: e.Source, model: e.Provenance.Model, speaker: e.Provenance.Speaker,
			user: user, text: text, at: e.EventTime.Std(), fresh: true,
		})
	}
	return out
}

// unmark returns the marks that nothing needs any more and lets go of them: of conversations that are not held, or were
// audited and have been idle, or, at the end, that were audited at all. What waits to be heard keeps its mark. Before the end it
// returns some of them, and whether there are more.
func (a *auditor) unmark(now time.Time, end bool) (refs []storage.RecordRef, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !end && now.Sub(a.swept) < markSweep {
		return nil, false
	}
	needed := map[talkKey]bool{}
	for i := range a.heard {
		needed[a.heard[i].talkKey] = true
	}
	for _, m := range a.recovered {
		needed[m.talkKey] = true
	}
	for k, key := range a.marked {
		t := a.talks[k]
		if needed[k] || t != nil && (t.dirty() || !end && now.Sub(t.last) < idleMark) || a.noted[k] {
			continue
		}
		if !end && len(refs) == marksAtOnce {
			return refs, true
		}
		delete(a.marked, k)
		refs = append(refs, storage.RecordRef{Bucket: storage.BucketSpool, Scope: k.scope, Key: key})
	}
	a.swept = now
	return refs, false
}
