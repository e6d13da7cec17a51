package proxy

import (
	"net/http"
	"strings"
)

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

// parseMode reads the header's values. None means on; anything unknown or contradictory means off: who asks for
// something in the wrong words wants less than everything.
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

// Status is what became of memory in one exchange, as X-Remora-Status tells it.
type Status string

const (
	StatusInjected    Status = "injected"    // memories were recalled for this turn and inserted
	StatusReplayed    Status = "replayed"    // nothing new; what earlier requests were given stands where it stood
	StatusEmpty       Status = "empty"       // searched or known: there is nothing to insert
	StatusObserved    Status = "observed"    // searched, counted, not inserted
	StatusOff         Status = "off"         // asked to be off, or the caller may not have memory
	StatusNoUser      Status = "no-user"     // nobody to remember for
	StatusTimeout     Status = "timeout"     // memory was not there by the deadline
	StatusUnavailable Status = "unavailable" // memory failed
	StatusUnsupported Status = "unsupported" // a path or body that gets no memory
	StatusTooLarge    Status = "too-large"   // over the body limit or the global budget, to which a decoder's window counts
	StatusRejected    Status = "rejected"    // the upstream refused the enriched body; the original was sent instead
)

var statuses = [...]Status{
	StatusInjected, StatusReplayed, StatusEmpty, StatusObserved, StatusOff, StatusNoUser, StatusTimeout,
	StatusUnavailable, StatusUnsupported, StatusTooLarge, StatusRejected,
}

// Response headers, in canonical form so that they can be set without canonicalising.
const (
	headerStatus   = "X-Remora-Status"
	headerMemories = "X-Remora-Memories"
)

// Request headers that control Remora. All X-Remora-* headers are removed before the upstream.
const (
	headerMemory = "X-Remora-Memory" // the others are package identity's
)

// toldStatus is the exchange's status with what there is to note.
func (x *exchange) toldStatus() Status {
	if x.h.deps.Note != nil {
		if note := x.h.deps.Note(); note != "" {
			return x.status + Status("; "+note)
		}
	}
	return x.status
}

// setStatus writes the status headers. It must come before the response head.
func setStatus(h http.Header, s Status, memories string) {
	values := []string{string(s), memories}
	h[headerStatus], h[headerMemories] = values[:1:1], values[1:]
}
