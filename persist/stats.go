package persist

import (
	"sync"
	"sync/atomic"
	"time"
)

// Drop is a reason for which a turn did not become a memory.
type Drop int

const (
	DropInvalid     Drop = iota // it has no valid scope, no id or no messages
	DropFull                    // the queue was full
	DropRateLimited             // its scope exceeded its rate
	DropStopped                 // the pipeline was stopping, or stopped before the turn was durable
	DropEmpty                   // it has no text but recalled blocks
	DropRedactedAll             // it has no text but placeholders
	DropPoison                  // it can't be prepared or spooled, or there was no room left in quarantine
	DropErased                  // its scope or conversation was erased before it was stored
	DropDeclined                // the user asked not to keep it
	dropCount
)

func (d Drop) String() string {
	return [...]string{"invalid", "full", "rateLimited", "stopped", "empty", "redactedAll", "poison", "erased", "declined"}[d]
}

// Stats are counters since the start, and the state of the queue.
type Stats struct {
	Enqueued    uint64 // accepted by Enqueue
	Recovered   uint64 // found in the spool at the start
	Persisted   uint64 // durable in the spool
	Indexed     uint64 // stored and searchable, new or replacing
	Replaced    uint64 // of these, the ones that replaced another version of the turn
	Duplicates  uint64 // stored already with the same texts: nothing changed
	Memories    uint64 // passages written
	Quarantined uint64 // set aside after three tries
	Retries     uint64 // writes that failed and were tried again
	Damaged     uint64 // spool records that could not be read
	Dropped     map[Drop]uint64

	QueueTurns int // once the pipeline has stopped: those that wait in the spool for the next start
	QueueBytes int64
	Lag        time.Duration // age of the oldest turn that is not searchable yet
}

// Stats returns a snapshot.
func (p *Pipeline) Stats() Stats {
	s := &p.stats
	out := Stats{
		Enqueued: s.enqueued.Load(), Recovered: s.recovered.Load(), Persisted: s.persisted.Load(),
		Indexed: s.indexed.Load(), Replaced: s.replaced.Load(), Duplicates: s.duplicates.Load(),
		Memories: s.memories.Load(), Quarantined: s.quarantined.Load(), Retries: s.retries.Load(), Damaged: s.damaged.Load(),
		Dropped: make(map[Drop]uint64, dropCount),
	}
	for d := range dropCount {
		if n := s.dropped[d].Load(); n > 0 {
			out.Dropped[d] = n
		}
	}
	var oldest time.Time
	if out.QueueTurns, out.QueueBytes, oldest = p.queue.state(); !oldest.IsZero() {
		out.Lag = time.Since(oldest)
	}
	return out
}

type counters struct {
	enqueued, recovered, persisted, indexed, replaced, duplicates atomic.Uint64
	memories, quarantined, retries, damaged                       atomic.Uint64
	episodesEvicted, passageBytes                                 atomic.Uint64
	conversationBytes, factBytes                                  atomic.Int64 // held by the auditor
	erasures, erasedMemories                                      atomic.Uint64

	audits, auditsGivenUp, auditsCut, shed                    atomic.Uint64
	factsSaved, factsReinforced, factsSuperseded              atomic.Uint64
	factsQuarantined, factsReplaced, factsEvicted, candidates atomic.Uint64
	forgetRequests, distilled, distillFailed                  atomic.Uint64
	auditMicros, auditMicrosMax                               atomic.Int64
	meanScores                                                atomic.Uint64 // sum of the audits' mean scores, in millionths

	rejectedMu sync.Mutex
	rejected   map[string]uint64 // sentences, by reason
	dropped    [dropCount]atomic.Uint64
}

func (c *counters) drop(d Drop) { c.dropped[d].Add(1) }

// audited counts the result of an audit.
func (c *counters) audited(f *finding) {
	r := &f.record
	c.audits.Add(1)
	if r.Soft {
		c.auditsCut.Add(1)
	}
	c.factsSaved.Add(uint64(r.Saved))
	c.factsSuperseded.Add(uint64(r.Superseded))
	c.factsReinforced.Add(uint64(r.Reinforced))
	c.factsQuarantined.Add(uint64(r.Quarantined))
	c.factsReplaced.Add(uint64(f.replaced))
	c.candidates.Add(uint64(r.Candidates))
	c.forgetRequests.Add(uint64(len(f.requests)))
	c.meanScores.Add(uint64(r.Mean * 1e6))
	c.auditMicros.Add(r.TookMicros)
	for longest := c.auditMicrosMax.Load(); r.TookMicros > longest && !c.auditMicrosMax.CompareAndSwap(longest, r.TookMicros); {
		longest = c.auditMicrosMax.Load()
	}
	c.rejectedMu.Lock()
	defer c.rejectedMu.Unlock()
	if c.rejected == nil {
		c.rejected = map[string]uint64{}
	}
	for why, n := range r.Rejected {
		c.rejected[why] += uint64(n)
	}
}
