package badger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// maxPageBytes is about how much sealed data a page carries before it is cut
// short.
const maxPageBytes = 8 << 20

// scanner reads one page. Badger yields memories by event time and, within one,
// by hash; the contract wants the order of ids within one event time, so
// memories of the same time are collected and sorted before they are added to
// the page.
type scanner struct {
	key   *scopeKey
	query storage.Query
	after *cursor
	now   storage.Time
	limit int

	page  storage.Page
	bytes int
	more  bool // there is something after the page

	group      []sizedMemory // memories of one event time
	groupTime  storage.Time
	groupBytes int

	// What was skipped since the last memory on the page. It is counted with a
	// later memory, or at the end of the scan; otherwise the next page, which
	// begins after that memory, meets it again.
	damaged int
	expired storage.Digest
}

type sizedMemory struct {
	storage.Memory
	bytes int
}

func (sc *scanner) run(ctx context.Context, txn *badgerdb.Txn) error {
	prefix := scopePrefix(levelMemory, sc.key.hash)
	seek := prefix
	if sc.after != nil {
		seek = appendTime(slices.Clone(prefix), sc.after.at)
	}
	o := iteratorOptions(prefix)
	if sc.query.Newest {
		o.Reverse = true
		// Before every longer key that begins with it, in this order.
		seek = append(slices.Clone(seek), bytes.Repeat([]byte{0xff}, 8+hashSize+1)...)
	}
	it := txn.NewIterator(o)
	defer it.Close()
	var plain []byte
	n := 0
	for it.Seek(seek); it.Valid(); it.Next() {
		if n++; n%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		item := it.Item()
		diskKey := item.Key()
		if len(diskKey) != scopeEnd+8+hashSize {
			continue
		}
		at := parseTime(diskKey[scopeEnd:])
		if at != sc.groupTime {
			if sc.flush(); sc.more {
				return nil
			}
			sc.groupTime = at
		}
		err := item.Value(func(value []byte) error {
			var err error
			plain, err = sc.add(plain, diskKey, value, at)
			return err
		})
		if err != nil && !errors.Is(err, storage.ErrDamaged) {
			return err
		}
		if err != nil && !sc.countedBefore(at) {
			sc.damaged++
		}
	}
	if sc.flush(); !sc.more {
		sc.countSkipped()
	}
	return nil
}

// add opens a value and keeps the memory if it is selected. It returns the
// buffer of the plain text for reuse.
func (sc *scanner) add(buf, diskKey, value []byte, at storage.Time) ([]byte, error) {
	plain, version, err := openVersioned(buf, sc.key, diskKey, value)
	if err != nil {
		return buf, err
	}
	m, err := storage.DecodeMemory(plain)
	if err != nil {
		return plain, err
	}
	if expired(m.ExpiresAt, sc.now) {
		if !sc.countedBefore(at) {
			sc.expired.Add(&m)
		}
		return plain, nil
	}
	if !selects(sc.query, &m) || sc.after != nil && at == sc.after.at && sc.order(m.ID, sc.after.id) <= 0 {
		return plain, nil
	}
	m.Scope, m.Version = sc.key.scope, version
	sc.group = append(sc.group, sizedMemory{m, len(value)})
	sc.groupBytes += len(value)
	if len(sc.group) > 2*(sc.limit+1) || sc.groupBytes > 4*maxPageBytes {
		sc.trim()
	}
	return plain, nil
}

// trim drops memories of the group that cannot be on the page, except one,
// which shows that there is more. It bounds the group to twice a page.
func (sc *scanner) trim() {
	sc.sortGroup()
	room, sum := sc.limit-len(sc.page.Memories), sc.bytes
	for i := range sc.group {
		full := i >= room || (i+len(sc.page.Memories) > 0 && sum > maxPageBytes)
		if full {
			sc.group = sc.group[:i+1]
			break
		}
		sum += sc.group[i].bytes
	}
	sc.groupBytes = 0
	for _, m := range sc.group {
		sc.groupBytes += m.bytes
	}
}

func (sc *scanner) sortGroup() {
	slices.SortFunc(sc.group, func(a, b sizedMemory) int { return sc.order(a.ID, b.ID) })
}

// order compares two ids of one event time.
func (sc *scanner) order(a, b string) int {
	if sc.query.Newest {
		a, b = b, a
	}
	return cmp.Compare(a, b)
}

// likelyFull is the number of memories from which a page is likely to become
// full, and is allocated whole: growing it would copy hundreds of kilobytes
// several times.
const likelyFull = 64

// flush moves the group to the page, as far as there is room.
func (sc *scanner) flush() {
	sc.sortGroup()
	for i := range sc.group {
		m := &sc.group[i]
		n := len(sc.page.Memories)
		if n >= sc.limit || (n > 0 && sc.bytes > maxPageBytes) {
			sc.more = true
			break
		}
		if n == likelyFull {
			sc.page.Memories = slices.Grow(sc.page.Memories, sc.limit-n)
		}
		sc.countSkipped()
		sc.page.Memories = append(sc.page.Memories, m.Memory)
		sc.bytes += m.bytes
	}
	clear(sc.group)
	sc.group, sc.groupBytes = sc.group[:0], 0
}

// countedBefore reports whether the previous page has counted what was skipped
// at this time.
func (sc *scanner) countedBefore(at storage.Time) bool { return sc.after != nil && sc.after.at == at }

func (sc *scanner) countSkipped() {
	sc.page.Damaged += sc.damaged
	sc.page.Expired = sc.page.Expired.Plus(sc.expired)
	sc.damaged, sc.expired = 0, storage.Digest{}
}

func selects(q storage.Query, m *storage.Memory) bool {
	return (len(q.Kinds) == 0 || slices.Contains(q.Kinds, m.Kind)) &&
		(q.Conversation == "" || q.Conversation == m.Conversation)
}
