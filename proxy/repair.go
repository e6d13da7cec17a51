package proxy

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/ledger"
	"github.com/remora-proxy/remora/proxy/policy"
)

// Some servers bind parts of an answer to everything that stood before it, and
// refuse every later request in which that has changed (see dialect.Binder).
// The ledger repeats what was inserted, so nothing changes as a rule. Where it
// can't, because a memory was forgotten, the ledger was lost, or the request
// wants no memory, the refusal is repaired: the request is sent again without
// the parts that were refused, and so is every later one of the conversation.

// Values of InjectionConfig.Repair.
const (
	// RepairStrip leaves the refused parts out.
	RepairStrip = "strip"
	// RepairDropBlock asks the server to leave them out, if it still refuses
	// the request without them. That needs a beta header, which is the only
	// header that Remora ever adds.
	RepairDropBlock = "dropBlock"
	// RepairOff passes the refusal to the client.
	RepairOff = "off"
)

// Repairs are the ways to repair, as the log names them.
const (
	repairEnriched = "enriched" // the enriched request without the refused parts
	repairOriginal = "original" // the original request without them
	repairReplay   = "replay"   // with what earlier turns inserted, although the request wants no memory
	repairStop     = "stop"     // the request without thinking, until its turn has ended
	repairDrop     = "drop"     // the server leaves the parts out
)

// attempt is one way to send a request.
type attempt struct {
	repair  string
	inserts []dialect.Insertion
	repairs []ledger.Repair
	record  ledger.Repair // what later requests need if it succeeds
	bare    bool          // nothing is inserted
}

// repairer repairs the requests of one exchange.
type repairer struct {
	x      *httpExchange
	binder dialect.Binder // nil = the API binds nothing
}

// repairer returns the repairer of x.
func (x *httpExchange) repairer() repairer {
	binder, _ := x.api.d.(dialect.Binder)
	return repairer{x, binder}
}

// load finds the repairs of the conversation. Whatever fails in it, the request
// goes out as planned.
func (m repairer) load(p *payload) {
	defer m.x.h.guard("load repairs", func() { m.x.plan.repairs = nil })
	m.find(p)
}

// binds reports whether the request may hold bound parts that are repaired. Its
// body is then read into memory, even where it gets no memory.
func (c *call) binds() bool {
	_, ok := c.api.d.(dialect.Binder)
	return ok && c.h.cfg.Injection.Repair != RepairOff && !signed(c.r.Header) && !c.h.identity.FromPage(c.r, c.host)
}

// find finds the repairs of the conversation. Without them the request is sent
// as it is, and repaired if it is refused.
func (m repairer) find(p *payload) {
	x := m.x
	if x.read.req == nil {
		if x.plan.status != StatusOff || len(x.r.Header["Content-Encoding"]) == 0 && !m.binder.Binds(p.raw.bytes) {
			return
		}
		status := x.plan.status
		if x.parse(p) != "" || x.read.demoteResults() != nil {
			x.read.req.Release()
			x.read.req = nil
			return
		}
		x.plan.status = status
	}
	if len(x.plan.walk.Chain) > 0 { // compose has walked
		x.plan.repairs = x.plan.walk.Repairs(x.read.req)
		return
	}
	x.plan.walk = x.h.ledger.Unscoped(x.read.req, x.room.chain)
	x.policyRights() // may not have been asked for
	if x.plan.status == StatusOff && x.h.deps.Recall != nil && x.class.Memory != policy.MemoryOff {
		if who, status := x.resolve(); status == "" {
			known := x.h.ledger.Find(ledger.Seed{Scope: who.scope, Secret: who.secret, Class: x.class.Name()}, x.read.req, x.room.chain)
			ctx, cancel := x.deadline(known, who.scope, time.Now())
			defer cancel()
			failed := awaitLedger(ctx, known)
			x.plan.walk = known.Walk(ledger.WalkOptions{
				Named: x.h.identity.Conversation(x.r.Header, x.read.req), Peek: true, Blind: failed != "",
			})
		}
	}
	x.room.chain = x.plan.walk.Chain
	if x.plan.repairs = x.plan.walk.Repairs(x.read.req); slices.ContainsFunc(x.plan.repairs, func(l ledger.Repair) bool { return l.Replay }) {
		x.plan.inserts = m.replays()
	}
}

// replays returns what inserts the blocks of earlier turns.
func (m repairer) replays() (out []dialect.Insertion) {
	x := m.x
	for _, r := range x.plan.walk.Replays {
		text := r.Block.Text
		if r.Placement == dialect.System {
			text = strings.TrimSuffix(text, "\n")
		}
		if ins, err := x.api.d.Insert(x.read.req, r.Turn, r.Placement, text); err == nil {
			out = append(out, ins...)
		}
	}
	return out
}

// edits returns all changes to the body: the insertions, and the repairs of the
// conversation.
func (m repairer) edits(inserts []dialect.Insertion, repairs []ledger.Repair) []dialect.Insertion {
	if len(repairs) == 0 {
		return inserts
	}
	x := m.x
	req, out := x.read.req, slices.Clone(inserts)
	cut := make([]bool, len(req.Messages))
	stop, drop := false, false
	for _, l := range repairs {
		for i := max(l.First, 0); i <= l.Last && i < len(cut); i++ {
			cut[i] = true
		}
		stop = stop || l.Stop && req.Loop
		drop = drop || l.Drop
	}
	for i, c := range cut {
		if c {
			cuts, _ := m.binder.Unbind(req, i, i)
			out = append(out, cuts...)
		}
	}
	switch {
	case stop:
		out = append(out, m.binder.StopThinking(req)...)
	case drop:
		ask, header, value := m.binder.DropBound(req)
		out = append(out, ask...)
		if header != "" {
			x.addToken(header, value)
		}
	}
	return out
}

// addToken adds a token to a header that is a list.
func (c *call) addToken(name, token string) {
	list := strings.Join(c.r.Header[name], ",")
	if strings.Contains(list, token) {
		return
	}
	if list != "" {
		token = list + "," + token
	}
	c.r.Header[name] = []string{token}
}

// mayRepair reports whether a refusal of this request can be repaired: it can
// be sent again, and the server has kept nothing of it.
func (m repairer) mayRepair(resp *http.Response) bool {
	x := m.x
	return (resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnprocessableEntity) && x.body.plain != nil &&
		x.binds() && x.read.req != nil && x.read.req.PreviousID == "" && len(x.plan.walk.Chain) > 0
}

// repair examines the answer. If it refuses bound parts, over is true, and the
// answer is that to the first attempt to repair which is not refused, or the
// refusal.
func (m repairer) repair(resp *http.Response) (answer *http.Response, over bool) {
	if m.binder == nil || !m.mayRepair(resp) {
		return resp, false
	}
	resp, head, _ := peekResponse(m.x.h, resp, refusalTimeout, nil)
	why := m.readRefusal(resp, head)
	if !why.Changed && !why.Missing {
		return resp, false
	}
	return m.attempt(resp, why), true
}

// attempt tries the ways to repair one after the other.
func (m repairer) attempt(refused *http.Response, why dialect.BoundRefusal) *http.Response {
	stops := false // the server needs thinking in a tool loop: without it, it must not think
	for _, a := range m.attempts(why) {
		strips := a.repair == repairEnriched || a.repair == repairOriginal
		if stops = stops || why.Missing; stops && strips {
			a = a.withoutThinking()
		}
		resp, next := m.try(a)
		if resp == nil && next.Missing && !stops && strips {
			stops = true
			a = a.withoutThinking()
			resp, next = m.try(a)
		}
		if resp == nil {
			continue
		}
		_ = refused.Body.Close()
		if resp.StatusCode/100 == 2 {
			m.repaired(a)
		}
		return resp
	}
	m.x.h.stats.Unrepaired.Add(1)
	return refused
}

// withoutThinking returns a with thinking turned off.
func (a attempt) withoutThinking() attempt {
	stop := ledger.Repair{First: 0, Last: -1, Stop: true}
	a.repair, a.record.Stop = repairStop, true
	a.repairs = append(slices.Clone(a.repairs), stop)
	return a
}

// try sends an attempt. resp is nil if it is refused as well, and why says what
// that has to do with bound parts.
func (m repairer) try(a attempt) (resp *http.Response, why dialect.BoundRefusal) {
	x := m.x
	resp, err := x.roundTrip(m.edits(a.inserts, a.repairs))
	if err != nil {
		return nil, why
	}
	x.h.stats.Retries.Add(1)
	if resp.StatusCode/100 == 2 {
		return resp, why
	}
	if resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusUnprocessableEntity {
		return resp, why // nothing that another attempt would change
	}
	resp, head, _ := peekResponse(x.h, resp, refusalTimeout, nil)
	_ = resp.Body.Close()
	return nil, m.readRefusal(resp, head)
}

// attempts returns the ways to repair, the best first.
func (m repairer) attempts(why dialect.BoundRefusal) (all []attempt) {
	x, req, plan := m.x, m.x.read.req, &m.x.plan
	first := why.Message
	if first < 0 || first >= len(req.Messages) {
		first = 0
	}
	_, through := m.binder.Unbind(req, first, len(req.Messages)-1)
	if through < 0 { // nothing more to leave out
		first = 0
	}
	changes := through >= 0 || why.Missing // the same request once more would be refused once more
	cut := ledger.Repair{First: first, Last: through}
	repairs := append(slices.Clone(plan.repairs), cut)
	if len(plan.inserts) > 0 && changes {
		all = append(all, attempt{repair: repairEnriched, inserts: plan.inserts, repairs: repairs, record: cut})
	}
	if len(plan.inserts) > 0 || changes {
		all = append(all, attempt{repair: repairOriginal, repairs: repairs, record: cut, bare: true})
	}
	if !x.rights.replay && len(plan.walk.Replays) > 0 {
		all = append(all, attempt{repair: repairReplay, inserts: m.replays(), repairs: plan.repairs, record: ledger.Repair{First: through + 1, Last: through, Replay: true}})
	}
	if x.h.cfg.Injection.Repair == RepairDropBlock {
		drop := ledger.Repair{First: through + 1, Last: through, Drop: true}
		all = append(all, attempt{repair: repairDrop, inserts: plan.inserts, repairs: append(slices.Clone(plan.repairs), drop), record: drop, bare: len(plan.inserts) == 0})
	}
	return all
}

// repaired records what later requests of the conversation need.
func (m repairer) repaired(a attempt) {
	x := m.x
	x.h.stats.Repairs.Add(1)
	x.plan.repair, x.plan.status = a.repair, StatusRepaired
	if a.inserts == nil {
		x.plan.memories = 0
	}
	if !x.api.counts {
		x.plan.walk.Repair(x.read.req, a.record, a.bare)
	}
}

// readRefusal reads the beginning of a refusal. One that can't be read says
// nothing.
func (m repairer) readRefusal(resp *http.Response, head []byte) (why dialect.BoundRefusal) {
	defer m.x.h.guard("read refusal", nil)
	text, err := decodeAnswer(resp.Header, head, maxPeek)
	if err != nil {
		return why
	}
	return m.binder.BoundRefusal(resp.StatusCode, text)
}
