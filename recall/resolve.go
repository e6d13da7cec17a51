package recall

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/text"
)

// resolvedQuery is a query whose terms have been looked up in one index.
type resolvedQuery struct {
	query.Query
	terms   []resolvedTerm // of Query.Terms
	mass    float64        // sum of idf * weight over all terms; those that the index does not know count like the rarest
	sure    float64        // the same with the gate's idf
	project uint32         // hash of the project that the request belongs to, 0 if unknown
	content uint32         // the concepts of content words, a bit each as in holdings
	figures uint32         // those of figures and names of times, likewise
	kinds   uint32         // the concepts with kinds of which the index knows things, a bit each as in holdings
	speaker uint16         // the one speaker that the query names, 0 if none or several
	vector  *likeness      // nil without embeddings
	filter  [16]uint64     // the words that the query may have, by the low bits of their id
	passes  filter

	own, words []queryWord // memory for those of terms
	read       text.Analysis
	ids        []byte // memory for the ids of the result's lines
}

// resolvedTerm is a term of the query with the words that may be used instead
// of it: a concept.
type resolvedTerm struct {
	query.Term
	idf   float64
	sure  float64     // idf for the gate
	words []queryWord // those that the index knows, the term itself first if it does
}

// queryWord is a word of the index that counts for a term.
type queryWord struct {
	id    uint32
	share float32 // for the ranking
	gate  float32 // for the gate
	how   string  // "" for the term itself
}

const (
	// minShare is the minimum share of a related word whose postings are read.
	minShare = 0.05
	// translatedShare is the share of a word of another language.
	translatedShare = 0.9
	// relatedGate is the share of a related word for the gate. It says as much
	// about whether the store knows an answer as the word itself, nearly.
	relatedGate = 0.7
	// unknownPair is the share of the weight of a pair of characters that no
	// memory has. Most are no words.
	unknownPair = 0.3
)

// reset empties q and keeps its memory.
func (q *resolvedQuery) reset() {
	clear(q.terms)
	q.Reset()
	q.passes.reset()
	q.terms, q.own, q.words, q.ids = q.terms[:0], q.own[:0], q.words[:0], q.ids[:0]
	q.mass, q.sure, q.project, q.speaker, q.vector = 0, 0, 0, 0, nil
	q.content, q.figures, q.kinds = 0, 0, 0
	clear(q.filter[:])
}

// resolver looks up queries in an index.
type resolver struct{ *index }

// resolve looks up the terms of q, removes the names of speakers and keeps the
// limit heaviest terms.
func (ix resolver) resolve(q *resolvedQuery, limit int, w *Weights) {
	ix.resolveNames(q)
	q.SmallTalk = q.SmallTalk && (ix.onlySocial(q) || q.Courteous && ix.saysLittle(q)) || q.OnlyFigures()
	n := float64(max(ix.live-ix.liveFacts, ix.liveFacts)) // see postings.documents
	rarest := idf(n, 1)
	for _, t := range q.Terms {
		q.terms = append(q.terms, resolvedTerm{Term: t})
	}
	own := slices.Grow(q.own[:0], len(q.terms))
	languages := ix.languages(q)
	for i := range q.terms {
		t := &q.terms[i]
		df := 0.0
		if id, ok := ix.terms.find(t.Stem); ok && ix.posts[id].df > 0 {
			df = ix.posts[id].documents()
			own = append(own, queryWord{id: id, share: 1, gate: 1})
			t.words = own[len(own)-1 : len(own) : len(own)]
		} else if languages != 0 { // then the word is as rare as its translations
			var space [8]queryWord
			for _, w := range ix.translate(space[:0], t, q, languages) {
				df = max(df, ix.posts[w.id].documents())
			}
		}
		if df == 0 && isUnspacedPair(t.Stem) {
			t.Weight *= unknownPair
		}
		t.idf = idf(n, df)
		t.sure = idf(n+unseen, df)
	}
	if len(q.terms) > limit {
		slices.SortStableFunc(q.terms, func(a, b resolvedTerm) int {
			return cmp.Or(cmp.Compare(min(len(b.words), 1), min(len(a.words), 1)), cmp.Compare(b.idf*b.Weight, a.idf*a.Weight))
		})
		q.terms, q.Terms = q.terms[:limit], q.Terms[:0]
		for _, t := range q.terms {
			q.Terms = append(q.Terms, t.Term)
		}
	}
	q.own = own
	language := q.Language
	if language == text.Unknown {
		language = max(ix.usualLanguage(), text.English)
	}
	for i := range q.terms {
		t := &q.terms[i]
		q.mass += min(t.idf, rarest) * t.Weight
		q.sure += t.sure * t.Weight
		if bit := uint32(1) << min(i, 30); query.IsDigit(t.Stem[0]) || text.IsTimeStem(t.Stem) {
			q.figures |= bit
		} else if t.Role&(query.IsLight|query.OfRequest) == 0 {
			q.content |= bit
		}
		from := len(q.words)
		q.words = append(q.words, t.words...)
		if languages != 0 {
			q.words = ix.translate(q.words, t, q, languages)
		}
		var kin []query.RelatedTerm
		if t.Role&query.HasRelated != 0 {
			kin = query.Related(t.Stem, language)
		}
		for _, r := range kin {
			share, how := w.Synonym, "synonym"
			if r.How == query.KindOf {
				share, how = w.KindOf, "kind"
			}
			id, ok := ix.terms.find(r.Stem)
			if !ok || share == 0 || ix.posts[id].df == 0 || q.Has(r.Stem) {
				continue
			}
			df := ix.posts[id].documents()
			if rarity := idf(n, df) / t.idf; rarity < 1 {
				share *= math.Pow(rarity, w.RelatedIDF)
			}
			if share < minShare {
				continue
			}
			gate := relatedGate * min(1, idf(n+unseen, df)/t.sure)
			if t.Role&query.OfArea != 0 && q.AsksToKnow() { // "what did I cook?" is not about allergies
				gate = share
			}
			if r.How == query.KindOf {
				q.kinds |= 1 << min(i, 30)
			}
			q.words = append(q.words, queryWord{id: id, share: float32(share), gate: float32(gate), how: how})
		}
		t.words = q.words[from:len(q.words):len(q.words)]
		for _, word := range t.words {
			q.filter[word.id>>6&15] |= 1 << (word.id & 63)
		}
	}
}

// isUnspacedPair reports whether a term is a pair of characters of a script
// without spaces.
func isUnspacedPair(stem string) bool {
	first, n := utf8.DecodeRuneInString(stem)
	return len(stem) > n && text.Spaceless(first)
}

// onlySocial reports whether the message has nothing but small talk and
// speakers' names, apart from borrowed terms: "ok", "go on".
func (ix resolver) onlySocial(q *resolvedQuery) bool {
	for _, t := range q.Terms {
		if !t.Borrowed && t.Role&(query.IsSocial|query.IsLight) == 0 && ix.names[t.Stem] == 0 {
			return false
		}
	}
	return true
}

// maxSocialContent is how many other words small talk may have: "Wow, what a
// journey!"
const maxSocialContent = 2

// saysLittle reports whether a message has few words that are no small talk,
// and no names but those of speakers.
func (ix resolver) saysLittle(q *resolvedQuery) bool {
	content := 0
	for _, t := range q.Terms {
		if t.Borrowed || t.Role&(query.IsSocial|query.IsLight) != 0 || ix.names[t.Stem] != 0 {
			continue
		}
		if content++; content > maxSocialContent || t.Role&(query.IsProper|query.OfArea) != 0 {
			return false
		}
	}
	return true
}

// may reports whether termOf may find a word. It is quick, and errs only
// towards true.
func (q *resolvedQuery) may(id uint32) bool { return q.filter[id>>6&15]&(1<<(id&63)) != 0 }

// termOf returns the index of the term that is this very word, or -2.
func (q *resolvedQuery) termOf(id uint32) int {
	for k := range q.terms {
		if w := q.terms[k].words; len(w) > 0 && w[0].id == id && w[0].how == "" {
			return k
		}
	}
	return -2
}

// resolveNames removes the names of speakers, unless there is nothing else, and
// sets q.speaker if only one is named.
func (ix resolver) resolveNames(q *resolvedQuery) {
	var named uint16
	names, others := 0, 0
	for _, t := range q.Terms {
		if n := ix.names[t.Stem]; n == 0 {
			others++
		} else if n != named {
			named = n
			names++
		}
	}
	if names == 1 {
		q.speaker = named
	}
	if names > 0 && others > 0 {
		q.Terms = slices.DeleteFunc(q.Terms, func(t query.Term) bool { return ix.names[t.Stem] != 0 })
	}
}

// minSpoken: a language is one of the user's if at least one in so many
// passages is in it. A word or two may be misread as any language.
const minSpoken = 64

// languages returns the languages of the index other than the query's, a bit
// each.
func (ix resolver) languages(q *resolvedQuery) (others uint32) {
	all := 0
	for l := text.English; l <= text.Dutch; l++ {
		all += ix.spoken[l]
	}
	for l := text.English; l <= text.Dutch; l++ {
		if l != q.Language && ix.spoken[l] > 0 && ix.spoken[l] >= all/minSpoken {
			others |= 1 << l
		}
	}
	return others
}

// translate appends the words of other languages that the index knows and that
// mean the same as a term.
func (ix resolver) translate(words []queryWord, t *resolvedTerm, q *resolvedQuery, languages uint32) []queryWord {
	for _, to := range query.Translations(t.Stem, q.Language) {
		if languages>>to.Language&1 == 0 || q.Has(to.Stem) {
			continue
		}
		if id, ok := ix.terms.find(to.Stem); ok && ix.posts[id].df > 0 {
			words = append(words, queryWord{id: id, share: translatedShare, gate: translatedShare, how: "translation"})
		}
	}
	return words
}
