package proxy

import "net/http"

// Status is the outcome of memory in one exchange, as in X-Remora-Status.
type Status string

const (
	StatusInjected    Status = "injected"    // memories were recalled for this turn and inserted
	StatusReplayed    Status = "replayed"    // nothing new; earlier blocks were inserted again
	StatusEmpty       Status = "empty"       // searched or known: there is nothing to insert
	StatusObserved    Status = "observed"    // searched, counted, not inserted
	StatusOff         Status = "off"         // asked to be off, or the caller may not have memory
	StatusNoUser      Status = "no-user"     // there is nobody to remember for
	StatusTimeout     Status = "timeout"     // memory missed the deadline
	StatusUnavailable Status = "unavailable" // memory failed
	StatusUnsupported Status = "unsupported" // a path or body that gets no memory
	StatusTooLarge    Status = "too-large"   // over the body limit or the global budget, which decoders count against
	StatusRejected    Status = "rejected"    // the upstream refused the enriched body; the original was sent instead
	StatusRepaired    Status = "repaired"    // the upstream refused parts that were bound to another prefix; they were left out
)

var statuses = [...]Status{
	StatusInjected, StatusReplayed, StatusEmpty, StatusObserved, StatusOff, StatusNoUser, StatusTimeout,
	StatusUnavailable, StatusUnsupported, StatusTooLarge, StatusRejected, StatusRepaired,
}

// Response headers, in canonical form so that they can be set directly.
const (
	headerStatus   = "X-Remora-Status"
	headerMemories = "X-Remora-Memories"
)

// headerMemory asks for a Mode. The other request headers are in package
// identity. All X-Remora-* headers are removed before the upstream.
const headerMemory = "X-Remora-Memory"

// setStatus sets the status headers. It must be called before the response head
// is written.
func setStatus(h http.Header, s Status, memories string) {
	values := []string{string(s), memories}
	h[headerStatus], h[headerMemories] = values[:1:1], values[1:]
}
