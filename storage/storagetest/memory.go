package storagetest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Mem is a store in memory for the tests of other packages, which can be made
// slow or unavailable. Make one with [Memory].
type Mem struct {
	mu       sync.Mutex
	failing  bool
	delay    time.Duration
	memories map[storage.Scope]map[string]storage.Memory
	turns    map[storage.Scope]map[string]int // passages of the turn
	records  map[storage.RecordRef]storage.Record
	secret   []byte
}

var (
	_ storage.Store = (*Mem)(nil)
	_ storage.Local = (*Mem)(nil)

	_ storage.Digester    = (*Mem)(nil)
	_ storage.ScopeLister = (*Mem)(nil)
	_ storage.Reaper      = (*Mem)(nil)
	_ storage.BulkEraser  = (*Mem)(nil)

	_ storage.Prober       = (*Mem)(nil)
	_ storage.RecordReader = (*Mem)(nil)
	_ storage.PrefixReader = (*Mem)(nil)
)

// Memory returns an empty store, available and fast.
func Memory() *Mem {
	m := &Mem{
		memories: make(map[storage.Scope]map[string]storage.Memory),
		turns:    make(map[storage.Scope]map[string]int),
		records:  make(map[storage.RecordRef]storage.Record),
		secret:   make([]byte, 32),
	}
	rand.Read(m.secret)
	return m
}

// Fail makes every later call return an error that wraps
// storage.ErrUnavailable, or stops that. The content is kept.
func (m *Mem) Fail(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = on
}

// Delay makes every later call wait for d, or until its context ends, before it
// does anything.
func (m *Mem) Delay(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay = d
}

// lock waits for the delay and returns with mu held, or with an error.
func (m *Mem) lock(ctx context.Context) error {
	m.mu.Lock()
	delay := m.delay
	m.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	err := ctx.Err()
	if m.failing {
		err = fmt.Errorf("%w: set to fail", storage.ErrUnavailable)
	}
	if err != nil {
		m.mu.Unlock()
	}
	return err
}

// Put implements [storage.Store].
func (m *Mem) Put(ctx context.Context, writes []storage.Write) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, w := range writes {
		if err := w.Validate(); err != nil {
			return err
		}
	}
	for _, w := range writes {
		m.apply(w, storage.TimeOf(time.Now()))
	}
	return nil
}

func (m *Mem) apply(w storage.Write, now storage.Time) {
	if m.memories[w.Scope] == nil {
		m.memories[w.Scope] = make(map[string]storage.Memory)
		m.turns[w.Scope] = make(map[string]int)
	}
	in := m.memories[w.Scope]
	for _, n := range w.Memories {
		n = clone(n)
		n.Scope, n.Version = w.Scope, 1
		n.CreatedAt, n.UpdatedAt = cmp.Or(n.CreatedAt, now), cmp.Or(n.UpdatedAt, now)
		if old, ok := in[n.ID]; ok && !expired(old.ExpiresAt, now) {
			n.CreatedAt = old.CreatedAt
			same := n
			same.UpdatedAt, same.Version = old.UpdatedAt, old.Version
			if reflect.DeepEqual(same, old) {
				continue
			}
			n.Version = old.Version + 1
		}
		in[n.ID] = n
	}
	if w.Turn != "" {
		for seq := len(w.Memories); seq < m.turns[w.Scope][w.Turn]; seq++ {
			delete(in, storage.TurnMemoryID(w.Turn, seq))
		}
		m.turns[w.Scope][w.Turn] = len(w.Memories)
	}
}

// Memory implements [storage.Store].
func (m *Mem) Memory(ctx context.Context, scope storage.Scope, id string) (storage.Memory, error) {
	if err := m.lock(ctx); err != nil {
		return storage.Memory{}, err
	}
	defer m.mu.Unlock()
	if err := scope.Validate(); err != nil {
		return storage.Memory{}, err
	}
	got, ok := m.memories[scope][id]
	if !ok || expired(got.ExpiresAt, storage.TimeOf(time.Now())) {
		return storage.Memory{}, storage.ErrNotFound
	}
	return clone(got), nil
}

// Scan implements [storage.Store].
func (m *Mem) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	if err := m.lock(ctx); err != nil {
		return storage.Page{}, err
	}
	defer m.mu.Unlock()
	if err := scope.Validate(); err != nil {
		return storage.Page{}, err
	}
	tag := fmt.Sprintf("%q %q %q %v", scope, q.Kinds, q.Conversation, q.Newest)
	order := strings.Compare
	if q.Newest {
		order = func(a, b string) int { return strings.Compare(b, a) }
	}
	after, err := parseCursor(q.After, tag)
	if err != nil {
		return storage.Page{}, err
	}
	var found, gone []storage.Memory
	for _, n := range m.memories[scope] {
		switch {
		case q.After != "" && order(position(n), after) <= 0:
		case expired(n.ExpiresAt, storage.TimeOf(time.Now())):
			gone = append(gone, n)
		case (len(q.Kinds) == 0 || slices.Contains(q.Kinds, n.Kind)) && (q.Conversation == "" || q.Conversation == n.Conversation):
			found = append(found, clone(n))
		}
	}
	slices.SortFunc(found, func(a, b storage.Memory) int { return order(position(a), position(b)) })
	page := storage.Page{Memories: found}
	last := ""
	if limit := storage.PageLimit(q.Limit); len(found) > limit {
		page.Memories = found[:limit:limit]
		last = position(found[limit-1])
		page.Next = makeCursor(last, tag)
	}
	for i := range gone {
		if last == "" || order(position(gone[i]), last) <= 0 {
			page.Expired.Add(&gone[i])
		}
	}
	return page, nil
}

// Digest implements [storage.Digester].
func (m *Mem) Digest(ctx context.Context, scope storage.Scope) (storage.Digest, error) {
	var d storage.Digest
	if err := m.lock(ctx); err != nil {
		return d, err
	}
	defer m.mu.Unlock()
	if err := scope.Validate(); err != nil {
		return d, err
	}
	for _, n := range m.memories[scope] {
		d.Add(&n)
	}
	return d, nil
}

// Reap implements [storage.Reaper].
func (m *Mem) Reap(ctx context.Context, now storage.Time) (removed int, err error) {
	if err := m.lock(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	for scope, in := range m.memories {
		for id, n := range in {
			if expired(n.ExpiresAt, now) {
				delete(in, id)
				removed++
			}
		}
		for turn, passages := range m.turns[scope] { // a turn is forgotten with its last passage
			left := false
			for seq := range passages {
				_, there := in[storage.TurnMemoryID(turn, seq)]
				left = left || there
			}
			if !left {
				delete(m.turns[scope], turn)
			}
		}
	}
	for ref, r := range m.records {
		if expired(r.ExpiresAt, now) {
			delete(m.records, ref)
			removed++
		}
	}
	return removed, nil
}

// Newest implements [storage.Reaper].
func (m *Mem) Newest(ctx context.Context) (newest storage.Time, err error) {
	if err := m.lock(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	for _, in := range m.memories {
		for _, n := range in {
			newest = max(newest, n.EventTime)
		}
	}
	return newest, nil
}

// Scopes implements [storage.ScopeLister].
func (m *Mem) Scopes(ctx context.Context, after string, limit int) (storage.ScopePage, error) {
	var page storage.ScopePage
	if err := m.lock(ctx); err != nil {
		return page, err
	}
	defer m.mu.Unlock()
	from, err := parseCursor(after, "scopes")
	if err != nil {
		return page, err
	}
	all := make(map[string]storage.Scope)
	for s := range m.memories {
		all[fmt.Sprintf("%q", s)] = s
	}
	for ref := range m.records {
		all[fmt.Sprintf("%q", ref.Scope)] = ref.Scope
	}
	last := ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name <= from {
			continue
		}
		if len(page.Scopes) == storage.PageLimit(limit) {
			page.Next = makeCursor(last, "scopes")
			break
		}
		last = name
		page.Scopes = append(page.Scopes, all[name])
	}
	return page, nil
}

// position sorts by event time, then id.
func position(m storage.Memory) string {
	return fmt.Sprintf("%016x%s", uint64(m.EventTime)^1<<63, m.ID)
}

// Delete implements [storage.Store].
func (m *Mem) Delete(ctx context.Context, scope storage.Scope, ids ...string) (int, error) {
	if err := m.lock(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	if err := scope.Validate(); err != nil {
		return 0, err
	}
	n := 0
	for _, id := range ids {
		if got, ok := m.memories[scope][id]; ok {
			if !expired(got.ExpiresAt, storage.TimeOf(time.Now())) {
				n++
			}
			delete(m.memories[scope], id)
		}
	}
	return n, nil
}

// Erase implements [storage.Store].
func (m *Mem) Erase(ctx context.Context, scope storage.Scope) (storage.Receipt, error) {
	if err := m.lock(ctx); err != nil {
		return storage.Receipt{}, err
	}
	defer m.mu.Unlock()
	if err := scope.Validate(); err != nil {
		return storage.Receipt{}, err
	}
	return m.erase(func(s storage.Scope) bool { return s == scope }), nil
}

// EraseTenant implements [storage.BulkEraser].
func (m *Mem) EraseTenant(ctx context.Context, tenant string) (storage.Receipt, error) {
	if err := m.lock(ctx); err != nil {
		return storage.Receipt{}, err
	}
	defer m.mu.Unlock()
	if tenant == "" {
		return storage.Receipt{}, storage.ErrInvalid
	}
	return m.erase(func(s storage.Scope) bool { return s.Tenant == tenant }), nil
}

// EraseAll implements [storage.BulkEraser].
func (m *Mem) EraseAll(ctx context.Context) (storage.Receipt, error) {
	if err := m.lock(ctx); err != nil {
		return storage.Receipt{}, err
	}
	defer m.mu.Unlock()
	return m.erase(func(storage.Scope) bool { return true }), nil
}

func (m *Mem) erase(in func(storage.Scope) bool) storage.Receipt {
	receipt := storage.Receipt{Records: make(map[storage.Bucket]int), At: storage.TimeOf(time.Now())}
	scopes := make(map[storage.Scope]bool)
	for scope, memories := range m.memories {
		if in(scope) {
			scopes[scope] = true
			receipt.Memories += len(memories)
			delete(m.memories, scope)
			delete(m.turns, scope)
		}
	}
	for ref := range m.records {
		if in(ref.Scope) {
			scopes[ref.Scope] = true
			receipt.Records[ref.Bucket]++
			delete(m.records, ref)
		}
	}
	receipt.Scopes = len(scopes)
	return receipt
}

// PutRecords implements [storage.Local].
func (m *Mem) PutRecords(ctx context.Context, records []storage.Record) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if len(records) > storage.MaxRecords {
		return storage.ErrInvalid
	}
	for _, r := range records {
		if err := r.Validate(); err != nil {
			return err
		}
	}
	for _, r := range records {
		r.Value = bytes.Clone(r.Value)
		m.records[r.Ref()] = r
	}
	return nil
}

// Records implements [storage.Local].
func (m *Mem) Records(ctx context.Context, bucket storage.Bucket, scope storage.Scope, after string, limit int) (storage.RecordPage, error) {
	return m.RecordsWithPrefix(ctx, bucket, scope, "", after, limit)
}

// RecordsWithPrefix implements [storage.PrefixReader].
func (m *Mem) RecordsWithPrefix(ctx context.Context, bucket storage.Bucket, scope storage.Scope, prefix, after string, limit int) (storage.RecordPage, error) {
	if err := (storage.RecordRef{Bucket: bucket, Scope: scope, Key: "any"}).Validate(); err != nil {
		return storage.RecordPage{}, err
	}
	return m.page(ctx, fmt.Sprintf("%q %q", bucket, scope), after, limit, func(ref storage.RecordRef) bool {
		return ref.Bucket == bucket && ref.Scope == scope && strings.HasPrefix(ref.Key, prefix)
	}, func(ref storage.RecordRef) string { return ref.Key })
}

// RecordKeys implements [storage.PrefixReader].
func (m *Mem) RecordKeys(ctx context.Context, bucket storage.Bucket, scope storage.Scope, limit int) (keys []string, err error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for ref, r := range m.records {
		if ref.Bucket == bucket && ref.Scope == scope && !expired(r.ExpiresAt, storage.TimeOf(time.Now())) {
			keys = append(keys, ref.Key)
		}
	}
	slices.Sort(keys)
	return keys[:min(len(keys), storage.KeyLimit(limit))], nil
}

// AllRecords implements [storage.Local].
func (m *Mem) AllRecords(ctx context.Context, bucket storage.Bucket, after string, limit int) (storage.RecordPage, error) {
	if !slices.Contains(storage.Buckets(), bucket) {
		return storage.RecordPage{}, storage.ErrInvalid
	}
	return m.page(ctx, fmt.Sprintf("%q", bucket), after, limit, func(ref storage.RecordRef) bool {
		return ref.Bucket == bucket
	}, func(ref storage.RecordRef) string { return fmt.Sprintf("%q", ref) })
}

func (m *Mem) page(ctx context.Context, tag, after string, limit int, in func(storage.RecordRef) bool, order func(storage.RecordRef) string) (storage.RecordPage, error) {
	if err := m.lock(ctx); err != nil {
		return storage.RecordPage{}, err
	}
	defer m.mu.Unlock()
	from, err := parseCursor(after, tag)
	if err != nil {
		return storage.RecordPage{}, err
	}
	now := storage.TimeOf(time.Now())
	refs := slices.DeleteFunc(slices.Collect(maps.Keys(m.records)), func(ref storage.RecordRef) bool {
		return !in(ref) || expired(m.records[ref].ExpiresAt, now) || (after != "" && order(ref) <= from)
	})
	slices.SortFunc(refs, func(a, b storage.RecordRef) int { return cmp.Compare(order(a), order(b)) })
	var page storage.RecordPage
	limit = storage.PageLimit(limit)
	for i, ref := range refs {
		if i == limit {
			page.Next = makeCursor(order(refs[i-1]), tag)
			break
		}
		r := m.records[ref]
		r.Value = bytes.Clone(r.Value)
		page.Records = append(page.Records, r)
	}
	return page, nil
}

// DeleteRecords implements [storage.Local].
func (m *Mem) DeleteRecords(ctx context.Context, refs []storage.RecordRef) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if len(refs) > storage.MaxRecords {
		return storage.ErrInvalid
	}
	for _, ref := range refs {
		if err := ref.Validate(); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		delete(m.records, ref)
	}
	return nil
}

// InstallSecret implements [storage.Local].
func (m *Mem) InstallSecret(ctx context.Context) ([]byte, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return bytes.Clone(m.secret), nil
}

func expired(at, now storage.Time) bool { return at != 0 && at <= now }

// clone returns a deep copy, in which empty lists and maps are nil.
func clone(m storage.Memory) storage.Memory {
	m.Entities = append([]string(nil), m.Entities...)
	m.Tags = append([]string(nil), m.Tags...)
	if len(m.Redactions) == 0 {
		m.Redactions = nil
	}
	m.Redactions = maps.Clone(m.Redactions)
	return m
}

func makeCursor(position, tag string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(tag + "\n" + position))
}

func parseCursor(text, tag string) (position string, err error) {
	if text == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	position, ok := strings.CutPrefix(string(b), tag+"\n")
	if err != nil || !ok {
		return "", fmt.Errorf("cursor: not from this scan: %w", storage.ErrInvalid)
	}
	return position, nil
}
