package proxy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/ledger"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// plan is what memory does with a request: what is inserted, and what is
// recorded and stored once the upstream has answered. The zero plan does
// nothing.
type plan struct {
	inserts  []dialect.Insertion // none = the body gets no memory
	repairs  []ledger.Repair     // what the conversation needs since it was repaired
	repair   string              // how this request was repaired, "" = it was not
	status   Status
	memories int
	recallUS int64 // duration of recall, in microseconds
	side     bool  // the request is not a turn, see requestRights
	persist  bool  // turn is stored if the answer is final
	turn     persist.Turn
	walk     ledger.Walk
	target   target
	system   ledger.Hash          // see ledger.SystemHash
	next     *ledger.Continuation // position of the answer where the upstream keeps the conversation; nil = none, or recorded
	accepted bool                 // the upstream has accepted the request, and the ledger knows it
	receipt  *receipt.Receipt     // what the user may see of it; nil = nothing
	private  bool                 // a private memory is inserted
	late     bool                 // the answer ended before what was inserted was stored: a kill may cost the conversation a repair
}

// target is where the blocks of a request go.
type target struct {
	model     modelKey
	scope     storage.Scope
	placement dialect.Placement
}

// compose is the fourth stage: it replays, recalls and fills x.plan.
func (x *exchange) compose(who caller, p *payload) {
	h, req, plan := x.h, x.read.req, &x.plan
	began := time.Now()
	plan.receipt = newReceipt(x, who.scope)
	known := h.ledger.Find(ledger.Seed{Scope: who.scope, Secret: who.secret, Class: x.class.Name()}, req, x.room.chain)
	ctx, cancel := x.deadline(known, who.scope, began)
	defer cancel()
	failed := awaitLedger(ctx, known)
	plan.walk = known.Walk(ledger.WalkOptions{
		Named:    h.identity.Conversation(x.r.Header, req),
		Fallback: func() string { return x.read.client.Conversation(x.r.Header, req) },
		Peek:     x.api.counts, Blind: failed != "",
	})
	x.room.chain = plan.walk.Chain
	takes := x.choosePlacement(who.scope)
	if req.Held && plan.target.placement != dialect.System {
		x.rights, failed = x.rights.heldRights(), StatusUnsupported
	}
	if plan.status = failed; failed == "" {
		plan.status = StatusEmpty
	}
	if x.api.counts {
		x.insert(p, plan.target.placement, fence.Block{})
		return
	}
	conversation := plan.walk.Conversation(x.read.began, randomName)
	plan.persist = x.rights.persist && h.deps.Persist != nil && !req.Background
	if req.Turn < 0 {
		x.continueHeldTurn(who.scope, conversation, p)
		return
	}
	words, at := x.read.words()
	before := x.read.unanswered(at, &plan.walk)
	plan.persist = plan.persist && words != ""
	plan.turn = x.newTurn(who.scope, conversation, joinWords(before, words))
	plan.turn.Project = x.read.client.Project(who.secret, req)
	if req.Loop && x.rights.persist && !plan.side {
		x.saveNotes(who.scope, conversation)
	}
	plan.system = ledger.SystemHash(req)
	if plan.side && failed == "" {
		plan.status = StatusOff
	}
	var block fence.Block
	found := 0
	if failed == "" && x.rights.recall && takes && !x.frozen() && x.searches() {
		block, found, plan.status = x.search(ctx, conversation, words)
	}
	plan.recallUS = time.Since(began).Microseconds()
	block, placement, found := x.enter(block, found)
	plan.next = x.continuation(plan.turn.Conversation, words, before)
	plan.turn.Private = isPrivate(x)
	switch {
	case !takes: // the upstream continues without the blocks from now on
		plan.walk.ClearReplays()
		plan.status = StatusUnsupported
	case x.rights.inject || x.rights.replay:
		x.insert(p, placement, block)
	default:
		plan.memories = found
	}
}

// saveNotes takes in what the model has saved with a memory tool, if that is
// asked for.
func (x *exchange) saveNotes(scope storage.Scope, conversation string) {
	if save := x.h.deps.SaveNote; save != nil {
		for _, c := range dialect.MemoryCalls(x.api.d, x.read.req) {
			save(scope, conversation, c.ID, c.Text)
		}
	}
}

// frozen reports whether the conversation has got all the memory that it may
// have. What is in the system prompt stands before every message, so another
// block there would change what the upstream has cached, or bound an answer to:
// only the first turn decides on it.
func (x *exchange) frozen() bool {
	if x.plan.target.placement != dialect.System {
		return false
	}
	_, history := x.read.began()
	return history || x.read.req.PreviousID != ""
}

// continueHeldTurn plans a request that adds to a turn which the upstream
// holds, as a step of a tool loop does: nothing is recalled, and what the
// system prompt had is inserted again.
func (x *exchange) continueHeldTurn(scope storage.Scope, conversation string, p *payload) {
	plan := &x.plan
	said, before := plan.walk.Said, plan.walk.Before
	plan.persist = plan.persist && said != ""
	plan.turn = x.newTurn(scope, conversation, joinWords(before, said))
	plan.next = x.continuation(conversation, said, before)
	plan.turn.Private = isPrivate(x)
	if x.rights.replay {
		x.insert(p, plan.target.placement, fence.Block{})
	}
}

// newTurn returns the turn as far as the request tells it. Its id and its
// answer follow when the answer is read.
func (x *exchange) newTurn(scope storage.Scope, conversation, text string) persist.Turn {
	t := persist.Turn{
		Scope: scope, Conversation: conversation, Chain: x.plan.walk.TurnKey(conversation), Model: x.read.req.Model, Source: "proxy",
		RolePlay: x.read.playsRole(),
	}
	if x.plan.persist {
		t.Messages = append(make([]persist.Message, 0, 2), persist.Message{Role: storage.RoleUser, Text: text, Time: x.h.stamp(x.start)})
	}
	return t
}

// choosePlacement fills x.plan.target. It reports false if the model takes no
// blocks.
func (x *exchange) choosePlacement(scope storage.Scope) (takes bool) {
	plan := &x.plan
	model := modelKey{upstream: x.up.Name, dialect: x.api.d.Name(), model: x.read.req.Model}
	placement, takes := x.h.placements.choose(model, scope, x.h.placement(x.api.d))
	if placement == dialect.BeforeUser && slices.ContainsFunc(plan.walk.Replays, func(r ledger.Replay) bool { return r.Placement == dialect.InUser }) {
		placement = dialect.InUser // learned before a restart
	}
	plan.target = target{model, scope, placement}
	return takes
}

// placement returns the configured placement for a dialect.
func (h *Handler) placement(d dialect.Dialect) dialect.Placement {
	if h.cfg.Injection.Placement == PlacementSystem {
		return dialect.System
	}
	if d.Name() == (dialect.Responses{}).Name() && h.cfg.Injection.Responses == PlacementInstructions {
		return dialect.System
	}
	return dialect.BeforeUser
}

// enter enters the newest turn into the ledger with its block. It returns what
// to insert, which is another request's block if that has entered the same turn
// meanwhile, and nothing if a memory was forgotten meanwhile.
func (x *exchange) enter(block fence.Block, found int) (fence.Block, dialect.Placement, int) {
	plan := &x.plan
	placement := plan.target.placement
	in := ledger.Injection{Conversation: plan.turn.Conversation, Placement: placement, Block: block}
	duplicate, stale := plan.walk.Enter(in, !x.rights.ledger)
	if stale && block.Text != "" {
		block, found, plan.status = fence.Block{}, 0, StatusEmpty
	}
	if duplicate != nil { // both are one turn
		plan.turn.Conversation = duplicate.Conversation
		if x.rights.inject {
			block, placement = duplicate.Block, duplicate.Placement
			if plan.status = StatusEmpty; block.Text != "" {
				plan.status = StatusInjected
			}
		}
	}
	return block, placement, found
}

// identified is a dialect whose answers can be continued by their id.
type identified interface {
	ReplyID(head []byte) string
}

// continuation returns the position that the answer will have, nil if no later
// request can continue it. said is what a person said in the newest turn, and
// before what is unanswered before it.
func (x *exchange) continuation(conversation, said string, before []string) *ledger.Continuation {
	req := x.read.req
	if _, ok := x.api.d.(identified); !ok || req.Unstored && !req.Held && !x.frame {
		return nil
	}
	return x.plan.walk.Continue(req, conversation, said, before)
}

// insert plans the insertions: the replayed blocks, and block at placement p. A
// block that this body has no place for is left out.
func (x *exchange) insert(body *payload, p dialect.Placement, block fence.Block) {
	plan, req := &x.plan, x.read.req
	var out []dialect.Insertion
	var system []string          // one insertion for all: a body without a system prompt gets one, not several
	fixed := x.continuesThread() // no system prompt may come with it
	put := func(turn int, p dialect.Placement, b fence.Block, status Status) {
		at := -1
		if p == dialect.System && fixed {
			return
		} else if p == dialect.System {
			system = append(system, strings.TrimSuffix(b.Text, "\n"))
		} else {
			ins, err := x.api.d.Insert(req, turn, p, b.Text)
			if err != nil {
				plan.status = StatusUnsupported
				return
			}
			at = ins[0].At
			if out == nil {
				out = ins
			} else {
				out = append(out, ins...)
			}
		}
		noteInsertion(plan.receipt, turn, p, b, at, status == StatusReplayed)
		plan.memories += len(b.Spans)
		if plan.status == StatusEmpty || plan.side {
			plan.status = status
		}
	}
	if x.h.cfg.Injection.RuleInSystem && !fixed {
		system = append(system, fence.Rule)
	}
	if x.rights.replay {
		_, binds := x.api.d.(dialect.Binder) // what it has accepted must not move
		for i, r := range plan.walk.Replays {
			// The model may have turned out to be strict since.
			if !binds && r.Placement == dialect.BeforeUser && p == dialect.InUser {
				r.Placement = p
				plan.walk.Moved(i, p)
			}
			put(r.Turn, r.Placement, r.Block, StatusReplayed)
		}
	}
	if block.Text != "" && x.rights.inject {
		req.Buffer = body.plain.spare(len(block.Text) + len(block.Text)/8 + blockOverhead)
		put(req.Turn, p, block, StatusInjected)
		x.h.stats.Inserted.Add(int64(len(block.Text)))
	}
	if len(system) > 0 {
		ins, err := x.api.d.Insert(req, req.Turn, dialect.System, strings.Join(system, "\n\n"))
		if err != nil {
			plan.status, plan.memories = StatusUnsupported, 0
			return
		}
		out = append(ins, out...) // before what goes to the same offset
	}
	plan.inserts = out
}

// blockOverhead estimates what a dialect writes around a block, in bytes.
const blockOverhead = 192

// deadline returns a context that ends when memory has had its time for this
// request.
func (c *call) deadline(known *ledger.Search, scope storage.Scope, now time.Time) (context.Context, context.CancelFunc) {
	cfg := &c.h.cfg
	end := now.Add(cfg.RecallDeadline)
	since, loading := known.Loading()
	loaded, began := c.h.deps.Recall.Loaded(scope)
	if loading || !loaded {
		first := now
		for _, at := range [...]time.Time{since, began} { // a store that hangs costs a user the first deadline once
			if !at.IsZero() && at.Before(first) {
				first = at
			}
		}
		if first = first.Add(cfg.FirstDeadline); first.After(end) {
			end = first
		}
	}
	return context.WithDeadline(c.ctx, end)
}

// awaitLedger returns "" once the conversation's entries are in memory, or else
// the reason why they are not.
func awaitLedger(ctx context.Context, known *ledger.Search) Status {
	switch err := known.Await(ctx); {
	case err == nil:
		return ""
	case errors.Is(err, ctx.Err()):
		return StatusTimeout
	}
	return StatusUnavailable
}
