package recall

import (
	"errors"
	"fmt"
	"reflect"
	"time"
)

// Config configures an Engine.
type Config struct {
	SearchConfig
	// Deadline bounds a request whose scope is loaded, FirstDeadline any other.
	Deadline      time.Duration
	FirstDeadline time.Duration
	// MaxBytes bounds all indexes together. Beyond it the least recently used
	// scopes are evicted; their next request loads them again. MaxScopeBytes
	// bounds one index. Beyond it the oldest memories are left out and counted.
	MaxBytes      int64
	MaxScopeBytes int64
	// MaxLoads bounds the loads that run at the same time; others wait.
	// LoadTimeout bounds one load.
	MaxLoads    int
	LoadTimeout time.Duration
	// SnapshotAfter is how long an index must not have changed before its
	// snapshot is written; 0 means no snapshots.
	SnapshotAfter time.Duration
	Vectors       VectorConfig
}

// DefaultConfig returns the measured defaults.
func DefaultConfig() Config {
	return Config{
		SearchConfig:  defaultSearchConfig(),
		Deadline:      30 * time.Millisecond,
		FirstDeadline: 150 * time.Millisecond,
		MaxBytes:      256 << 20,
		MaxScopeBytes: 128 << 20,
		MaxLoads:      4,
		LoadTimeout:   2 * time.Minute,
		SnapshotAfter: 30 * time.Second,
		Vectors:       VectorConfig{Weight: 0.15, Gate: 7},
	}
}

// Validate returns all problems, joined, each with the key of its setting.
func (c Config) Validate() error {
	var errs []error
	bad := func(path, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
	}
	if c.Deadline <= 0 {
		bad("deadline", "must be > 0")
	}
	if c.FirstDeadline <= 0 {
		bad("firstDeadline", "must be > 0")
	}
	if c.MaxBytes < 1<<20 {
		bad("maxBytes", "must be at least 1 MiB")
	}
	if c.MaxScopeBytes < 1<<16 || c.MaxScopeBytes > c.MaxBytes {
		bad("maxScopeBytes", "must be 64 KiB..maxBytes")
	}
	if c.MaxLoads < 1 {
		bad("maxLoads", "must be > 0")
	}
	if c.LoadTimeout <= 0 {
		bad("loadTimeout", "must be > 0")
	}
	if c.SnapshotAfter < 0 {
		bad("snapshotAfter", "must be >= 0")
	}
	if v := c.Vectors; !(v.Weight >= 0 && v.Weight <= 10) {
		bad("embeddings.weight", "must be 0..10")
	}
	if v := c.Vectors; !(v.Gate >= 0 && v.Gate <= 1000) {
		bad("embeddings.gate", "must be 0..1000")
	}
	return errors.Join(append(errs, c.SearchConfig.validate())...)
}

// Weights are the parameters of a turn's score, which is
//
// ( sum over concepts: idf * weight * x / (K1 + x) + phrases ) * factors
//
// A concept is a term of the query together with the words that may stand for
// it. Its x sums, over the fields that hold one of these words,
//
// weight of the field * weight of the word * tf / (1 - b + b * length / mean
// length)
//
// (BM25F: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009,
// section 3.6), and idf = ln(1 + (n - df + 0.5) / (df + 0.5)) for the scope's n
// turns.
//
// Weights ending in Ask are for sentences that ask, the others for sentences
// that state. Those ending in B are the b of their field, 0 to 1.
type Weights struct {
	K1 float64 // saturation of repeated words

	// The turn's text.
	User           float64
	UserAsk        float64 // a share of User
	UserB          float64
	Assistant      float64
	AssistantB     float64
	AssistantAsked float64 // multiplies Assistant if the query is about what the assistant said

	// The user's text in neighbouring turns of the conversation: one and two
	// turns before, one and two after, and three in either direction.
	Before1, Before1Ask float64
	Before1Answered     float64 // replaces Before1Ask if the question was answered in its turn
	Before2, Before2Ask float64
	After1, After1Ask   float64
	After2, After2Ask   float64
	Away3, Away3Ask     float64

	// All text of the conversation.
	Session, SessionB float64

	// The query's terms. All others have weight 1.
	Light   float64 // words that occur in many questions
	Request float64 // words about the conversation or the answer
	Proper  float64 // capitalised words inside a sentence

	// Words that may stand for a term, 0 to 1. If the word is commoner than the
	// term, its weight is multiplied by the ratio of their idf to the power of
	// RelatedIDF.
	Synonym, KindOf, RelatedIDF float64

	// Phrase is added, as a share of the lesser idf, if two terms are adjacent
	// in the query and in the text.
	Phrase float64

	// Factors.
	Date            float64 // 1 + Date * how well the turn's time fits a date in the query
	Speaker         float64 // the query names the turn's speaker
	FirstPerson     float64 // the turn is in the first person,
	FirstPersonBoth float64 // and so is the query
	Project         float64 // the conversation is about the request's project
	Opening         float64 // the turn opens its conversation: people start with news
	Wish            float64 // the query asks for advice or work, the turn states a preference
	TimeAnswer      float64 // the query asks when, the turn has a time
	NumberAnswer    float64 // the query asks how many, the turn has a number
	NameAnswer      float64 // the query asks who, where or which, the turn has a name
}

// DefaultWeights returns the measured weights. docs/recall-figures.md has the
// measurements.
func DefaultWeights() Weights {
	return Weights{
		K1:   1.6,
		User: 1, UserAsk: 0.8, UserB: 0.4,
		Assistant: 0.11, AssistantB: 0.85, AssistantAsked: 1.5,
		Before1: 0.15, Before1Ask: 1.5, Before1Answered: 0.5,
		Before2: 0.44, Before2Ask: 0.3,
		After1: 0.35, After1Ask: 0.13,
		After2: 0.15, After2Ask: 0.15,
		Away3: 0.08, Away3Ask: 0.1,
		Session: 0.05, SessionB: 0.75,
		Light: 0.4, Request: 0.6, Proper: 1.2,
		Synonym: 0.35, KindOf: 0.35, RelatedIDF: 1.3,
		Phrase: 0.1,
		Date:   1.1, Speaker: 1.3, FirstPerson: 1.15, FirstPersonBoth: 1.1, Opening: 1.15, Wish: 2.5, Project: 1.1,
		TimeAnswer: 1.35, NumberAnswer: 1.1, NameAnswer: 1.15,
	}
}

// maxWeight bounds every weight except those that are shares.
const maxWeight = 100

func (w Weights) validate() (errs []error) {
	shares := map[string]bool{"UserB": true, "AssistantB": true, "SessionB": true, "Synonym": true, "KindOf": true}
	for i, v := 0, reflect.ValueOf(w); i < v.NumField(); i++ {
		name, limit := v.Type().Field(i).Name, float64(maxWeight)
		if shares[name] {
			limit = 1
		}
		if x := v.Field(i).Float(); !(x >= 0 && x <= limit) || name == "K1" && x == 0 { // NaN is invalid, too
			errs = append(errs, fmt.Errorf("weight %s: must be 0..%g, K1 not 0", name, limit))
		}
	}
	return errs
}
