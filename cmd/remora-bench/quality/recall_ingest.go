package quality

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
)

// What is ranked.
const (
	unitTurn    = "turn"    // one message
	unitRound   = "round"   // a user message with the replies to it
	unitSession = "session" // all of a session
)

// undated is when a message was said that bears no date; the next ones follow
// second by second.
var undated = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// retention keeps what was said years ago from expiring.
const retention = 100 * 365 * 24 * time.Hour

func scopeOf(d dataset, c conversation) storage.Scope {
	return storage.Scope{Tenant: "bench", App: "recall", Project: d.Name, User: c.ID}
}

// turnID names the turn that begins with message i.
func turnID(i int) string { return fmt.Sprintf("%032x", i+1) }

// turnsOf maps a conversation to the turns that a live proxy would hand in, and
// each message to the unit that it belongs to: for turns and rounds the first
// message of the turn, for sessions that of the session.
func turnsOf(d dataset, c conversation, unit string) (turns []persist.Turn, units []int) {
	units = make([]int, len(c.Messages))
	last := map[string]time.Time{}
	session := map[string]int{}
	for i, m := range c.Messages {
		at := parseDate(m.Date)
		if at.IsZero() {
			at = undated
		}
		if before, ok := last[m.Session]; ok && !at.After(before) {
			at = before.Add(time.Second)
		}
		last[m.Session] = at
		if _, ok := session[m.Session]; !ok {
			session[m.Session] = i
		}
		text, role, speaker := m.Text, storage.RoleUser, m.Speaker
		if m.Caption != "" {
			text += " [" + m.Caption + "]"
		}
		if m.Role == string(storage.RoleAssistant) {
			role = storage.RoleAssistant
		}
		if speaker == m.Role {
			speaker = ""
		}
		said := persist.Message{Role: role, Speaker: speaker, Text: text, Time: storage.TimeOf(at)}
		begins := unit == unitTurn || role == storage.RoleUser || i == 0 || c.Messages[i-1].Session != m.Session
		if begins {
			turns = append(turns, persist.Turn{ID: turnID(i), Chain: turnID(i), Scope: scopeOf(d, c), Conversation: m.Session, Source: "import"})
			units[i] = i
		} else {
			units[i] = units[i-1]
		}
		t := &turns[len(turns)-1]
		t.Messages = append(t.Messages, said)
	}
	if unit == unitSession {
		for i, m := range c.Messages {
			units[i] = session[m.Session]
		}
	}
	return turns, units
}

// memory is an engine over a store of its own, filled as live traffic fills it.
type memory struct {
	engine *recall.Engine
	dir    string
	store  *badger.Store
	stop   context.CancelFunc
	done   chan error
	pipe   *persist.Pipeline
	embeds bool
}

// openMemory makes an empty memory in a temporary directory.
func openMemory(ctx context.Context, cfg recall.Config) (*memory, error) {
	dir, err := os.MkdirTemp("", "remora-bench-")
	if err != nil {
		return nil, fmt.Errorf("open memory: %w", err)
	}
	sc := badger.DefaultConfig()
	sc.Dir, sc.KeyFile = filepath.Join(dir, "data"), filepath.Join(dir, "key")
	m := &memory{dir: dir, store: badger.New(sc, nil), embeds: cfg.Vectors.Embedder != nil}
	if err := m.store.Open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open memory: %w", err), os.RemoveAll(dir))
	}
	red, err := redact.New(redact.DefaultConfig())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open memory: %w", err), m.store.Close(), os.RemoveAll(dir))
	}
	m.engine = recall.New(cfg, m.store, nil, nil)
	pc := persist.DefaultConfig()
	pc.TurnsPerSecond, pc.Retention, pc.Facts.Retention, pc.Facts.LongRetention = 0, retention, retention, retention
	m.pipe = persist.New(pc, m.store, m.store, m.engine, red, nil, nil)
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop, m.done = stop, make(chan error, 1)
	go func() { m.done <- m.pipe.Run(run) }() // close waits for it
	return m, nil
}

// add hands in turns and waits until they are searchable.
func (m *memory) add(ctx context.Context, turns []persist.Turn) error {
	for _, t := range turns {
		err := m.pipe.Enqueue(t)
		if errors.Is(err, persist.ErrFull) {
			if err = m.pipe.Flush(ctx); err == nil {
				err = m.pipe.Enqueue(t)
			}
		}
		if err != nil && !errors.Is(err, storage.ErrInvalid) { // an empty message is no turn
			return fmt.Errorf("ingest: %w", err)
		}
	}
	return m.pipe.Settle(ctx)
}

func (m *memory) close() error {
	m.stop()
	err := <-m.done
	m.engine.Close()
	return errors.Join(err, m.store.Close(), os.RemoveAll(m.dir))
}
