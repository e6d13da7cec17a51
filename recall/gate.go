package recall

import (
	"math"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/text"
)

// How relevance weighs its two signs, and how far down the second is looked for. Measured: see docs/recall.md.
const (
	coverWeight = 0.6
	coverTurns  = 5
)

// relevance says, 0..1, how well the best of what was found answers the query. It joins the share of the query's weight
// that the best turn's score reaches, and the largest share of it that one passage of the best turns holds in its own
// words. A query with many words reaches less of each, which a small term evens out. Small talk has none.
func relevance(q *resolvedQuery, best, held float64) float64 {
	if q.mass <= 0 || q.SmallTalk {
		return 0
	}
	r := (best/q.mass + coverWeight*held/q.sure + wordsWeight*(math.Log(float64(max(len(q.terms), 1)))-usualTerms)) / (1 + coverWeight)
	return max(0, min(r, 1))
}

// matched is the best score, but for what the factor of wishes adds: how the user likes things says nothing about whether the
// query is about what the store knows.
func (ix ranker) matched(top []hit, q *resolvedQuery, w *Weights) float64 {
	if q.Intent&query.WantsAdvice == 0 || w.Wish <= 1 {
		return top[0].score
	}
	best := 0.0
	for _, h := range top[:min(len(top), coverTurns)] {
		if ix.turns[h.turn].traits&text.HasPreference != 0 {
			h.score /= w.Wish
		}
		best = max(best, h.score)
	}
	return best
}

// unseen is how many turns without any of the query's words the gate takes a scope to have besides its own. In a store of
// a few turns every word is rare or unknown; so a word that the store knows is worth nearly what an unknown one is.
const unseen = 200

const (
	wordsWeight = 0.05
	usualTerms  = 1.6 // ln 5
)
