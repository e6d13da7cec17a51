// Package recall finds the memories that are relevant to a message.
//
// An [Engine] holds one index per scope in memory. It loads an index when it is
// first needed, from a snapshot or from the memories in the store; Add and
// Forget keep it up to date. A request searches exactly one scope.
//
// Below a calibrated relevance nothing is returned. A failure of any kind is an
// error, never an empty result. Everything is bounded: a request by its
// deadline, the indexes by Config.MaxBytes and Config.MaxScopeBytes, and all
// background work ends before Close returns.
//
// With an [Embedder] memories get vectors in the background, and a result
// combines words and vectors. If the embedder fails or is late, the result is
// that of the words, and [Result.Vectors] reports it.
package recall

import (
	"context"
	"errors"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
)

// ErrTimeout is returned when the deadline passes first. The load of the
// scope's index continues in the background.
var ErrTimeout = errors.New("recall deadline exceeded")

// Source is what an engine loads indexes from, for example a storage.Store.
type Source interface {
	Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error)
}

// HumanWords is query.HumanWords, for callers that apply it themselves
// (Request.HumanOnly).
func HumanWords(message string) string { return query.HumanWords(message) }
