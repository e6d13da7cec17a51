package persist

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// A person, or a program for one, changes single memories by hand: adds,
// corrects, discards, and takes back. Each change keeps the version before it
// as a [Revision]. What is discarded is recalled no more and nothing is made of
// it again, but it can be brought back until its bytes go, after [UndoTime].

// UndoTime is how long a discarded memory can be brought back.
const UndoTime = 24 * time.Hour

// Errors of changes by hand. They wrap storage.ErrInvalid, except ErrChanged.
var (
	// ErrSecret: the text hides a secret, and is kept nowhere.
	ErrSecret = fmt.Errorf("the text holds a secret: %w", storage.ErrInvalid)
	// ErrNoText: nothing is left of the text once it is redacted.
	ErrNoText = fmt.Errorf("nothing is left of the text once it is redacted: %w", storage.ErrInvalid)
	// ErrChanged: the memory has another version than the caller expects.
	ErrChanged = errors.New("the memory was changed meanwhile")
)

// Cause is who makes a change, and why. Both may be empty.
type Cause struct{ By, Why string }

// prepareText redacts a text that somebody gives by hand and returns its
// originals as they are stored. before are those of the text that it replaces.
func (p *Pipeline) prepareText(ctx context.Context, scope storage.Scope, given string, before map[string]string) (string, map[string]string, error) {
	turn, err := p.redactor.prepare(Turn{Scope: scope, Messages: []Message{{Role: storage.RoleUser, Text: given}}})
	switch {
	case errors.Is(err, errDeclined): // asked for by hand, and so not declined
		turn.Messages = make([]Message, 1)
		turn.Messages[0].Text, turn.Messages[0].Originals = p.redactor.cut(given)
	case err != nil:
		return "", nil, ErrNoText
	}
	turn.Scope = scope
	said := &turn.Messages[0]
	if said.Text == "" {
		return "", nil, ErrNoText
	}
	if p.redactor.rules != nil && p.redactor.rules.HidesSecret(said.Text) {
		return "", nil, ErrSecret
	}
	if len(before) > 0 {
		said.Originals = redact.CarryOriginals(before, said.Text, said.Originals)
	}
	salt, err := p.redactor.salt(ctx, turn)
	if err != nil {
		return "", nil, err
	}
	return said.Text, redact.EncodeOriginals(salt, said.Originals), nil
}

// Saved is what became of a memory that was added.
type Saved struct {
	// Memory is as it is stored: the added one, or the one that says the same.
	Memory storage.Memory
	// Known reports that one was there that says the same. It counts as said
	// again.
	Known bool
	// Forgotten reports that it was said before it was forgotten, and so was
	// not added. Known is set, too, and Memory is as it was given.
	Forgotten bool
	// Superseded reports that an older statement gave way to this one.
	Superseded bool
}

// Remember adds memories by hand: facts, which take the place of those that
// they contradict, and passages of documents. Of each the caller sets Kind,
// Text and what else it knows; ID may be empty. Texts are redacted. Facts that
// say what is known reinforce it. Those with the tag quarantined are never
// recalled. If one can't be added, none is.
func (p *Pipeline) Remember(ctx context.Context, scope storage.Scope, ms ...storage.Memory) (saved []Saved, err error) {
	prepared := slices.Clone(ms)
	for i := range prepared {
		m := &prepared[i]
		if m.Text, m.Redactions, err = p.prepareText(ctx, scope, m.Text, nil); err != nil {
			return nil, fmt.Errorf("memory %d: %w", i, err)
		}
		m.Scope, m.Trust = scope, extract.Trust(m.Provenance.Role != storage.RoleAssistant, m.Text)
		if slices.Contains(m.Tags, facts.TagQuarantined) {
			m.Trust = extract.Quarantined
		}
		if facts.Pinned(m) {
			m.ExpiresAt = 0
		}
		if m.Kind != storage.KindFact {
			m.EventTime = cmp.Or(m.EventTime, storage.Now())
			m.ValidFrom = cmp.Or(m.ValidFrom, m.EventTime)
		}
	}
	saved = make([]Saved, len(prepared))
	_, err = p.erasing(ctx, scope, func(e *erasure) error {
		var others []storage.Memory
		var hidden []string
		var given []int // facts
		for i := range prepared {
			m := &prepared[i]
			if m.Kind == storage.KindFact {
				given = append(given, i)
				continue
			}
			if m.ID == "" {
				m.ID = randomID("m")
			}
			was, err := e.store.Memory(e.ctx, e.scope, m.ID)
			if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
				return err
			}
			known := err == nil && was.DeletedAt == 0 && was.Text == m.Text && was.Kind == m.Kind
			switch {
			case !known:
				was = *m
				others = append(others, was)
			case isPrivate(m) && !isPrivate(&was):
				was.Tags = append(slices.Clone(was.Tags), storage.PrivateTag)
				others, hidden = append(others, was), append(hidden, was.ID)
			}
			saved[i] = Saved{Memory: was, Known: known}
		}
		if err := e.mergeGiven(prepared, given, saved); err != nil || len(others) == 0 {
			return err
		}
		last, err := e.write(others...)
		if len(hidden) > 0 { // also if it failed: it may have happened
			e.notifyErased(hidden...)
		}
		for i := range saved {
			if m := &saved[i].Memory; m.Version == 0 && !saved[i].Forgotten {
				m.Version, m.CreatedAt, m.UpdatedAt = 1, last.CreatedAt, last.UpdatedAt
			}
			if saved[i].Memory.ID == last.ID {
				saved[i].Memory = last
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return saved, nil
}

func isPrivate(m *storage.Memory) bool { return slices.Contains(m.Tags, storage.PrivateTag) }

// mergeGiven merges the facts among ms at these indexes with what is known, and
// fills in what became of them. What is known becomes private if the same is
// given as private.
func (e *erasure) mergeGiven(ms []storage.Memory, indexes []int, saved []Saved) error {
	if len(indexes) == 0 {
		return nil
	}
	if err := e.passages.lock(e.ctx); err != nil {
		return err
	}
	defer e.passages.unlock()
	known, err := e.knownFacts()
	if err != nil {
		return err
	}
	defer delete(e.auditor.scopes, e.scope) // to be read again
	changes := facts.NewChanges(known.Set, e.store, e.cfg.Facts.Config)
	ids := make([]string, len(indexes))
	for n, i := range indexes {
		id, outcome, err := changes.MergeGiven(e.ctx, ms[i], randomID("by-hand-"))
		if err != nil {
			return err
		}
		ids[n] = id
		saved[i] = Saved{
			Memory: ms[i], Forgotten: outcome == facts.Forgotten, Superseded: outcome == facts.Superseded,
			Known: outcome == facts.Reinforced || outcome == facts.Known || outcome == facts.Forgotten,
		}
	}
	passages, err := changes.Passages(e.ctx)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(append(passages, changes.Written()...), factsPerWrite) {
		if err := e.surely(func() error { return e.store.Put(e.ctx, []storage.Write{{Scope: e.scope, Memories: batch}}) }); err != nil {
			return err
		}
		e.index.add(e.scope, batch)
	}
	for n, i := range indexes {
		if saved[i].Forgotten {
			continue
		}
		stored, err := e.store.Memory(e.ctx, e.scope, ids[n])
		if err == nil && isPrivate(&ms[i]) && !isPrivate(&stored) {
			stored.Tags = append(stored.Tags, storage.PrivateTag)
			stored, err = e.write(stored)
			e.notifyErased(ids[n]) // also if it failed: it may have happened
		}
		if err != nil {
			return err
		}
		saved[i].Memory = stored
	}
	return nil
}

// knownFacts returns what is known of the scope's facts.
func (e *erasure) knownFacts() (*scopeFacts, error) {
	if known := e.auditor.scopes[e.scope]; known != nil {
		return known, nil
	}
	return e.auditor.loadScope(e.ctx, e.scope, func(time.Duration) {})
}

// write stores memories and updates the index. It returns the last as stored.
func (e *erasure) write(ms ...storage.Memory) (last storage.Memory, err error) {
	for i := range ms {
		ms[i].UpdatedAt = 0 // the store's to set
	}
	for batch := range slices.Chunk(ms, factsPerWrite) {
		if err := e.surely(func() error { return e.store.Put(e.ctx, []storage.Write{{Scope: e.scope, Memories: batch}}) }); err != nil {
			return last, err
		}
		e.index.add(e.scope, batch)
	}
	delete(e.auditor.scopes, e.scope) // to be read again
	return e.store.Memory(e.ctx, e.scope, ms[len(ms)-1].ID)
}

// Edit changes a memory by hand. change gets it as it is and returns an error
// to leave it so. version is what the caller expects, 0 = any. A new text is
// redacted. With storage.PinnedTag it does not expire; without it any more, it
// lives as though it had been said now.
func (p *Pipeline) Edit(ctx context.Context, scope storage.Scope, id string, version uint64, cause Cause, change func(*storage.Memory) error) (after storage.Memory, err error) {
	_, err = p.erasing(ctx, scope, func(e *erasure) error {
		before, err := e.store.Memory(ctx, scope, id)
		if err != nil {
			return err
		}
		if before.DeletedAt != 0 {
			return storage.ErrNotFound
		}
		if version != 0 && version != before.Version {
			return ErrChanged
		}
		changed := before
		changed.Tags = slices.Clone(before.Tags)
		if err := change(&changed); err != nil {
			return err
		}
		if changed.Text != before.Text {
			if changed.Text, changed.Redactions, err = p.prepareText(ctx, scope, changed.Text, before.Redactions); err != nil {
				return err
			}
			changed.Trust = extract.Trust(true, changed.Text)
		}
		e.renewExpiry(&before, &changed)
		if err := e.keepRevisions(OpEdit, "", cause, before); err != nil {
			return err
		}
		after, err = e.write(changed)
		if hides(&before, &changed) { // also if it failed: it may have happened
			e.notifyErased(id)
		}
		return err
	})
	return after, err
}

// renewExpiry keeps a pinned memory from expiring. One that was pinned before
// and has no expiry that is still to come gets one, as though it had been said
// now.
func (e *erasure) renewExpiry(before, after *storage.Memory) {
	now := storage.Now()
	switch {
	case facts.Pinned(after):
		after.ExpiresAt = 0
	case !facts.Pinned(before) || after.ExpiresAt > now:
	case after.Kind == storage.KindFact:
		after.ExpiresAt = now + storage.Time(e.cfg.Facts.LongRetention.Milliseconds())
	case after.Kind == storage.KindEpisode:
		after.ExpiresAt = now + storage.Time(e.cfg.Retention.Milliseconds())
	}
}

// hides reports whether a change keeps a text from requests that may have been
// given it, so that they must not replay it: the memory says something else
// now, is not to be recalled, is private, or lacks a tag by which a policy may
// have allowed it.
func hides(before, after *storage.Memory) bool {
	lost := func(tag string) bool {
		return !slices.Contains(after.Tags, tag) && !strings.HasPrefix(tag, storage.UnwantedTag)
	}
	return after.Text != before.Text || after.DeletedAt != 0 || after.Trust == 0 && before.Trust > 0 || after.Kind != before.Kind ||
		isPrivate(after) && !isPrivate(before) || slices.ContainsFunc(before.Tags, lost)
}

// notifyErased has memories taken out of what later requests replay.
func (e *erasure) notifyErased(ids ...string) {
	e.index.notify(func(x Indexer) {
		if o, ok := x.(ErasureObserver); ok {
			o.Erased(e.scope, ids...)
		}
	})
}

// discarded is a record of the trash: what was discarded together.
type discarded struct {
	Version int
	IDs     []string
	Due     storage.Time // when the bytes go
}

const discardedVersion = 1

// Discard marks memories as deleted, and the facts that were made of passages
// among them. They can be brought back for [UndoTime] with [Pipeline.Undo]. It
// fails with storage.ErrNotFound if none of the ids is of the scope.
func (p *Pipeline) Discard(ctx context.Context, scope storage.Scope, cause Cause, ids ...string) (gone []storage.Memory, err error) {
	_, err = p.erasing(ctx, scope, func(e *erasure) error {
		named, err := e.find(ids)
		if err != nil {
			return err
		}
		if err := e.addDerived(named); err != nil {
			return err
		}
		now := storage.Now()
		for _, id := range slices.Sorted(maps.Keys(named.ids)) {
			m, err := e.store.Memory(ctx, scope, id)
			switch {
			case errors.Is(err, storage.ErrNotFound), err == nil && m.DeletedAt != 0:
				continue
			case err != nil:
				return err
			}
			gone = append(gone, m)
		}
		if len(gone) == 0 {
			return storage.ErrNotFound
		}
		group := randomID("")
		if err := e.keepRevisions(OpDelete, group, cause, gone...); err != nil {
			return err
		}
		marked, kept := slices.Clone(gone), make([]string, len(gone))
		for i := range marked {
			marked[i].DeletedAt, kept[i] = now, marked[i].ID
		}
		if err := e.discard(group, marked); err != nil {
			return err
		}
		for turn := range named.turns { // an audit that is due must not bring its words back
			e.auditor.forgetTurn(scope, turn, named.passages[turn] != nil)
		}
		_, err = e.write(marked...)
		e.notifyErased(kept...) // also if it failed: it may have happened
		if err != nil {
			return err
		}
		return e.surely(func() error { return e.renewSummaries(named.conversations) })
	})
	return gone, err
}

// discard notes in the trash which of the memories are deleted, so that their
// bytes go, and has nothing made of them again. If none is, what was noted
// under the group is taken back.
func (e *erasure) discard(group string, ms []storage.Memory) error {
	trash := storage.Record{Bucket: storage.BucketTrash, Scope: e.scope, Key: group}
	var ids []string
	var buried []storage.Memory
	for i := range ms {
		if ms[i].DeletedAt != 0 {
			ids, buried = append(ids, ms[i].ID), append(buried, ms[i])
		}
	}
	switch {
	case group == "":
		return nil
	case len(ids) == 0:
		return e.deleteRecords(e.ctx, []storage.RecordRef{trash.Ref()})
	}
	now := storage.Now()
	var err error
	if trash.Value, err = json.Marshal(discarded{discardedVersion, ids, now + storage.Time(UndoTime.Milliseconds())}); err != nil {
		return err
	}
	if err := e.putTombstones(facts.Tombstones(e.scope, factsAmong(buried), now, e.cfg.Facts.LongRetention)); err != nil {
		return err
	}
	return e.local.PutRecords(e.ctx, []storage.Record{trash})
}

func factsAmong(ms []storage.Memory) (out []storage.Memory) {
	for i := range ms {
		if ms[i].Kind == storage.KindFact {
			out = append(out, ms[i])
		}
	}
	return out
}

// Undo takes back the last change of a memory by hand, and what was discarded
// with it. Undoing twice brings the change back. It fails with
// storage.ErrNotFound if no change is known.
func (p *Pipeline) Undo(ctx context.Context, scope storage.Scope, id string, cause Cause) (restored []storage.Memory, err error) {
	_, err = p.erasing(ctx, scope, func(e *erasure) error {
		last, err := e.lastRevisions(id)
		if err != nil {
			return err
		}
		if strings.HasPrefix(last[0].Group, preferGroup) {
			restored, err = e.undoPreference(last, cause)
			return err
		}
		var now, before []storage.Memory
		var tombstones []storage.RecordRef
		for _, r := range last {
			m, err := e.store.Memory(ctx, scope, r.Before.ID)
			if errors.Is(err, storage.ErrNotFound) {
				continue // its bytes are gone
			}
			if err != nil {
				return err
			}
			r.Before.ValidTo, r.Before.SupersededBy = m.ValidTo, m.SupersededBy // which only a preference decides
			e.renewExpiry(&m, &r.Before)
			now, before = append(now, m), append(before, r.Before)
		}
		if len(now) == 0 {
			return storage.ErrNotFound
		}
		if err := e.keepRevisions(OpUndo, last[0].Group, cause, now...); err != nil {
			return err
		}
		for _, t := range facts.Tombstones(scope, factsAmong(before), 0, 0) {
			tombstones = append(tombstones, t.Ref())
		}
		if err := e.deleteRecords(ctx, tombstones); err != nil {
			return err
		}
		if err := e.discard(last[0].Group, before); err != nil {
			return err
		}
		_, err = e.write(before...)
		conversations := map[string]bool{}
		for i := range before {
			if hides(&now[i], &before[i]) { // also if it failed: it may have happened
				e.notifyErased(before[i].ID)
			}
			if before[i].Kind == storage.KindEpisode {
				conversations[before[i].Conversation] = true
			}
		}
		if err != nil {
			return err
		}
		for i := range before {
			m, err := e.store.Memory(ctx, scope, before[i].ID)
			if err != nil {
				return err
			}
			restored = append(restored, m)
		}
		return e.surely(func() error { return e.renewSummaries(conversations) })
	})
	return restored, err
}

// Prefer says that a superseded fact holds after all. The fact that holds in its
// place, if there is one, is superseded by it from now on, and requests do not
// replay it. Both versions are kept, and Undo of either takes both back. It
// returns what changed, the preferred fact first, and fails with [ErrCurrent] if
// nothing took the fact's place.
func (p *Pipeline) Prefer(ctx context.Context, scope storage.Scope, id string, cause Cause) (changed []storage.Memory, err error) {
	_, err = p.erasing(ctx, scope, func(e *erasure) error {
		older, err := e.store.Memory(ctx, scope, id)
		switch {
		case err != nil:
			return err
		case older.DeletedAt != 0:
			return storage.ErrNotFound
		case older.Kind != storage.KindFact || older.SupersededBy == "" && older.ValidTo == 0:
			return ErrCurrent
		}
		before := []storage.Memory{older}
		holder, err := e.successor(&older)
		if err != nil {
			return err
		}
		if holder != nil {
			before = append(before, *holder)
		}
		if err := e.keepRevisions(OpPrefer, randomID(preferGroup), cause, before...); err != nil {
			return err
		}
		changed, err = e.relink(before, func(c *facts.Changes) { c.Prefer(&older, holder, storage.Now()) })
		return err
	})
	return changed, err
}

// Purge erases what was discarded and is due by now, and returns how many
// memories that were.
func (p *Pipeline) Purge(ctx context.Context, now time.Time) (purged int, err error) {
	type due struct {
		ref storage.RecordRef
		ids []string
	}
	var all []due
	pages := storage.Pages(func(after string) (storage.RecordPage, string, error) {
		page, err := p.local.AllRecords(ctx, storage.BucketTrash, after, scanPage)
		return page, page.Next, err
	})
	for page, err := range pages {
		if err != nil {
			return 0, err
		}
		for i := range page.Records {
			r := &page.Records[i]
			var d discarded
			if json.Unmarshal(r.Value, &d) == nil && d.Due <= storage.TimeOf(now) {
				all = append(all, due{r.Ref(), d.IDs})
			}
		}
	}
	for _, d := range all {
		ids, err := p.stillDiscarded(ctx, d.ref.Scope, d.ids, now)
		if err != nil {
			return purged, err
		}
		e, err := p.ForgetMemories(ctx, d.ref.Scope, ids...)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return purged, err
		}
		purged += e.Memories
		if err := p.local.DeleteRecords(ctx, []storage.RecordRef{d.ref}); err != nil {
			return purged, err
		}
	}
	return purged, nil
}

// Revisions returns the changes that were made to a memory by hand, newest
// first. It does not tell whether the memory exists.
func (p *Pipeline) Revisions(ctx context.Context, scope storage.Scope, id string) ([]Revision, error) {
	return p.revisions(ctx, scope, recordKey(id))
}

// stillDiscarded returns those of the memories that have been discarded for
// [UndoTime]. Others were added again, or were never marked, because the store
// failed.
func (p *Pipeline) stillDiscarded(ctx context.Context, scope storage.Scope, ids []string, now time.Time) (due []string, err error) {
	for _, id := range ids {
		m, err := p.store.Memory(ctx, scope, id)
		switch {
		case errors.Is(err, storage.ErrDamaged), err == nil && m.DeletedAt != 0 && m.DeletedAt <= storage.TimeOf(now.Add(-UndoTime)):
			due = append(due, id)
		case err != nil && !errors.Is(err, storage.ErrNotFound):
			return nil, err
		}
	}
	return due, nil
}

// randomID returns an id that nothing else has.
func randomID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}
