package receipt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// The uses of a user are in some records, by a hash of the memory's id, each of
// which is read and written whole. The more there are, the more seldom they are
// written.
const (
	usesPrefix  = "uses"
	usesRecords = 32
	maxUses     = 20_000 // memories of one user whose uses are counted; beyond, those used longest ago are forgotten
	// usesPause is the time between two writes for a user, for each memory in
	// the records that were written: for a hundred of them half a second.
	usesPause    = 5 * time.Millisecond
	maxUsesPause = 30 * time.Second
	// maxUncounted bounds the memories whose newest uses wait; beyond, all are
	// written.
	maxUncounted = 20_000
)

// usesKey returns the key of the record with the uses of a memory.
func usesKey(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return fmt.Sprintf("%s%02x", usesPrefix, h.Sum32()%usesRecords)
}

// ofUses reports whether a record of the bucket has uses.
func ofUses(key string) bool { return strings.HasPrefix(key, usesPrefix) }

// Use is how often, and when last, a memory was inserted.
type Use struct {
	Count int          `json:"n"`
	Last  storage.Time `json:"t"`
}

func (u Use) plus(o Use) Use { return Use{u.Count + o.Count, max(u.Last, o.Last)} }

// Uses returns how often each of a user's memories was inserted. The newest
// uses may be missing, for half a minute at most.
func Uses(ctx context.Context, local storage.Local, scope storage.Scope) (map[string]Use, error) {
	uses := map[string]Use{}
	reader, ok := local.(storage.PrefixReader)
	if !ok {
		return uses, nil
	}
	for page, err := range storage.Pages(func(after string) (storage.RecordPage, string, error) {
		page, err := reader.RecordsWithPrefix(ctx, storage.BucketExchange, scope, usesPrefix, after, usesRecords)
		return page, page.Next, err
	}) {
		if errors.Is(err, errors.ErrUnsupported) {
			return uses, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Records {
			maps.Copy(uses, decodeUses(page.Records[i].Value))
		}
	}
	return uses, nil
}

func decodeUses(value []byte) (uses map[string]Use) {
	if json.Unmarshal(value, &uses) != nil {
		return nil
	}
	return uses
}

// UseOf returns how often one of a user's memories was inserted, like Uses.
func UseOf(ctx context.Context, local storage.Local, scope storage.Scope, id string) (Use, error) {
	value, err := readUses(ctx, local, scope, usesKey(id))
	return decodeUses(value)[id], err
}

// readUses returns an encoded record, nil if there is none.
func readUses(ctx context.Context, local storage.Local, scope storage.Scope, key string) ([]byte, error) {
	reader, ok := local.(storage.RecordReader)
	if !ok {
		return nil, nil
	}
	rec, err := reader.Record(ctx, storage.RecordRef{Bucket: storage.BucketExchange, Scope: scope, Key: key})
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged), errors.Is(err, errors.ErrUnsupported):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return rec.Value, nil
}

// useCounter holds the uses that are not in their users' records yet. It is
// safe for concurrent use.
type useCounter struct {
	mu    sync.Mutex
	users map[storage.Scope]*newUses
	added int // in all users
}

type newUses struct {
	added map[string]Use
	due   time.Time // before it the record is not written
}

// add counts the memories of receipts.
func (c *useCounter) add(scope storage.Scope, own []*Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, receipt := range own {
		for _, id := range receipt.Memories() {
			if c.users == nil {
				c.users = map[storage.Scope]*newUses{}
			}
			u := c.users[scope]
			if u == nil {
				u = &newUses{added: map[string]Use{}}
				c.users[scope] = u
			}
			before := len(u.added)
			u.added[id] = u.added[id].plus(Use{1, receipt.At})
			c.added += len(u.added) - before
		}
	}
}

// waits reports whether there are uses to be written.
func (c *useCounter) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.added > 0
}

// due returns the users whose records are to be written now.
func (c *useCounter) due(now time.Time, all bool) (scopes []storage.Scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all = all || c.added > maxUncounted
	for scope, u := range c.users {
		switch over := !now.Before(u.due); {
		case len(u.added) > 0 && (all || over):
			scopes = append(scopes, scope)
		case len(u.added) == 0 && over:
			delete(c.users, scope)
		}
	}
	return scopes
}

// take hands over what waits for a user.
func (c *useCounter) take(scope storage.Scope) map[string]Use {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.users[scope]
	if u == nil {
		return nil
	}
	added := u.added
	c.added -= len(added)
	u.added = map[string]Use{}
	return added
}

// rest has a user's record stay as it is for a time that fits its size.
func (c *useCounter) rest(scope storage.Scope, size int, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.users[scope]; u != nil {
		u.due = now.Add(min(time.Duration(size)*usesPause, maxUsesPause))
	}
}

// forget drops what waits for memories that were erased.
func (c *useCounter) forget(scope storage.Scope, ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.users[scope]; u != nil {
		before := len(u.added)
		for _, id := range ids {
			delete(u.added, id)
		}
		c.added += len(u.added) - before
	}
}

// drop drops all that waits for a user.
func (c *useCounter) drop(scope storage.Scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.users[scope]; u != nil {
		c.added -= len(u.added)
		delete(c.users, scope)
	}
}

// writeUses writes the records that are due, or all. What the store does not
// take is not counted.
func (r *Recorder) writeUses(ctx context.Context, all bool) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	r.writing <- struct{}{}
	defer func() { <-r.writing }()
	for {
		records := r.newUses(ctx, all)
		if len(records) == 0 {
			return
		}
		if err := r.local.PutRecords(ctx, records); err != nil && !errors.Is(err, storage.ErrUnavailable) {
			r.log.Warn("uses not counted", "error", err)
		}
	}
}

// Bounds of what newUses returns, besides what one user has more.
const (
	usesPerWrite      = storage.MaxRecords / 4
	usesBytesPerWrite = 4 << 20
)

// newUses returns the records of users whose uses are due, or of all, with
// these added. Without any it is empty; there may be more.
func (r *Recorder) newUses(ctx context.Context, all bool) (records []storage.Record) {
	size := 0
	for _, scope := range r.uses.due(time.Now(), all) {
		if len(records) >= usesPerWrite || size > usesBytesPerWrite {
			break
		}
		byKey := map[string]map[string]Use{}
		for id, u := range r.uses.take(scope) {
			key := usesKey(id)
			if byKey[key] == nil {
				byKey[key] = map[string]Use{}
			}
			byKey[key][id] = u
		}
		memories := 0
		for key, added := range byKey {
			rec, n, err := r.addUses(ctx, scope, key, added)
			if err == nil {
				records = append(records, rec)
			}
			size, memories = size+len(rec.Value), memories+n
		}
		r.uses.rest(scope, memories, time.Now())
	}
	return records
}

// addUses returns a record with uses added, and how many memories are in it.
func (r *Recorder) addUses(ctx context.Context, scope storage.Scope, key string, added map[string]Use) (rec storage.Record, memories int, err error) {
	value, err := readUses(ctx, r.local, scope, key)
	if err != nil {
		return rec, 0, err
	}
	uses := decodeUses(value)
	if uses == nil {
		uses = map[string]Use{}
	}
	for id, u := range added {
		uses[id] = uses[id].plus(u)
	}
	if surplus := len(uses) - maxUses/usesRecords; surplus > 0 {
		oldest := slices.SortedFunc(maps.Keys(uses), func(a, b string) int { return int(uses[a].Last - uses[b].Last) })
		for _, id := range oldest[:surplus] {
			delete(uses, id)
		}
	}
	value, err = json.Marshal(uses)
	return storage.Record{Bucket: storage.BucketExchange, Scope: scope, Key: key, Value: value}, len(uses), err
}
