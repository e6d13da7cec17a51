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

// Repair is what a conversation needs since an upstream refused parts that were
// bound to another prefix; see [dialect.Binder]. It holds for every later
// request of the conversation.
type Repair struct {
	First, Last int  // the messages whose bound parts are left out
	Stop        bool // the model does not think until the turn has ended
	Drop        bool // the server is asked to leave out what it does not accept
	Replay      bool // what earlier turns inserted is inserted even where the request wants no memory
}

// repair is a Repair in the ledger: at its last message, or at a turn for Stop.
type repair struct {
	first int
	flags byte
	used  time.Time
}

const (
	repairsStop   = 1 << iota
	repairsDrop   // see Repair
	repairsReplay // see Repair
	repairsCuts   // the repair leaves parts out
)

const repairSize = 96

// repairs are the newest repairs of all conversations, so that they are found
// where the entries of a scope can't be read, or a request has none. At
// maxRepairs any one is dropped; the upstream's refusal then makes another.
type repairs struct {
	mu    sync.Mutex
	byKey map[Hash]repair
	count atomic.Int64
}

const maxRepairs = 4096

func (m *repairs) put(key Hash, v repair) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil {
		m.byKey = map[Hash]repair{}
	}
	if _, ok := m.byKey[key]; !ok && len(m.byKey) >= maxRepairs {
		for k := range m.byKey {
			delete(m.byKey, k)
			break
		}
	}
	m.byKey[key] = v
	m.count.Store(int64(len(m.byKey)))
}

func (m *repairs) get(key Hash) (repair, bool) {
	if m.count.Load() == 0 {
		return repair{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.byKey[key]
	return v, ok
}

// repairKey is where the repairs of a conversation up to a message are kept.
func repairKey(at Hash) Hash {
	return xxh3.Hash128(append(appendHash(make([]byte, 0, 17), at), 'm'))
}

// Repairs returns what the request needs, in the order of its messages. It may
// be called on a Walk that knows nothing else.
func (w *Walk) Repairs(req *dialect.Request) (all []Repair) {
	if w.ledger == nil || len(w.Chain) == 0 || w.ledger.repairs.count.Load() == 0 && (w.entries == nil || w.entries.repaired.Load() == 0) {
		return nil // the usual case
	}
	for i := range req.Messages {
		if !req.Messages[i].Thinking && i != req.Turn {
			continue
		}
		if m, ok := w.repairAt(repairKey(w.Chain[i])); ok {
			out := Repair{First: m.first, Last: i, Drop: m.flags&repairsDrop != 0, Replay: m.flags&repairsReplay != 0, Stop: m.flags&repairsStop != 0}
			if m.flags&repairsCuts == 0 {
				out.First = i + 1
			}
			all = append(all, out)
		}
	}
	return all
}

// repairAt returns the repair at key, from the entries or from memory.
func (w *Walk) repairAt(key Hash) (repair, bool) {
	if m, ok := w.ledger.repairs.get(key); ok {
		return m, true
	}
	s := w.entries
	if s == nil || w.blind || s.repaired.Load() == 0 {
		return repair{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil || e.repair == nil {
		return repair{}, false
	}
	if now := s.ledger.now(); now.Sub(e.repair.used) > s.ledger.cfg.TTL/8 {
		e.repair.used = now
		s.save(key)
	}
	return *e.repair, true
}

// Repair records that the upstream has accepted the request with m, for later
// requests of the conversation. With bare, it was sent without any block, so
// that is what they must repeat.
func (w *Walk) Repair(req *dialect.Request, m Repair, bare bool) {
	if w.ledger == nil || len(w.Chain) == 0 {
		return
	}
	v := repair{first: m.First, used: w.ledger.now()}
	if m.First <= m.Last {
		v.flags |= repairsCuts
	}
	for flag, set := range map[byte]bool{repairsDrop: m.Drop, repairsReplay: m.Replay} {
		if set {
			v.flags |= flag
		}
	}
	if m.Last >= 0 && m.Last < len(w.Chain) {
		w.putRepair(repairKey(w.Chain[m.Last]), v)
	}
	if m.Stop && req.Turn >= 0 {
		w.putRepair(repairKey(w.Chain[req.Turn]), repair{flags: repairsStop, used: v.used})
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

// putRepair adds v to what is known at key.
func (w *Walk) putRepair(key Hash, v repair) {
	if known, ok := w.repairAt(key); ok {
		if known.flags&repairsCuts != 0 && (v.flags&repairsCuts == 0 || known.first < v.first) {
			v.first = known.first
		}
		v.flags |= known.flags
	}
	w.ledger.repairs.put(key, v)
	s := w.entries
	if s == nil || w.blind {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = true // the upstream has accepted the request
	grown := int64(repairSize)
	if e := s.entries[key]; e != nil {
		grown -= e.size()
	}
	s.set(key, &entry{repair: &v})
	s.charge(grown)
	s.save(key)
}

// A repair on disk is a version byte, the first message, the flags, and the
// last use (ms).
const repairVersion = 3

func appendRepair(b []byte, m *repair) []byte {
	b = append(b, repairVersion)
	b = binary.AppendUvarint(b, uint64(m.first))
	b = append(b, m.flags)
	return binary.AppendUvarint(b, uint64(storage.TimeOf(m.used)))
}

// decodeRepair reads what follows the version byte.
func decodeRepair(d decoder) (*repair, error) {
	m := &repair{first: int(d.uint(dialect.MaxMessages)), flags: d.byte()}
	m.used = storage.Time(d.uint(1 << 62)).Std()
	if d.broken() || len(d.rest) > 0 {
		return nil, errEntry
	}
	return m, nil
}
