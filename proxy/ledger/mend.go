package ledger

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/storage"
)

// Mend is what a conversation needs since an upstream refused parts that were
// bound to another prefix; see [dialect.Binder]. It holds for every later
// request of the conversation.
type Mend struct {
	First, Last int  // the messages whose bound parts are left out
	Stop        bool // the model does not think until the turn has ended
	Drop        bool // the server is asked to leave out what it does not accept
	Replay      bool // what earlier turns inserted is inserted even where the request wants no memory
}

// mend is a Mend in the ledger: at its last message, or at a turn for Stop.
type mend struct {
	first int
	flags byte
	used  time.Time
}

const (
	mendStop   = 1 << iota
	mendDrop   // see Mend
	mendReplay // see Mend
	mendCuts   // the mend leaves parts out
)

const mendSize = 96

// mends are the newest mends of all conversations, so that they are found where
// the entries of a scope can't be read, or a request has none. At maxMends any
// one is dropped; the upstream's refusal then makes another.
type mends struct {
	mu    sync.Mutex
	byKey map[Hash]mend
	count atomic.Int64
}

const maxMends = 4096

func (m *mends) put(key Hash, v mend) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil {
		m.byKey = map[Hash]mend{}
	}
	if _, ok := m.byKey[key]; !ok && len(m.byKey) >= maxMends {
		for k := range m.byKey {
			delete(m.byKey, k)
			break
		}
	}
	m.byKey[key] = v
	m.count.Store(int64(len(m.byKey)))
}

func (m *mends) get(key Hash) (mend, bool) {
	if m.count.Load() == 0 {
		return mend{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.byKey[key]
	return v, ok
}

// mendKey is where the mends of a conversation up to a message are kept.
func mendKey(at Hash) Hash {
	return xxh3.Hash128(append(appendHash(make([]byte, 0, 17), at), 'm'))
}

// Mends returns what the request needs, in the order of its messages. It may be
// called on a Walk that knows nothing else.
func (w *Walk) Mends(req *dialect.Request) (all []Mend) {
	if w.ledger == nil || len(w.Chain) == 0 || w.ledger.mends.count.Load() == 0 && (w.entries == nil || w.entries.mended.Load() == 0) {
		return nil // the usual case
	}
	for i := range req.Messages {
		if !req.Messages[i].Thinking && i != req.Turn {
			continue
		}
		if m, ok := w.mendAt(mendKey(w.Chain[i])); ok {
			out := Mend{First: m.first, Last: i, Drop: m.flags&mendDrop != 0, Replay: m.flags&mendReplay != 0, Stop: m.flags&mendStop != 0}
			if m.flags&mendCuts == 0 {
				out.First = i + 1
			}
			all = append(all, out)
		}
	}
	return all
}

// mendAt returns the mend at key, from the entries or from memory.
func (w *Walk) mendAt(key Hash) (mend, bool) {
	if m, ok := w.ledger.mends.get(key); ok {
		return m, true
	}
	s := w.entries
	if s == nil || w.blind || s.mended.Load() == 0 {
		return mend{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.at(key)
	if e == nil || e.mend == nil {
		return mend{}, false
	}
	if now := s.ledger.now(); now.Sub(e.mend.used) > s.ledger.cfg.TTL/8 {
		e.mend.used = now
		s.save(key)
	}
	return *e.mend, true
}

// Mend records that the upstream has accepted the request with m, for later
// requests of the conversation. With bare, it was sent without any block, so
// that is what they must repeat.
func (w *Walk) Mend(req *dialect.Request, m Mend, bare bool) {
	if w.ledger == nil || len(w.Chain) == 0 {
		return
	}
	v := mend{first: m.First, used: w.ledger.now()}
	if m.First <= m.Last {
		v.flags |= mendCuts
	}
	for flag, set := range map[byte]bool{mendDrop: m.Drop, mendReplay: m.Replay} {
		if set {
			v.flags |= flag
		}
	}
	if m.Last >= 0 && m.Last < len(w.Chain) {
		w.putMend(mendKey(w.Chain[m.Last]), v)
	}
	if m.Stop && req.Turn >= 0 {
		w.putMend(mendKey(w.Chain[req.Turn]), mend{flags: mendStop, used: v.used})
	}
	if bare && w.entries != nil && !w.blind {
		for _, r := range w.Replays {
			w.entries.clear(r.at, r.variant)
		}
		if w.written != nil {
			w.entries.clear(w.newestHash(), w.written)
		}
	}
}

func (w *Walk) putMend(key Hash, v mend) {
	w.ledger.mends.put(key, v)
	s := w.entries
	if s == nil || w.blind {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = true // the upstream has accepted the request
	grown := int64(mendSize)
	if e := s.entries[key]; e != nil {
		grown -= e.size()
	}
	s.set(key, &entry{mend: &v})
	s.charge(grown)
	s.save(key)
}

// A mend on disk is a version byte, the first message, the flags, and the last
// use (ms).
const mendVersion = 3

func appendMend(b []byte, m *mend) []byte {
	b = append(b, mendVersion)
	b = binary.AppendUvarint(b, uint64(m.first))
	b = append(b, m.flags)
	return binary.AppendUvarint(b, uint64(storage.TimeOf(m.used)))
}

// decodeMend reads what follows the version byte.
func decodeMend(d decoder) (*mend, error) {
	m := &mend{first: int(d.uint(dialect.MaxMessages)), flags: d.byte()}
	m.used = storage.Time(d.uint(1 << 62)).Std()
	if d.broken() || len(d.rest) > 0 {
		return nil, errEntry
	}
	return m, nil
}
