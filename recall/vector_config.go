package recall

import "context"

// Embedder turns texts into vectors; recall/embed has one.
type Embedder interface {
	// Model names all that makes the vectors what they are. Those of different names are never compared.
	Model() string
	// Query returns the vector of a query, of length one, or fails when ctx ends at the latest.
	Query(ctx context.Context, text string) ([]float32, error)
	// Documents returns the vectors of texts in their order, nil for one that can't be embedded. It may take long.
	Documents(ctx context.Context, texts []string) ([][]float32, error)
}

// VectorConfig sets what embeddings add. Without an Embedder nothing is added.
type VectorConfig struct {
	Embedder Embedder
	// Redact is applied to queries and to memories before they leave: rules may have been added since a memory was stored.
	// Without it no query is sent.
	Redact func(string) string
	// Weight is what the best possible likeness adds to a score, as a share of the query's weight.
	Weight float64
	// Gate is how far, in standard deviations, the likeness of the best memory must stand out from the scope's others for
	// memories to be returned that words alone would not bring. 0 = words alone decide.
	Gate float64
}

// VectorStatus says what became of embeddings in one request.
type VectorStatus string

const (
	VectorsOff    VectorStatus = "off"    // not configured, or nothing was asked
	VectorsNone   VectorStatus = "none"   // the scope has none yet
	VectorsUsed   VectorStatus = "used"   // they are part of the scores
	VectorsLate   VectorStatus = "late"   // the query's came too late
	VectorsFailed VectorStatus = "failed" // the query's could not be had, or does not fit the scope's
)

// VectorStats are counters since the start, and what is held now.
type VectorStats struct {
	Held     int64 // bytes of the vectors in memory, a part of Stats.Bytes
	Vectors  int64 // in memory
	Waiting  int64 // memories of the scopes held that have no vector yet; a scope that was not looked through counts for one
	Used     int64 // requests by status
	Late     int64
	Failed   int64
	Embedded int64 // memories embedded and stored
	Refused  int64 // memories that the server would not embed
	Omitted  int64 // vectors left out of scopes larger than MaxScopeBytes
	Stale    int64 // stored vectors of another model or dimension, or damaged: thrown away
	Failures int64 // failed attempts to embed, to read or to store vectors
}

func (e *Engine) vectorStats() VectorStats {
	w := &e.vec
	v := VectorStats{
		Used: w.used.Load(), Late: w.late.Load(), Failed: w.failed.Load(), Embedded: w.embedded.Load(),
		Refused: w.refused.Load(), Omitted: w.omitted.Load(), Stale: w.stale.Load(), Failures: w.failures.Load(),
	}
	e.scopes.Range(func(_, held any) bool {
		s := &held.(*scopeIndex).vec
		v.Held += s.bytes.Load()
		v.Vectors += s.count.Load()
		if v.Waiting += s.wanting.Load(); e.embeds() && !s.attached.Load() {
			v.Waiting++
		}
		return true
	})
	return v
}
