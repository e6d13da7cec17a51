package proxy

import (
	"net/http"
	"strings"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/policy"
)

// What a request may have of memory is decided here, in this order. Each step
// can only take rights away, and its Status says why nothing is left.
//
//	headRights      the path, a browser page, X-Remora-Memory, a signed body
//	streamedRights  a body over the limits
//	(parse)         a content encoding or a body that can't be read
//	(resolve)       no user, or a store that has not opened yet
//	policyRights    the policy for the upstream and the model
//	requestRights   requests of known clients that are not turns; sub-agents
//	heldRights      conversations that the upstream keeps permanently
//
// After that, a plan may still insert nothing: because nothing is found, the
// conversation is full, memory is late, or the model takes no block.

// Mode is what a request asks of memory, by X-Remora-Memory.
type Mode uint8

const (
	ModeOn Mode = iota
	ModeRead
	ModeWrite
	ModeObserve
	ModeOff
)

// rights is one row of the mode table.
type rights struct {
	replay  bool // insert what earlier turns were given
	recall  bool // search for the newest turn
	inject  bool // insert what was found
	ledger  bool // write the newest turn's entry
	persist bool // store the finished turn
}

// modeRights is the table that docs and tests quote.
//
//	        replay  recall  inject  ledger      persist
//	on      yes     yes     yes     yes         yes
//	read    yes     yes     yes     yes         no
//	write   yes     no      no      none-entry  yes
//	observe no      yes     no      no          yes
//	off     no      no      no      no          no
var modeRights = [...]rights{
	ModeOn:      {true, true, true, true, true},
	ModeRead:    {true, true, true, true, false},
	ModeWrite:   {true, false, false, true, true},
	ModeObserve: {false, true, false, false, true},
	ModeOff:     {},
}

// parseMode parses the header's values. None means on. Anything unknown or
// contradictory means off, because a client with the wrong words wants less
// than everything.
func parseMode(values []string) Mode {
	mode := ModeOn
	for i, v := range values {
		m := ModeOff
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "on":
			m = ModeOn
		case "read":
			m = ModeRead
		case "write":
			m = ModeWrite
		case "observe":
			m = ModeObserve
		}
		if i > 0 && m != mode {
			return ModeOff
		}
		mode = m
	}
	return mode
}

// mode returns the mode that the head asks for and may have.
func (c *call) mode() Mode {
	if c.h.deps.Recall == nil {
		return ModeOff
	}
	if mark := c.h.identity.PageMark(c.r, c.host); mark != "" {
		c.h.warnOnce("because", "it may come from a web page of another site: "+mark)
		return ModeOff
	}
	return parseMode(c.r.Header[headerMemory])
}

// headRights decides by the head alone. The caller has found an API for it.
func (c *call) headRights() (r rights, status Status) {
	status = StatusUnsupported // for signed bodies
	mode := c.mode()
	if mode == ModeOff {
		status = StatusOff
	} else if !signed(c.r.Header) {
		r = modeRights[mode]
	}
	if c.api.counts { // read-only: what the counted request would replay
		r = rights{replay: r.replay}
	}
	return r, status
}

// signed reports whether a header authenticates the body (SigV4, Digest, HTTP
// signatures), so that changing the body would invalidate the request.
func signed(h http.Header) bool {
	for _, name := range [...]string{
		"X-Amz-Content-Sha256", "Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "Signature", "Signature-Input",
	} {
		if len(h[name]) > 0 {
			return true
		}
	}
	return strings.HasPrefix(h.Get("Authorization"), "AWS4-")
}

// streamedRights decides for a body that did not fit into the limits. A request
// that had no rights keeps its status.
func (x *exchange) streamedRights() (rights, Status) {
	if x.rights == (rights{}) {
		return rights{}, x.plan.status
	}
	return rights{}, StatusTooLarge
}

// ReplacePolicy has other valid rules decide about requests that come from now
// on.
func (h *Handler) ReplacePolicy(rules []policy.Rule) { h.policy.Replace(rules) }

// policyRights decides by the policy for the upstream and the model.
func (x *exchange) policyRights() rights {
	r := x.rights
	switch x.class = x.h.policy.For(x.up.Name, x.read.req.Model); x.class.Memory {
	case policy.MemoryOff:
		return rights{}
	case policy.MemoryRead:
		r.persist = false
	}
	return r
}

// requestRights decides by what is known of the client. A side request is given
// nothing new and leaves nothing; earlier turns keep their blocks, or their
// cached prefix would be lost. What a sub-agent says is not the user's, unless
// the request asks for a mode itself.
func (x *exchange) requestRights() (r rights, side bool) {
	r, client := x.rights, x.read.client
	if x.read.req.Warmup || x.read.req.Compacts || x.api.side || client.IsSide(x.r.Header, x.read.req, x.read.newest) {
		return rights{replay: r.replay}, true
	}
	if !client.IsSubAgent(x.r.Header, x.read.req) || len(x.r.Header[headerMemory]) > 0 {
		return r, false
	}
	switch x.h.cfg.Identity.SubAgents {
	case identity.SubAgentsOff:
		r = rights{replay: r.replay}
	case identity.SubAgentsRead:
		r.persist = false
	}
	return r, false
}

// heldRights decides for a conversation that the upstream keeps, where an
// insertion would stay permanently.
func (r rights) heldRights() rights { return rights{persist: r.persist} }

// enrichesFrames reports whether the frames of this upgrade may get memory.
func (c *call) enrichesFrames() bool {
	return c.h.cfg.WebSocket == WebSocketEnrich && isResponsesSocket(c.r) && c.mode() != ModeOff && !signed(c.r.Header)
}

// fallsBack reports whether the client of this upgrade is better served over
// HTTP, where it gets memory.
func (c *call) fallsBack() bool {
	return c.h.cfg.WebSocket == WebSocketFallback && c.mode() != ModeOff && c.h.deps.Recall != nil &&
		isResponsesSocket(c.r) && c.h.identity.Profile(c.r.Header, nil).WebSocketFallback
}
