package proxy

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/ledger"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// splice is what compose put into a request, for when the upstream refuses it.
type splice struct {
	walk      ledger.Walk
	scope     storage.Scope
	model     modelKey
	system    ledger.Hash // of the system messages before all others
	placement dialect.Placement
}

// whose resolves whose memory the request is about, from its head and ids alone: no text is read for who has no memory.
// Where ok is false the status says why.
func (x *exchange) whose() (secret []byte, scope storage.Scope, ok bool) {
	if secret = x.h.installSecret(x.ctx); secret == nil {
		x.status = StatusUnavailable
		if x.rights.persist {
			x.h.stats.TooEarly.Add(1)
		}
		return nil, scope, false
	}
	if scope, ok = x.h.identity.Scope(secret, x.r.Header, x.req, x.client); !ok {
		x.status = StatusNoUser
	}
	return secret, scope, ok
}

// compose replays, recalls and returns the insertions. It sets status, memories, persist and turn.
func (x *exchange) compose(secret []byte, scope storage.Scope) []dialect.Insertion {
	h := x.h
	entries := h.ledger.Scope(scope)
	began := time.Now()
	ctx, cancel := x.deadline(entries, scope, began)
	defer cancel()
	ready := awaitLedger(ctx, entries)
	x.splice = splice{scope: scope, model: x.model()}
	w := &x.splice.walk
	*w = entries.Walk(secret, x.req, ledger.WalkOptions{
		Named:    h.identity.Conversation(x.r.Header, x.req),
		Fallback: func() string { return x.client.Conversation(x.r.Header, x.req) },
		Peek:     x.counts, Blind: ready != "", Room: x.chain,
	})
	x.chain = w.Chain
	if ready != "" {
		x.status = ready
	}
	placement, accepts := h.learned.placement(x.splice.model, scope, h.placement(x.d))
	if placement == dialect.BeforeUser && slices.ContainsFunc(w.Replays, func(r ledger.Replay) bool { return r.Placement == dialect.InUser }) {
		placement = dialect.InUser // learned before a restart
	}
	x.splice.placement = placement
	if x.req.Held && placement != dialect.System {
		// Whatever is inserted stays in the upstream's conversation for good.
		x.rights = rights{persist: x.rights.persist}
		ready = StatusUnsupported
		x.status = ready
	}
	if ready == "" {
		x.status = StatusEmpty
	}
	if x.counts {
		return x.insert(placement, fence.Block{})
	}
	conv := w.Conversation(x.began, randomName)
	x.persist = x.rights.persist && h.deps.Persist != nil && !x.req.Background
	if x.req.Turn < 0 {
		x.place(conv, w.Said, w.Before)
		return x.goOn(scope, conv)
	}
	human, at := x.words()
	x.persist = x.persist && human != ""
	before := x.unanswered(at)
	x.turn = x.newTurn(scope, conv, w.TurnKey(conv), inOrder(before, human))
	x.splice.system = ledger.SystemHash(x.req)
	x.turn.Project = x.client.Project(secret, x.req)

	if x.side && ready == "" {
		x.status = StatusOff
	}
	var fresh fence.Block
	found := 0
	if ready == "" && x.rights.recall && accepts && x.searches() {
		fresh, found, x.status = x.search(ctx, scope, conv, human)
	}
	x.recallUS = time.Since(began).Microseconds()
	duplicate, stale := w.Enter(ledger.Injection{Conversation: conv, Placement: placement, Block: fresh}, !x.rights.ledger)
	if stale && fresh.Text != "" {
		fresh, found, x.status = fence.Block{}, 0, StatusEmpty
	}
	if duplicate != nil {
		// The same request was entered while this one searched: both are one turn.
		x.turn.Conversation = duplicate.Conversation
		if x.rights.inject {
			fresh, placement = duplicate.Block, duplicate.Placement
			if x.status = StatusEmpty; fresh.Text != "" {
				x.status = StatusInjected
			}
		}
	}
	x.place(x.turn.Conversation, human, before)
	if !accepts {
		w.ClearReplays() // the upstream goes on without them, for good
		x.status = StatusUnsupported
		return nil
	}
	if !x.rights.inject && !x.rights.replay {
		x.memories = found
		return nil
	}
	return x.insert(placement, fresh)
}

// searches says whether the newest turn is to be searched for: once per turn, never in a tool loop, and not where the
// conversation is full. Observing searches each time, since it leaves nothing to replay.
func (x *exchange) searches() bool {
	return !x.req.Loop && !x.splice.walk.Full() && x.splice.walk.IsNew()
}

// recognise takes back what a request of its client's may not have of memory: one that is no turn is given nothing new and leaves nothing (what earlier turns were given stays, or their cached prefix would be
// lost), and a sub-agent's chatter is not the user's.
func (x *exchange) recognise() {
	if x.req.Turn >= 0 {
		x.said = x.client.Human(x.req.Texts(x.req.Turn))
	}
	if x.side = x.req.Warmup || x.client.IsSide(x.r.Header, x.req, x.said); x.side {
		x.rights = rights{replay: x.rights.replay}
		return
	}
	if !x.client.IsSubAgent(x.r.Header, x.req) || len(x.r.Header[headerMemory]) > 0 {
		return
	}
	switch x.h.cfg.Identity.SubAgents {
	case identity.SubAgentsOff:
		x.rights = rights{replay: x.rights.replay}
	case identity.SubAgentsRead:
		x.rights.persist = false
	}
}

// insert turns replayed blocks and the fresh one into insertions. A block that this body has no place for is left out.
func (x *exchange) insert(p dialect.Placement, fresh fence.Block) []dialect.Insertion {
	var out []dialect.Insertion
	var system []string // one insertion for all of them: a body without a system prompt gets one, not several
	put := func(turn int, p dialect.Placement, b fence.Block, gained Status) {
		if p == dialect.System {
			system = append(system, strings.TrimSuffix(b.Text, "\n"))
		} else {
			ins, err := x.d.Insert(x.req, turn, p, b.Text)
			if err != nil {
				x.status = StatusUnsupported
				return
			}
			if out == nil {
				out = ins
			} else {
				out = append(out, ins...)
			}
		}
		x.memories += len(b.Spans)
		if x.status == StatusEmpty || x.side {
			x.status = gained
		}
	}
	if x.h.cfg.Injection.RuleInSystem {
		system = append(system, fence.Rule)
	}
	if x.rights.replay {
		for i, b := range x.splice.walk.Replays {
			// The model may have been found to be strict since.
			if b.Placement == dialect.BeforeUser && p == dialect.InUser {
				b.Placement = p
				x.splice.walk.Moved(i, p)
			}
			put(b.Turn, b.Placement, b.Block, StatusReplayed)
		}
	}
	if fresh.Text != "" && x.rights.inject {
		x.req.Buffer = x.plain.spare(len(fresh.Text) + len(fresh.Text)/8 + blockFrame)
		put(x.req.Turn, p, fresh, StatusInjected)
	}
	if len(system) > 0 {
		ins, err := x.d.Insert(x.req, x.req.Turn, dialect.System, strings.Join(system, "\n\n"))
		if err != nil {
			x.status, x.memories = StatusUnsupported, 0
			return nil
		}
		out = append(ins, out...) // before what goes to the same offset
	}
	return out
}

// blockFrame is what a block gets around it, in bytes, and no more than an estimate.
const blockFrame = 192

// search recalls for the newest turn, in which a human says text.
func (x *exchange) search(ctx context.Context, scope storage.Scope, conv, text string) (fence.Block, int, Status) {
	w := &x.splice.walk
	q := recall.Request{Scope: scope, Project: x.turn.Project, Conversation: conv, Newest: text, HumanOnly: true, Now: x.start, Lines: true, Screen: x.h.deps.Redact, Into: x.found}
	carries := x.req.Turn > 0 || w.Named != ""
	if carries {
		q.VisibleChains = x.earlierTurns()
	}
	if len(w.HeldIDs)+len(w.Replays) > 0 {
		q.VisibleIDs = make(map[string]struct{}, len(w.HeldIDs))
		maps.Copy(q.VisibleIDs, w.HeldIDs)
	}
	if i := x.req.Previous(x.req.Turn); i >= 0 {
		q.Previous = func() string { return x.req.Text(i) }
	} else if said := w.Said; said != "" {
		q.Previous = func() string { return said }
	}
	if w.Named != "" && w.Known == "" { // the client may send a window of its history, or a summary and the end of it
		q.VisibleTurns = len(q.VisibleChains)
	}
	if carries && (w.Named != "" || w.Known != "") { // sent before in this conversation: its answer may be stored already
		q.VisibleChains = append(q.VisibleChains, w.Chain[x.req.Turn].Bytes())
	}
	for _, b := range w.Replays {
		for _, sp := range b.Block.Spans {
			q.VisibleIDs[sp.ID] = struct{}{}
		}
	}
	res, err := x.h.deps.Recall.Recall(ctx, q)
	defer x.keep(res.Memories)
	switch {
	case errors.Is(err, recall.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return fence.Block{}, 0, StatusTimeout
	case err != nil:
		return fence.Block{}, 0, StatusUnavailable
	case !x.rights.inject:
		return fence.Block{}, len(res.Memories), StatusObserved
	case len(res.Memories) == 0:
		return fence.Block{}, 0, StatusEmpty
	}
	lines := slices.Grow(x.lines[:0], len(res.Memories))
	for i := range res.Memories {
		m := &res.Memories[i].Memory
		text, who := m.Text, m.Provenance.Speaker
		if redact := x.h.deps.Redact; redact != nil {
			if text = redact(text); who != "" {
				who = redact(who)
			}
		}
		if who == "" {
			who = string(m.Provenance.Role)
		}
		if who == "" {
			who = string(m.Kind)
		}
		if slices.Contains(m.Tags, storage.OutdatedTag) {
			text = outdatedMark + text
		}
		lines = append(lines, fence.Line{ID: m.ID, Time: m.EventTime, Who: who, Text: text}) // the id is kept with the block
	}
	name, fits := randomName(), len(lines)
	block := fence.Render(name, lines, fence.Options{NoRule: x.h.cfg.Injection.RuleInSystem})
	for !w.Fits(block) && block.Text != "" { // as many as the conversation has room for
		fits--
		block = fence.Render(name, lines[:fits], fence.Options{NoRule: x.h.cfg.Injection.RuleInSystem})
	}
	if clear(lines); len(lines) <= mostKept {
		x.lines = lines[:0]
	}
	if block.Text == "" {
		return block, 0, StatusEmpty
	}
	return block, len(block.Spans), StatusInjected
}

// outdatedMark is before the text of a memory in which something was said that a later statement supersedes.
const outdatedMark = "(in part outdated) "

// mostKept is of how many memories an exchange keeps the room for the next request; more are rare, and would hold 16 KiB.
const mostKept = 32

// mostChain is the same for the hashes of a chain, of 16 bytes each.
const mostChain = 256

// keep lets the next request use the room of memories, which must not be read any more.
func (x *exchange) keep(found []recall.Scored) {
	found = found[:cap(found)] // a memory that was refused stands behind the end
	room := x.found[:cap(x.found)]
	if len(found) == 0 || len(room) > 0 && &found[0] == &room[0] {
		clear(room) // a search that was cut short has left what it had
		return
	}
	clear(room)
	if clear(found); len(found) <= mostKept {
		x.found = found[:0]
	}
}

// earlierTurns are the chain hashes of the user messages before the newest, with those that the upstream holds. They stand in x.turns.
func (x *exchange) earlierTurns() [][16]byte {
	w := &x.splice.walk
	turns := slices.Grow(x.turns[:0], x.req.Turn/2+len(w.HeldTurns)+2)
	for i := range x.req.Turn {
		if x.req.Messages[i].Role == dialect.RoleUser {
			turns = append(turns, w.Chain[i].Bytes())
		}
	}
	for h := range w.HeldTurns {
		turns = append(turns, h.Bytes())
	}
	x.turns = turns
	return turns
}

// accepted is told that the upstream has taken the request. From here on the ledger may be stored: a credential that no
// upstream has accepted leaves nothing on the disk.
func (x *exchange) accepted() {
	if !x.taken {
		x.taken = true
		x.splice.walk.Confirm()
	}
}

// begunStream says whether the first of a stream is here, so that accepted may follow it: nothing is waited for before the client
// has it, and its end the client gets when relay has returned. Of another answer the client may have all by then.
func begunStream(resp *http.Response) bool {
	b, own := resp.Body.(waitingBody)
	return own && resp.ContentLength < 0 && b.Ready()
}

// accepting calls accepted once the client has the first of the answer, which does not wait for it, and before sink.
func (x *exchange) accepting(sink func([]byte)) func([]byte) {
	if !x.splice.walk.Recording() {
		return sink
	}
	return func(p []byte) {
		x.accepted()
		if x.opening.asks != asksNothing {
			x.opened(p)
		}
		if sink != nil {
			sink(p)
		}
	}
}

// rejected is told that the upstream went on without the blocks. What it has seen now is the bare conversation, so that
// is what later requests must repeat. certain: the blocks' place was at fault; perhaps: nobody knows what was.
func (x *exchange) rejected(certain, perhaps bool) {
	if x.counts {
		return
	}
	sp := &x.splice
	sp.walk.Reject()
	if certain || perhaps {
		x.h.learned.refused(sp.model, sp.scope, sp.placement, x.turn.Conversation, certain)
	}
}

func (h *Handler) placement(d dialect.Dialect) dialect.Placement {
	if h.cfg.Injection.Placement == PlacementSystem {
		return dialect.System
	}
	if d.Name() == (dialect.Responses{}).Name() && h.cfg.Injection.Responses == PlacementInstructions {
		return dialect.System
	}
	return dialect.BeforeUser
}

// model is what lessons about placements hold for: templates differ by model, and what is made of a request by dialect.
func (x *exchange) model() modelKey {
	return modelKey{upstream: x.up.Name, dialect: x.d.Name(), model: x.req.Model}
}

// deadline returns a context that ends when memory has had its time for this request.
func (x *exchange) deadline(entries *ledger.Entries, scope storage.Scope, now time.Time) (context.Context, context.CancelFunc) {
	end := now.Add(x.h.cfg.FirstDeadline)
	if since, loading := entries.Loading(); loading { // a store that hangs costs a user the first deadline once
		if end = since.Add(x.h.cfg.FirstDeadline); end.Sub(now) < x.h.cfg.RecallDeadline {
			end = now.Add(x.h.cfg.RecallDeadline)
		}
	} else if x.h.deps.Recall.Loaded(scope) {
		end = now.Add(x.h.cfg.RecallDeadline)
	}
	return context.WithDeadline(x.ctx, end)
}

// awaitLedger returns "" once the scope's entries are in memory, else why they are not.
func awaitLedger(ctx context.Context, entries *ledger.Entries) Status {
	switch err := entries.Await(ctx); {
	case err == nil:
		return ""
	case errors.Is(err, ctx.Err()):
		return StatusTimeout
	}
	return StatusUnavailable
}

// installSecret returns the secret that tenants and turn ids derive from, nil while the store can't give it.
func (h *Handler) installSecret(ctx context.Context) []byte {
	if p := h.secret.Load(); p != nil {
		return *p
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.FirstDeadline)
	defer cancel()
	s, err := h.deps.Local.InstallSecret(ctx)
	if err != nil || len(s) == 0 {
		return nil
	}
	h.turns.Store(ledger.NewTurnIDs(s))
	h.secret.Store(&s)
	return s
}
