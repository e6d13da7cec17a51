package load

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// BenchmarkRecallLoad is recall alone on what the load benchmark fills in and
// asks.
func BenchmarkRecallLoad(b *testing.B) {
	const memories = 10_000
	cfg := recall.DefaultConfig() // with deadlines that a slow machine keeps, and enough memory
	cfg.Deadline, cfg.FirstDeadline, cfg.LoadTimeout = time.Minute, 10*time.Minute, 10*time.Minute
	cfg.MaxBytes, cfg.MaxScopeBytes = 8<<30, 8<<30
	src := loadMemories(memories)
	e := recall.New(cfg, src, nil, nil)
	defer e.Close()
	questions := benchQuestions(memories)
	now := time.UnixMilli(int64(loadStart)).Add(memories * time.Second)
	i := 0
	ask := func() {
		if _, err := e.Recall(b.Context(), recall.Request{Scope: benchScope, Newest: questions[i%len(questions)], Now: now}); err != nil {
			b.Fatal(err)
		}
		i++
	}
	ask()
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}

// benchScope and loadStart are whose the memories are and when the first one
// was said.
var benchScope = storage.Scope{Tenant: "bench", App: "load", Project: "load", User: "0"}

const loadStart storage.Time = 1_700_000_000_000

// loadMemories are what the load benchmark fills in: a statement and a reply in
// every turn.
func loadMemories(memories int) *fixed {
	src := &fixed{}
	t, replies := prose.New(fillSeed), newReplies(chatAPI())
	for i := range memories / memoriesPerTurn {
		at := loadStart + storage.Time(i)*1000
		turn, chain, conv := fmt.Sprintf("%032x", 3*i+1), fmt.Sprintf("%032x", 3*i+2), fmt.Sprintf("%032x", 3*i+3)
		for seq, role := range []storage.Role{storage.RoleUser, storage.RoleAssistant} {
			m := storage.Memory{
				ID: storage.TurnMemoryID(turn, seq), Scope: benchScope, Conversation: conv, Kind: storage.KindEpisode, Trust: 1, Confidence: 1,
				Priority: 0.5, Source: "proxy", Version: 1, CreatedAt: at, UpdatedAt: at, ValidFrom: at, EventTime: at,
				Provenance: storage.Provenance{Turn: turn, Chain: chain, Role: role, Seq: seq, Model: "mock"},
			}
			if m.Text = saidBy(role, t, replies, i); role == storage.RoleAssistant {
				m.Trust = 0.5
			}
			src.memories = append(src.memories, m)
		}
	}
	return src
}

func saidBy(role storage.Role, t *prose.Generator, r *replies, i int) string {
	if role == storage.RoleAssistant {
		return r.text[i%replyTexts]
	}
	return t.Statement()
}

// fixed is a source of one scope's memories.
type fixed struct{ memories []storage.Memory }

// Scan implements recall.Source.
func (f *fixed) Scan(_ context.Context, _ storage.Scope, q storage.Query) (storage.Page, error) {
	from, _ := strconv.Atoi(q.After)
	to := min(from+storage.MaxPage, len(f.memories))
	p := storage.Page{Memories: slices.Clone(f.memories[from:to])}
	if to < len(f.memories) {
		p.Next = strconv.Itoa(to)
	}
	return p, nil
}
