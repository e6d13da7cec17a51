package recall

import "context"

// Embedder turns texts into vectors. recall/embed has one.
type Embedder interface {
	// Model names all that decides what the vectors are. Vectors of different
	// names are never compared.
	Model() string
	// Query returns the vector of a query, of length one. It fails when ctx
	// ends, at the latest.
	Query(ctx context.Context, text string) ([]float32, error)
	// Documents returns the vectors of texts in their order, nil for a text
	// that can't be embedded. It may take long.
	Documents(ctx context.Context, texts []string) ([][]float32, error)
}

// VectorConfig sets what embeddings add to the search. Without an Embedder they
// add nothing.
type VectorConfig struct {
	Embedder Embedder
	// Redact is applied to queries and memories before they are sent: rules may
	// have been added since a memory was stored. Without it no query is sent.
	Redact func(string) string
	// Weight is what the greatest likeness adds to a score, as a share of the
	// query's weight.
	Weight float64
	// Gate is how far, in standard deviations, the likeness of the best memory
	// must exceed the scope's mean for memories to be returned that words alone
	// would not bring. 0 means that words alone decide.
	Gate float64
}

// VectorStats counts since the start, and describes what is held now.
type VectorStats struct {
	Held     int64 // bytes of the vectors in memory, a part of Stats.Bytes
	Vectors  int64 // in memory
	Waiting  int64 // memories of the scopes held that have no vector yet; one for each scope whose vectors are not read yet
	Used     int64 // requests by status
	Late     int64
	Failed   int64
	Embedded int64 // memories embedded and stored
	Refused  int64 // memories that the server refused to embed
	Omitted  int64 // vectors left out of scopes that exceed MaxScopeBytes
	Stale    int64 // stored segments that were damaged, or of another model or dimension, and deleted
	Failures int64 // failed attempts to embed, to read or to store vectors
}
