package persist

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// A fact that a person had forgotten could come back: the passage that it was made of may stand, and be audited anew after
// a crash, by an import, or because other words of its turn changed. So forgetting leaves a tombstone with hashes of what
// the fact said, in a record that is sealed and erased with the user. An audit saves nothing that a tombstone's hash
// matches, unless it was said after the forgetting; the statement itself never, for it may have been said by a clock that
// was ahead.
//
// A forgotten conversation leaves one tombstone with a hash of its id alone: nothing that was said in it before, or by
// then was stored of it, is made a fact of again, as by an import. What the user says elsewhere, in the same words even, is
// theirs still.
//
// Tombstones expire when facts that are that old would have done so; FactConfig.MaxForgotten bounds them.

const (
	tombstonePrefix  = "gone-" // of a key in BucketAudit, + hash of the fact's id
	tombstoneVersion = 1
)

type tombstone struct {
	Version int
	At      storage.Time // of the forgetting, or of what was forgotten if that is later
	Hashes  []uint64
}

// tombstoneHash covers the scope, so that two users' are not to be compared.
func tombstoneHash(scope storage.Scope, what, words string) uint64 {
	return binary.LittleEndian.Uint64(scopedHash(scope, what, words))
}

func statementHash(scope storage.Scope, id string) uint64 {
	return tombstoneHash(scope, "statement", saidMark(id))
}

// talkHash stands for all that was said in a conversation.
func talkHash(scope storage.Scope, conversation string) uint64 {
	return tombstoneHash(scope, "conversation", conversation)
}

// hashes are what a fact is recognised by: the statement itself, its words, its telling words, and what it says of what.
func (f *fact) hashes(scope storage.Scope) []uint64 {
	out := []uint64{statementHash(scope, f.id), tombstoneHash(scope, "words", f.norm)}
	if len(f.content) > 0 {
		out = append(out, tombstoneHash(scope, fmt.Sprint("content ", f.negative), strings.Join(f.content, " ")))
	}
	if f.subject != "" {
		out = append(out, tombstoneHash(scope, f.subject, f.value))
	}
	return out
}

// tombstoneOf makes the record for a forgotten fact. The statements that reinforced it must not make it again either.
func (p *Pipeline) tombstoneOf(scope storage.Scope, m *storage.Memory, now storage.Time) (storage.Record, error) {
	t := tombstone{Version: tombstoneVersion, At: now, Hashes: []uint64{statementHash(scope, m.ID)}}
	if m.Text != "" { // else it is damaged
		t.Hashes = factOf(m).hashes(scope)
	}
	for _, tag := range m.Tags {
		if mark, ok := strings.CutPrefix(tag, tagSaid); ok {
			t.Hashes = append(t.Hashes, statementHash(scope, mark))
		}
	}
	return p.buriedAs(scope, &t)
}

func (p *Pipeline) buriedAs(scope storage.Scope, t *tombstone) (storage.Record, error) {
	value, err := json.Marshal(t)
	return storage.Record{
		Bucket: storage.BucketAudit, Scope: scope, Key: fmt.Sprintf("%s%016x", tombstonePrefix, t.Hashes[0]), Value: value,
		ExpiresAt: t.At + storage.Time(p.cfg.Facts.LongRetention.Milliseconds()),
	}, err
}

func decodeTombstone(r *storage.Record) (t tombstone, ok bool) {
	if !strings.HasPrefix(r.Key, tombstonePrefix) {
		return t, false
	}
	err := json.Unmarshal(r.Value, &t)
	return t, err == nil && t.Version == tombstoneVersion
}

// bury writes tombstones of facts. It comes before the facts go: a crash in between leaves a fact that is still there, and
// forgetting it again mends that. The gate is closed.
func (p *Pipeline) bury(ctx context.Context, scope storage.Scope, facts []storage.Memory) error {
	now := storage.TimeOf(time.Now())
	var records []storage.Record
	for i := range facts {
		r, err := p.tombstoneOf(scope, &facts[i], now)
		if err != nil {
			return err
		}
		records = append(records, r)
	}
	return p.putTombstones(ctx, scope, records)
}

// buryConversation writes the tombstone of a conversation, whose newest words are of latest. The gate is closed.
func (p *Pipeline) buryConversation(ctx context.Context, scope storage.Scope, conversation string, latest storage.Time) error {
	r, err := p.buriedAs(scope, &tombstone{
		Version: tombstoneVersion, At: max(storage.TimeOf(time.Now()), latest), Hashes: []uint64{talkHash(scope, conversation)},
	})
	if err != nil {
		return err
	}
	return p.putTombstones(ctx, scope, []storage.Record{r})
}

// putTombstones keeps to FactConfig.MaxForgotten: beyond it the oldest go, and what they stood for may be saved again if a
// passage with it is audited anew.
func (p *Pipeline) putTombstones(ctx context.Context, scope storage.Scope, records []storage.Record) error {
	if len(records) == 0 || p.cfg.Facts.MaxForgotten == 0 {
		return nil
	}
	for batch := range slices.Chunk(records, storage.MaxRecords) {
		if err := p.local.PutRecords(ctx, batch); err != nil {
			return err
		}
	}
	type aged struct {
		ref storage.RecordRef
		at  storage.Time
	}
	var all []aged
	err := p.eachRecord(ctx, storage.BucketAudit, scope, func(r storage.Record) {
		if t, ok := decodeTombstone(&r); ok {
			all = append(all, aged{r.Ref(), t.At})
		}
	})
	if err != nil || len(all) <= p.cfg.Facts.MaxForgotten {
		return err
	}
	slices.SortFunc(all, func(a, b aged) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.ref.Key, b.ref.Key)) })
	var refs []storage.RecordRef
	for _, a := range all[:len(all)-p.cfg.Facts.MaxForgotten] {
		refs = append(refs, a.ref)
	}
	for batch := range slices.Chunk(refs, storage.MaxRecords) {
		err = errors.Join(err, p.local.DeleteRecords(ctx, batch))
	}
	return err
}

// bury notes a tombstone.
func (d *dossier) bury(t *tombstone) {
	for _, h := range t.Hashes {
		if _, ok := d.forgotten[h]; !ok {
			d.bytes += tombstoneBytes
		}
		d.forgotten[h] = max(d.forgotten[h], t.At)
	}
}

// tombstoneBytes is what a hash takes in a map, about.
const tombstoneBytes = 40

// buried says whether what f says was forgotten, and not said since.
func (d *dossier) buried(f *fact) bool {
	if len(d.forgotten) == 0 {
		return false
	}
	hashes := f.hashes(d.scope)
	if _, ok := d.forgotten[hashes[0]]; ok { // the statement
		return true
	}
	for _, h := range append(hashes[1:], talkHash(d.scope, f.conversation)) {
		if at, ok := d.forgotten[h]; ok && f.from <= at {
			return true
		}
	}
	return false
}
