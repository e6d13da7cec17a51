package badger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// maxPageBytes is about how much sealed data a page carries before it is cut short of its limit.
const maxPageBytes = 8 << 20

// Memory implements [storage.Store].
func (s *Store) Memory(ctx context.Context, scope storage.Scope, id string) (m storage.Memory, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return m, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if err := scope.Validate(); err != nil {
		return m, err
	}
	key, err := se.keys.find(se.keys.scope(scope))
	if err != nil {
		return m, err
	}
	if key == nil || id == "" || len(id) > storage.MaxID {
		return m, storage.ErrNotFound
	}
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	got, err := se.stored(txn, key, id, now())
	switch {
	case err != nil:
		return m, err
	case got.damaged != nil:
		return m, got.damaged
	case !got.live:
		return m, storage.ErrNotFound
	}
	return got.memory, nil
}

// Scan implements [storage.Store]. It opens every memory of the scope from the cursor on until the page is full.
func (s *Store) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (page storage.Page, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return page, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if err := scope.Validate(); err != nil {
		return page, err
	}
	h := se.keys.scope(scope)
	tag := se.keys.scanTag(h, q)
	after, err := parseCursor(q.After, tag)
	if err != nil {
		return page, err
	}
	key, err := se.keys.find(h)
	if err != nil || key == nil {
		return page, err
	}
	sc := scanner{key: key, query: q, after: after, now: now(), want: storage.PageLimit(q.Limit)}
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	if err := sc.run(ctx, txn); err != nil {
		return storage.Page{}, err
	}
	s.damaged.Add(uint64(sc.page.Damaged))
	if sc.more {
		last := sc.page.Memories[len(sc.page.Memories)-1]
		sc.page.Next = cursor{at: last.EventTime, id: last.ID}.encode(tag)
	}
	return sc.page, nil
}

// scanner reads one page. Badger yields memories by event time and, within one, by hash; the contract's order within
// one event time is that of ids, so memories of the same time are collected and sorted before they go to the page.
type scanner struct {
	key   *scopeKey
	query storage.Query
	after *cursor
	now   storage.Time
	want  int

	page  storage.Page
	bytes int
	more  bool // there is something after the page

	tie      []sized // memories of one event time
	tieTime  storage.Time
	tieBytes int

	// What was passed over since the last memory that stands on the page. It counts for the page that a later memory, or
	// the end of the scan, comes to stand on; else the next page, which begins behind that memory, meets it again.
	damaged int
	expired storage.Digest
}

type sized struct {
	storage.Memory
	bytes int
}

func (sc *scanner) run(ctx context.Context, txn *badgerdb.Txn) error {
	prefix := scopePrefix(levelMemory, sc.key.hash)
	seek := prefix
	if sc.after != nil {
		seek = appendTime(slices.Clone(prefix), sc.after.at)
	}
	it := newIterator(txn, prefix)
	defer it.Close()
	var plain []byte
	for n := 0; ; n++ {
		if n == 0 {
			it.Seek(seek)
		} else {
			it.Next()
		}
		if !it.Valid() {
			if sc.flush(); !sc.more {
				sc.countPassed()
			}
			return nil
		}
		if n%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		item := it.Item()
		diskKey := item.Key()
		if len(diskKey) != scopeEnd+8+hashSize {
			continue
		}
		at := timeAt(diskKey[scopeEnd:])
		if at != sc.tieTime {
			if sc.flush(); sc.more {
				return nil
			}
			sc.tieTime = at
		}
		err := item.Value(func(value []byte) error {
			var err error
			plain, err = sc.take(plain, diskKey, value, at)
			return err
		})
		if err != nil && !errors.Is(err, storage.ErrDamaged) {
			return err
		}
		if err != nil && !sc.counted(at) {
			sc.damaged++
		}
	}
}

// take opens a value and keeps the memory if it is wanted. It returns the buffer of the plain text for reuse.
func (sc *scanner) take(buf, diskKey, value []byte, at storage.Time) ([]byte, error) {
	plain, version, err := openVersioned(buf, sc.key, diskKey, value)
	if err != nil {
		return buf, err
	}
	m, err := storage.DecodeMemory(plain)
	if err != nil {
		return plain, err
	}
	if expired(m.ExpiresAt, sc.now) {
		if !sc.counted(at) {
			sc.expired.Add(&m)
		}
		return plain, nil
	}
	if !matches(&m, sc.query) {
		return plain, nil
	}
	if sc.after != nil && at == sc.after.at && m.ID <= sc.after.id {
		return plain, nil
	}
	m.Scope, m.Version = sc.key.scope, version
	sc.tie = append(sc.tie, sized{m, len(value)})
	sc.tieBytes += len(value)
	// Memories beyond the page need not be kept: bounds a tie to twice a page.
	if len(sc.tie) > 2*(sc.want+1) || sc.tieBytes > 4*maxPageBytes {
		sc.trim()
	}
	return plain, nil
}

// trim keeps of the tie only what can still be on the page, and one more, which shows that there is more.
func (sc *scanner) trim() {
	slices.SortFunc(sc.tie, func(a, b sized) int { return cmp.Compare(a.ID, b.ID) })
	room, sum := sc.want-len(sc.page.Memories), sc.bytes
	for i := range sc.tie {
		full := i >= room || (i+len(sc.page.Memories) > 0 && sum > maxPageBytes)
		if full {
			sc.tie = sc.tie[:i+1]
			break
		}
		sum += sc.tie[i].bytes
	}
	sc.tieBytes = 0
	for _, m := range sc.tie {
		sc.tieBytes += m.bytes
	}
}

// fewOnPage is how many memories make it likely that the page will be full: from there on it has its space at once, as what a page
// holds takes hundreds of kilobytes, several times if it grew.
const fewOnPage = 64

// flush moves the tie to the page, as far as there is room.
func (sc *scanner) flush() {
	slices.SortFunc(sc.tie, func(a, b sized) int { return cmp.Compare(a.ID, b.ID) })
	for i := range sc.tie {
		m := &sc.tie[i]
		n := len(sc.page.Memories)
		if n >= sc.want || (n > 0 && sc.bytes > maxPageBytes) {
			sc.more = true
			break
		}
		if n == fewOnPage {
			sc.page.Memories = slices.Grow(sc.page.Memories, sc.want-n)
		}
		sc.countPassed()
		sc.page.Memories = append(sc.page.Memories, m.Memory)
		sc.bytes += m.bytes
	}
	clear(sc.tie)
	sc.tie, sc.tieBytes = sc.tie[:0], 0
}

// counted says that the page before has counted what was passed over at this time.
func (sc *scanner) counted(at storage.Time) bool { return sc.after != nil && sc.after.at == at }

func (sc *scanner) countPassed() {
	sc.page.Damaged += sc.damaged
	sc.page.Expired = sc.page.Expired.Plus(sc.expired)
	sc.damaged, sc.expired = 0, storage.Digest{}
}

func matches(m *storage.Memory, q storage.Query) bool {
	return (len(q.Kinds) == 0 || slices.Contains(q.Kinds, m.Kind)) &&
		(q.Conversation == "" || q.Conversation == m.Conversation)
}

// newIterator walks the live keys of a prefix. Values are in the tree, beside their keys: nothing to prefetch.
func newIterator(txn *badgerdb.Txn, prefix []byte) *badgerdb.Iterator {
	o := badgerdb.DefaultIteratorOptions
	o.Prefix = prefix
	o.PrefetchValues = false
	return txn.NewIterator(o)
}

var errCursor = fmt.Errorf("cursor: not one of this scan: %w", storage.ErrInvalid)
