// Package storagetest is the contract suite that every store must pass, [Run],
// and a store in memory for the tests of other packages, [Memory], which passes
// it too.
//
// The suite knows only the contract of package storage and measures no times.
// Tests of optional interfaces are skipped for stores that lack them.
package storagetest

import (
	"cmp"
	"errors"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// Opened is a store under test.
type Opened struct {
	Store storage.Store
	Local storage.Local
	// Close makes every later call ErrUnavailable.
	Close func() error
	// Reopen closes the store if it is open, and opens it again on the same
	// data as a new process would.
	Reopen func(t *testing.T) Opened
	// MaxWrite is the largest write that the store accepts; 0 =
	// storage.MaxWrite.
	MaxWrite int
}

func (o Opened) maxWrite() int { return cmp.Or(o.MaxWrite, storage.MaxWrite) }

// Run runs the contract suite. Each test opens an empty store of its own.
func Run(t *testing.T, open func(t *testing.T) Opened) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, o Opened)
	}{
		{"every field is read back", putAndReadBack},
		{"versions and times of a replacement", replacement},
		{"a write is whole or not at all", atomicWrite},
		{"invalid arguments", invalidArguments},
		{"limits", limits},
		{"delete", deleteMemories},
		{"expiry", expiry},
		{"copies are not shared", copies},
		{"scan order and pages", scanOrder},
		{"scan of memories of one time", scanTie},
		{"scan filters", scanFilters},
		{"scan resumes after restart and deletion", scanResumes},
		{"scan cursors are valid for their scan only", scanCursors},
		{"replaying a turn changes nothing", turnReplay},
		{"turn replacement", turnReplacement},
		{"turn with a deleted passage", turnGap},
		{"scopes with crafted parts", craftedScopes},
		{"foreign ids", foreignIDs},
		{"records", records},
		{"records in pages", recordPages},
		{"records of one call are atomic", recordsAtomic},
		{"large records", largeRecords},
		{"all records over scopes", allRecords},
		{"lookups", lookups},
		{"install secret", installSecret},
		{"digests", digests},
		{"digests count expired memories", digestOfExpired},
		{"expiry does not change digests", digestWhileExpiring},
		{"scopes", scopes},
		{"reap", reap},
		{"erase tenant", eraseTenant},
		{"erase all", eraseAll},
		{"erase", erase},
		{"durable across reopening", durable},
		{"canceled context", canceled},
		{"unavailable after close", closed},
		{"concurrency", concurrent},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
	t.Run("random operations", func(t *testing.T) { randomOperations(t, open(t), operations(t)) })
}

func scopeOf(user string) storage.Scope {
	return storage.Scope{Tenant: "tenant", App: "app", Project: "project", User: user}
}

// Full returns a memory with every field set that a caller can set.
func Full(id string, at storage.Time) storage.Memory {
	return storage.Memory{
		ID: id, Conversation: "conv\x00ersation", Kind: storage.KindFact,
		Text:     "Ana's budget is 4200 €\x00\xff and the text need not be UTF-8",
		Entities: []string{"Ana", ""}, Tags: []string{"money"},
		Priority: 0.7, Confidence: 0.25, Trust: 1, Source: "proxy",
		Provenance: storage.Provenance{
			Turn: "turn", Chain: "c0ffee", Role: storage.RoleUser, Speaker: "Ana", Seq: 3, Model: "some-model",
		},
		Redactions: map[string]string{"h1": "sealed one", "h2": ""},
		CreatedAt:  1111, UpdatedAt: 2222, EventTime: at, ValidFrom: 3333, ValidTo: 4444, SupersededBy: "another",
		ExpiresAt: 32503680000000, DeletedAt: 5555,
	}
}

func simple(id string, at storage.Time) storage.Memory {
	return storage.Memory{ID: id, Kind: storage.KindEpisode, Text: "text of " + id, EventTime: at, CreatedAt: 1, UpdatedAt: 1}
}

// turnOf returns a write of n passages.
func turnOf(scope storage.Scope, turn string, n int, text string) storage.Write {
	w := storage.Write{Scope: scope, Turn: turn}
	for i := range n {
		m := simple(storage.TurnMemoryID(turn, i), storage.Time(100+i))
		m.Text = fmt.Sprintf("%s %d", text, i)
		w.Memories = append(w.Memories, m)
	}
	return w
}

func put(t *testing.T, s storage.Store, scope storage.Scope, memories ...storage.Memory) {
	t.Helper()
	putWrites(t, s, storage.Write{Scope: scope, Memories: memories})
}

func putWrites(t *testing.T, s storage.Store, writes ...storage.Write) {
	t.Helper()
	if err := s.Put(t.Context(), writes); err != nil {
		t.Fatalf("Put: %v", err)
	}
}

func read(t *testing.T, s storage.Store, scope storage.Scope, id string) storage.Memory {
	t.Helper()
	m, err := s.Memory(t.Context(), scope, id)
	if err != nil {
		t.Fatalf("Memory %q: %v", id, err)
	}
	return m
}

// scanAll reads and checks all pages.
func scanAll(t *testing.T, s storage.Store, scope storage.Scope, q storage.Query) []storage.Memory {
	t.Helper()
	var all []storage.Memory
	for pages := 0; ; pages++ {
		page, err := s.Scan(t.Context(), scope, q)
		if err != nil {
			t.Fatalf("Scan: %v", err)
		}
		if page.Damaged != 0 {
			t.Errorf("Scan: %d damaged records", page.Damaged)
		}
		if got, limit := len(page.Memories), storage.PageLimit(q.Limit); got > limit {
			t.Errorf("Scan: %d memories on a page of at most %d", got, limit)
		}
		all = append(all, page.Memories...)
		if page.Next == "" {
			return all
		}
		if pages > 10000 {
			t.Fatal("Scan: does not end")
		}
		q.After = page.Next
	}
}

func ids(memories []storage.Memory) []string {
	var ids []string
	for _, m := range memories {
		ids = append(ids, m.ID)
	}
	return ids
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
