// Package receipt defines what is kept of an exchange for the person whose
// memory it was: what was inserted, byte for byte and where, which memories
// were candidates and why some were turned down, what the answer cost and what
// the prompt cache saved, and where the time went.
//
// A receipt holds redacted text, and is sealed like a memory, in
// storage.BucketExchange. The proxy makes one for each exchange and never waits
// for it; the [Recorder] writes them in batches. When a memory is erased, its
// lines leave all receipts ([Forget]).
//
// Bounds: [MaxPerUser] receipts of a user, the oldest of which are deleted
// first; what waits to be written is bounded by [MaxWaiting], beyond which
// receipts are dropped and counted.
package receipt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

const version = 1

// Receipt tells what memory did in one exchange.
type Receipt struct {
	Version int           `json:"version"`
	ID      string        `json:"id"` // sorts by time
	At      storage.Time  `json:"at"`
	Scope   storage.Scope `json:"-"` // of the record

	Conversation string `json:"conversation,omitempty"`
	Turn         string `json:"turn,omitempty"` // hash of the request up to its newest user message
	Client       string `json:"client,omitempty"`
	Upstream     string `json:"upstream,omitempty"`
	Dialect      string `json:"dialect,omitempty"`
	Model        string `json:"model,omitempty"`
	Status       string `json:"status"`         // as in X-Remora-Status
	Code         int    `json:"code,omitempty"` // of the answer; 0 = the client left first
	Query        string `json:"query,omitempty"`

	Inserted   []Insertion `json:"inserted,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`
	Considered int         `json:"considered,omitempty"` // memories that matched
	Relevance  float64     `json:"relevance,omitempty"`  // what the gate compared
	Gate       float64     `json:"gate,omitempty"`
	Vectors    string      `json:"vectors,omitempty"`

	Usage Usage `json:"usage"`
	Times Times `json:"times"`
}

// Insertion is one block in the request that went out.
type Insertion struct {
	Placement string       `json:"placement"`
	Message   int          `json:"message"` // index of the message that it belongs to
	Offset    int          `json:"offset"`  // in the request as the client sent it, decoded; -1 = with others
	Replayed  bool         `json:"replayed,omitempty"`
	Text      string       `json:"text"`
	Spans     []fence.Span `json:"spans,omitempty"`
}

// Candidate is a memory that matched.
type Candidate struct {
	ID    string  `json:"id"`
	Kind  string  `json:"kind,omitempty"`
	Score float64 `json:"score"`
	// Parts take the score apart, when the receipt is read. PartsNow reports
	// that they are of a search that gives another score now.
	Parts    []Part `json:"parts,omitempty"`
	PartsNow bool   `json:"partsNow,omitempty"`
	Inserted bool   `json:"inserted,omitempty"`
	Reason   string `json:"reason,omitempty"` // why it was turned down
}

// Part is an addend or a factor of a score: see recall.Part.
type Part struct {
	Name  string  `json:"name"`
	Term  string  `json:"term,omitempty"`
	Value float64 `json:"value"`
}

// Usage is what the upstream reported, in tokens.
type Usage struct {
	Input      int64 `json:"input,omitempty"`
	Output     int64 `json:"output,omitempty"`
	CacheRead  int64 `json:"cacheRead,omitempty"`
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	// Saved is how many input tokens were not paid for, as far as those from the
	// cache cost a tenth of the others.
	Saved int64 `json:"saved,omitempty"`
	// Added estimates the tokens of what was inserted: four bytes each.
	Added int64 `json:"added,omitempty"`
}

// Times is where the time of an exchange went, in microseconds.
type Times struct {
	Plan      int64 `json:"plan,omitempty"`   // reading the request, the ledger, and recall
	Recall    int64 `json:"recall,omitempty"` // the search alone
	FirstByte int64 `json:"firstByte,omitempty"`
	Total     int64 `json:"total,omitempty"`
}

// key returns the record key of a receipt.
func (r *Receipt) record(expires storage.Time) (storage.Record, error) {
	r.Version = version
	value, err := json.Marshal(r)
	return storage.Record{Bucket: storage.BucketExchange, Scope: r.Scope, Key: r.ID, Value: value, ExpiresAt: expires}, err
}

// Decode reads a receipt from its record.
func Decode(rec *storage.Record) (r Receipt, err error) {
	if err = json.Unmarshal(rec.Value, &r); err == nil && r.Version != version {
		err = fmt.Errorf("receipt of version %d: %w", r.Version, storage.ErrDamaged)
	}
	r.Scope = rec.Scope
	return r, err
}

// Forget takes the lines of memories out of an encoded receipt, and reports
// whether it had any. A receipt that can't be read is left alone.
func Forget(value []byte, ids map[string]struct{}) (_ []byte, changed bool) {
	var r Receipt
	if json.Unmarshal(value, &r) != nil || r.Version != version {
		return value, false
	}
	for i := range r.Inserted {
		in := &r.Inserted[i]
		if slices.ContainsFunc(in.Spans, func(s fence.Span) bool { _, gone := ids[s.ID]; return gone }) {
			rest := fence.Block{Text: in.Text, Spans: in.Spans}.Without(ids)
			in.Text, in.Spans, changed = rest.Text, rest.Spans, true
		}
	}
	r.Candidates = slices.DeleteFunc(r.Candidates, func(c Candidate) bool {
		_, gone := ids[c.ID]
		changed = changed || gone
		return gone
	})
	if !changed {
		return value, false
	}
	if encoded, err := json.Marshal(&r); err == nil {
		return encoded, true
	}
	return value, false
}

// ForgetQuestion takes what a person said in an exchange out of an encoded
// receipt, if it is of one of those, and reports whether it had any.
func ForgetQuestion(value []byte, of func(*Receipt) bool) (_ []byte, changed bool) {
	var r Receipt
	if json.Unmarshal(value, &r) != nil || r.Version != version || !of(&r) {
		return value, false
	}
	changed = r.Query != ""
	r.Query = ""
	for i := range r.Candidates {
		c := &r.Candidates[i]
		changed = changed || len(c.Parts) > 0 // their terms are its words
		c.Parts = nil
	}
	if !changed {
		return value, false
	}
	if encoded, err := json.Marshal(&r); err == nil {
		return encoded, true
	}
	return value, false
}

// Memories returns the ids of the memories that were inserted, without those
// that were replayed.
func (r *Receipt) Memories() (ids []string) {
	for i := range r.Inserted {
		if r.Inserted[i].Replayed {
			continue
		}
		for _, s := range r.Inserted[i].Spans {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// Lines returns the lines of a block by the memory that each shows.
func (in *Insertion) Lines() map[string]string {
	out := map[string]string{}
	for _, s := range in.Spans {
		if s.Start >= 0 && s.Start <= s.End && s.End <= len(in.Text) {
			out[s.ID] = strings.TrimSpace(in.Text[s.Start:s.End])
		}
	}
	return out
}
