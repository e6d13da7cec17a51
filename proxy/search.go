package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// searches reports whether the newest turn is searched for: once per turn,
// never in a tool loop, and not in a full conversation. Observing searches each
// time, since it leaves nothing to replay.
func (x *exchange) searches() bool {
	return !x.read.req.Loop && !x.plan.walk.Full() && x.plan.walk.IsNew()
}

// search recalls for the newest turn, in which a person typed words. It returns
// the block and the number of memories found.
func (x *exchange) search(ctx context.Context, conversation, words string) (fence.Block, int, Status) {
	began := time.Now()
	res, err := x.h.deps.Recall.Recall(ctx, x.query(conversation, words))
	took := time.Since(began)
	defer x.room.keepFound(res.Memories)
	var block fence.Block
	defer func() { noteSearch(x.plan.receipt, x.rights.inject, words, &res, took, &block) }()
	outcome := searchFound
	defer func() { countSearch(x.ctx, x.h, outcome, len(res.Memories), took) }()
	switch {
	case errors.Is(err, recall.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		outcome = searchTimeout
		return fence.Block{}, 0, StatusTimeout
	case err != nil && x.ctx.Err() != nil: // the client has left, which says nothing of recall
		outcome = searchLeft
		return fence.Block{}, 0, StatusTimeout
	case err != nil:
		outcome = searchFailed
		return fence.Block{}, 0, StatusUnavailable
	case !x.rights.inject:
		return fence.Block{}, len(res.Memories), StatusObserved
	case len(res.Memories) == 0:
		return fence.Block{}, 0, StatusEmpty
	}
	block = x.render(res.Memories)
	if block.Text == "" {
		return block, 0, StatusEmpty
	}
	return block, len(block.Spans), StatusInjected
}

// query returns the request to recall, with what the request carries already
// and must not be given again.
func (x *exchange) query(conversation, words string) recall.Request {
	req, w := x.read.req, &x.plan.walk
	q := recall.Request{
		Scope: x.plan.target.scope, Project: x.plan.turn.Project, Conversation: conversation, Newest: words, HumanOnly: true,
		Now: x.start, Lines: !x.class.Limits(), Screen: x.h.deps.Redact, Into: x.room.found,
		NoPrivate: !x.class.Private(), Cuts: x.plan.receipt != nil, RolePlay: x.plan.turn.RolePlay,
	}
	if x.class.Limits() {
		project, class := q.Scope.Project, x.class // x serves others later
		q.Allow = func(kind storage.Kind, tags []string) bool { return class.Allows(project, kind, tags) }
	}
	continues := req.Turn > 0 || w.Named != ""
	if continues {
		q.VisibleChains = x.earlierTurns()
	}
	if len(w.HeldIDs)+len(w.Replays) > 0 {
		q.VisibleIDs = make(map[string]struct{}, len(w.HeldIDs))
		maps.Copy(q.VisibleIDs, w.HeldIDs)
	}
	for _, r := range w.Replays {
		for _, sp := range r.Block.Spans {
			q.VisibleIDs[sp.ID] = struct{}{}
		}
	}
	if i := req.Previous(req.Turn); i >= 0 {
		q.Previous = func() string { return req.Text(i) }
	} else if said := w.Said; said != "" {
		q.Previous = func() string { return said }
	}
	if w.Named != "" && w.Known == "" { // the client may send a window of its history, or a summary and the end of it
		q.VisibleTurns = len(q.VisibleChains)
	}
	if continues && (w.Named != "" || w.Known != "") { // sent before in this conversation: its answer may be stored already
		q.VisibleChains = append(q.VisibleChains, w.Chain[req.Turn].Bytes())
	}
	return q
}

// earlierTurns returns the chain hashes of the user messages before the newest
// and of those that the upstream holds. They are in x.room.turns.
func (x *exchange) earlierTurns() [][16]byte {
	req, w := x.read.req, &x.plan.walk
	turns := slices.Grow(x.room.turns[:0], req.Turn/2+len(w.HeldTurns)+2)
	for i := range req.Turn {
		if req.Messages[i].Role == dialect.RoleUser {
			turns = append(turns, w.Chain[i].Bytes())
		}
	}
	for h := range w.HeldTurns {
		turns = append(turns, h.Bytes())
	}
	x.room.turns = turns
	return turns
}

// render returns a block of as many memories as the conversation has room for,
// the best first.
func (x *exchange) render(found []recall.Scored) fence.Block {
	lines := slices.Grow(x.room.lines[:0], len(found))
	for i := range found {
		if m := &found[i].Memory; x.class.Allows(x.plan.target.scope.Project, m.Kind, m.Tags) { // recall has checked it: nothing forbidden leaves because of one mistake
			lines = append(lines, fence.LineOf(m, x.h.deps.Redact))
			x.plan.private = x.plan.private || hasPrivate(m.Tags)
		}
	}
	options := fence.Options{NoRule: x.h.cfg.Injection.RuleInSystem, Placeholder: x.h.deps.Placeholder}
	name, fits := randomName(), len(lines)
	block := fence.Render(name, lines, options)
	for !x.plan.walk.Fits(block) && block.Text != "" {
		fits--
		block = fence.Render(name, lines[:fits], options)
	}
	if clear(lines); len(lines) <= maxKeptMemories {
		x.room.lines = lines[:0]
	}
	return block
}

// nameBytes is the number of random bytes in the name of a conversation or a
// block, which no text can guess.
const nameBytes = 8

// randoms keeps random bytes for the names to come: the system is asked for 32
// names at a time. A byte is used once.
var randoms = sync.Pool{New: func() any { return new(random) }}

type random struct {
	bytes [32 * nameBytes]byte
	left  int
}

// randomName returns a unique name that can't be guessed, in hexadecimal.
func randomName() string {
	r := randoms.Get().(*random)
	if r.left == 0 {
		_, _ = rand.Read(r.bytes[:]) // never fails
		r.left = len(r.bytes)
	}
	last := r.bytes[r.left-nameBytes : r.left]
	var name [2 * nameBytes]byte
	hex.Encode(name[:], last)
	clear(last)
	r.left -= nameBytes
	randoms.Put(r)
	return string(name[:])
}
