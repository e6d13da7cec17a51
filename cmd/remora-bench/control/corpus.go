package control

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/load"
	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
	"github.com/remora-proxy/remora/storage"
)

// corpus is what is remembered: the same for the same numbers, except for its
// times. The memories of a user come in blocks of two turns, of a question and
// an answer each, and a fact.
type corpus struct{ users, memories int }

const (
	perBlock             = 5
	turnsPerConversation = 20
	corpusSeed           = 31
	corpusDays           = 300
)

func (c corpus) scope(user int) storage.Scope {
	return storage.Scope{Tenant: load.Tenant, App: "default", Project: "default", User: load.User(user)}
}

// id returns the id of a user's n-th memory.
func (c corpus) id(user, n int) string {
	block, in := n/perBlock, n%perBlock
	if in == perBlock-1 {
		return "f" + mark("fact", user, block)
	}
	return storage.TurnMemoryID(mark("turn", user, 2*block+in/2), in%2)
}

func mark(kind string, user, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", kind, user, n))
	return hex.EncodeToString(sum[:16])
}

// writes yields the writes of a user, and next to each what was stated in it.
func (c corpus) writes(user int, now time.Time) iter.Seq2[storage.Write, string] {
	return func(yield func(storage.Write, string) bool) {
		g := prose.New(corpusSeed + uint64(user))
		step := corpusDays * 24 * time.Hour / time.Duration(c.memories)
		var stated string
		for n := 0; n < c.memories; {
			w := storage.Write{Scope: c.scope(user)}
			at := now.Add(-time.Duration(c.memories-n) * step)
			if n%perBlock == perBlock-1 {
				w.Memories = []storage.Memory{c.memory(user, n, at, stated)}
			} else {
				stated = g.Statement()
				m := c.memory(user, n, at, stated)
				w.Turn = m.Provenance.Turn
				w.Memories = append(w.Memories, m)
				if n+1 < c.memories {
					w.Memories = append(w.Memories, c.memory(user, n+1, at.Add(step/2), g.Paragraph(100)))
				}
			}
			n += len(w.Memories)
			if !yield(w, stated) {
				return
			}
		}
	}
}

func (c corpus) memory(user, n int, at time.Time, text string) storage.Memory {
	turn := n / perBlock * 2
	if in := n % perBlock; in < perBlock-1 {
		turn += in / 2
	}
	m := storage.Memory{
		ID: c.id(user, n), Conversation: fmt.Sprintf("chat-%04d-%06d", user, turn/turnsPerConversation), Kind: storage.KindEpisode, Text: text,
		Trust: 1, Source: "proxy", EventTime: storage.TimeOf(at), ValidFrom: storage.TimeOf(at), ExpiresAt: storage.TimeOf(at.AddDate(2, 0, 0)),
		Provenance: storage.Provenance{
			Turn: mark("turn", user, turn), Chain: mark("chain", user, turn), Role: storage.RoleUser, Seq: n % perBlock % 2, Model: "mock-0-0-0",
		},
	}
	switch {
	case n%perBlock == perBlock-1:
		m.Kind, m.Text, m.Tags, m.Priority, m.Confidence = storage.KindFact, firstSentence(text), []string{"preference"}, .6, .7
		m.Provenance.Seq = 0
	case m.Provenance.Seq == 1:
		m.Provenance.Role, m.Trust = storage.RoleAssistant, .6
	}
	return m
}

func firstSentence(text string) string {
	first, _, _ := strings.Cut(strings.Trim(text, `"`), ".")
	return first + "."
}

// told is what a user has stated, of which questions are made.
func (c corpus) told(user, most int) (out []string) {
	for _, stated := range c.writes(user, time.Time{}.AddDate(2000, 0, 0)) {
		if len(out) == most {
			break
		}
		if len(out) == 0 || out[len(out)-1] != stated {
			out = append(out, stated)
		}
	}
	return out
}
