package facts

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// A forgotten fact could come back: the passage that it was made of may stand,
// and be audited again after a crash, by an import, or because other words of
// its turn changed. So forgetting leaves a tombstone with hashes of what the
// fact said, in a record that is sealed and erased with the user. An audit
// saves nothing that a tombstone matches unless it was said after the
// forgetting. The statement itself it never saves, for a clock that was ahead
// may have dated it.
//
// A forgotten conversation leaves one tombstone with a hash of its id: nothing
// that was said in it until then is made a fact again, by an import for
// example. The same words may be a fact of another conversation.
//
// Tombstones expire when facts of their age would have. Config.MaxForgotten
// bounds them.

const (
	tombstonePrefix  = "gone-" // of a key in storage.BucketAudit, + hash of the fact's id
	tombstoneVersion = 1
)

type tombstone struct {
	Version int
	At      storage.Time // of the forgetting, or of what was forgotten if that is later
	Hashes  []uint64
}

func tombstoneHash(scope storage.Scope, what, words string) uint64 {
	return binary.LittleEndian.Uint64(scopedHash(scope, what, words))
}

func statementHash(scope storage.Scope, id string) uint64 {
	return tombstoneHash(scope, "statement", statementMark(id))
}

func conversationHash(scope storage.Scope, conversation string) uint64 {
	return tombstoneHash(scope, "conversation", conversation)
}

// hashes identify a fact: the statement itself first, then its words, its
// content words, and the value of its subject.
func (f *fact) hashes(scope storage.Scope) []uint64 {
	out := []uint64{statementHash(scope, f.id), tombstoneHash(scope, "words", f.Words)}
	if len(f.Content) > 0 {
		out = append(out, tombstoneHash(scope, fmt.Sprint("content ", f.Negative), strings.Join(f.Content, " ")))
	}
	if f.Subject != "" {
		out = append(out, tombstoneHash(scope, f.Subject, f.Value))
	}
	return out
}

func (t *tombstone) record(scope storage.Scope, keep time.Duration) storage.Record {
	t.Version = tombstoneVersion
	value, _ := json.Marshal(t) // numbers always encode
	return storage.Record{
		Bucket: storage.BucketAudit, Scope: scope, Key: fmt.Sprintf("%s%016x", tombstonePrefix, t.Hashes[0]), Value: value,
		ExpiresAt: t.At + storage.Time(keep.Milliseconds()),
	}
}

// Tombstones returns records that keep forgotten facts from being made again,
// by the statements that reinforced them either. Of a fact that can't be read
// the id alone is known. keep is how long they hold.
func Tombstones(scope storage.Scope, forgotten []storage.Memory, now storage.Time, keep time.Duration) []storage.Record {
	out := make([]storage.Record, len(forgotten))
	for i := range forgotten {
		m := &forgotten[i]
		t := tombstone{At: now, Hashes: []uint64{statementHash(scope, m.ID)}}
		if m.Text != "" {
			t.Hashes = parse(m).hashes(scope)
		}
		for _, tag := range m.Tags {
			if mark, ok := strings.CutPrefix(tag, tagSaid); ok {
				t.Hashes = append(t.Hashes, statementHash(scope, mark))
			}
		}
		out[i] = t.record(scope, keep)
	}
	return out
}

// ConversationTombstone returns the record that keeps what was said in a
// conversation until at from being made facts.
func ConversationTombstone(scope storage.Scope, conversation string, at storage.Time, keep time.Duration) storage.Record {
	t := tombstone{At: at, Hashes: []uint64{conversationHash(scope, conversation)}}
	return t.record(scope, keep)
}

// IsTombstone reports whether a record in [storage.BucketAudit] has the key of
// a tombstone.
func IsTombstone(r *storage.Record) bool { return strings.HasPrefix(r.Key, tombstonePrefix) }

// TombstoneTime returns the time up to which a tombstone holds statements off;
// ok is false for other records.
func TombstoneTime(r *storage.Record) (at storage.Time, ok bool) {
	t, ok := decodeTombstone(r)
	return t.At, ok
}

func decodeTombstone(r *storage.Record) (t tombstone, ok bool) {
	if !IsTombstone(r) {
		return t, false
	}
	err := json.Unmarshal(r.Value, &t)
	return t, err == nil && t.Version == tombstoneVersion
}

// tombstoneBytes estimates what a hash takes in a map.
const tombstoneBytes = 40

// LoadTombstone adds a tombstone to the Set; other records are ignored.
func (s *Set) LoadTombstone(r *storage.Record) {
	t, ok := decodeTombstone(r)
	if !ok {
		return
	}
	for _, h := range t.Hashes {
		if _, ok := s.forgotten[h]; !ok {
			s.bytes += tombstoneBytes
		}
		s.forgotten[h] = max(s.forgotten[h], t.At)
	}
}

// buried reports whether what f says was forgotten and not said since.
func (s *Set) buried(f *fact) bool {
	if len(s.forgotten) == 0 {
		return false
	}
	hashes := f.hashes(s.scope)
	if _, ok := s.forgotten[hashes[0]]; ok { // the statement itself
		return true
	}
	for _, h := range append(hashes[1:], conversationHash(s.scope, f.conversation)) {
		if at, ok := s.forgotten[h]; ok && f.from <= at {
			return true
		}
	}
	return false
}

// Derived reports whether a fact was made of a passage of its turn, given the
// passage's normalized words. Of a fact in a model's words that is always
// assumed.
func Derived(m *storage.Memory, passage string) bool {
	quote, _, quoted := extract.Quotation(m.Text)
	return !quoted || extract.HoldsWords(passage, extract.Normalize(quote))
}
