package recall

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/text"
)

// query is a request's text as the index understands it.
type query struct {
	terms    []queryTerm
	mass     float64 // sum of idf * weight over all terms; those that the index does not know count like the rarest
	sure     float64 // the same with the gate's idf
	project  uint32  // hash of what the request is about, 0 if unknown
	speaker  uint16  // the one speaker that the query names, 0 if none or several
	intent   intent
	idle     bool // small talk: it asks nothing and names nothing
	command  bool // a command of a few words
	self     self // it asks what is known of the user
	asks     bool
	ofUser   bool          // it is about who asks
	language text.Language // of its words, text.Unknown where nothing tells it
	dates    []text.Days
	vector   *likeness  // nil without embeddings
	filter   [16]uint64 // which words the query may have, by the low bits of their id

	own, words []queryWord // space for those of terms
	read       text.Analysis
	passes     filter
	text       string   // what was read, for heedAreas
	lower, ids []byte   // space for the text in lower case, and for the ids of the result's lines
	hashes     []uint64 // of the terms
	sink       byte     // gives the reads of approachTerms a use
}

// reset makes q a query without terms. Its space is kept; whatever is none is named here, as copying all of it would take longer.
func (q *query) reset() {
	clear(q.terms)
	q.passes.reset()
	q.text = ""
	q.terms, q.own, q.words, q.lower, q.ids, q.hashes = q.terms[:0], q.own[:0], q.words[:0], q.lower[:0], q.ids[:0], q.hashes[:0]
	q.mass, q.sure, q.project, q.speaker, q.intent, q.idle, q.command, q.self, q.asks, q.ofUser, q.language, q.dates, q.vector = 0, 0, 0, 0, 0, false, false, 0, false, false, 0, nil, nil
	clear(q.filter[:])
}

// queryTerm is a term of the query with the words that may stand for it: a concept.
type queryTerm struct {
	stem string
	standing
	weight float64
	idf    float64
	sure   float64     // idf for the gate
	lent   bool        // by the message before
	words  []queryWord // those that the index knows, the term itself first if it does
}

type queryWord struct {
	id    uint32
	share float32
	how   string // "" for the term itself
}

// HumanWords returns the part of a message that a person typed: without recalled blocks, the wrapper elements of agents and clients, long
// fenced code and quoted files. It may be empty: then there is nothing to recall for and nothing to remember.
func HumanWords(message string) string { return text.HumanWords(fence.Strip(message)) }

// words is what of the newest message a human typed.
func (r *Request) words() string {
	if r.HumanOnly {
		return r.Newest
	}
	return HumanWords(r.Newest)
}

// readQuery finds the terms of a request, of which newest is the human's words. usual is the language of what the index holds, for messages that do not tell
// their own.
func (e *Engine) readQuery(newest string, previous func() string, now time.Time, usual text.Language) *query {
	w := &e.cfg.Weights
	q := e.queries.Get().(*query) // goes back without terms
	a := &q.read
	message := ends(newest)
	e.analyzer.Analyze(message, usual, a)
	if !a.ASCII && text.IsSmallTalk(message) {
		return q
	}
	q.text = message
	q.add(a, w, 1)
	if len(q.terms) <= commandTerms || !a.ASCII {
		q.self = selfOf(message)
	}
	if a.Traits&text.FirstPerson != 0 {
		q.intent |= fromSpeaker
	}
	q.idle = a.Traits&(text.HasQuestion|text.HasNumber) == 0 // and nothing but social words: resolve says
	q.lower = appendLower(q.lower[:0], message, a.ASCII)
	q.intent |= readIntent(q.lower)
	if q.language = a.Language; q.language != text.English {
		q.intent |= intentElsewhere(q.lower)
	}
	q.dates = a.Dates(q.lower, now)
	q.asks = a.Traits&text.HasQuestion != 0 || opensAsking(q.lower)
	q.ofUser = a.Traits&text.FirstPerson != 0 || (a.Language > text.English || !a.ASCII) && ofOneself(q.lower)
	q.command = q.isCommand(a)
	if len(q.terms) < e.cfg.BorrowTerms && previous != nil && e.cfg.BorrowWeight > 0 {
		if message := previous(); message != "" {
			e.analyzer.Analyze(ends(HumanWords(message)), usual, a)
			own := len(q.terms)
			q.add(a, w, e.cfg.BorrowWeight)
			for i := range q.terms[own:] {
				q.terms[own+i].lent = true
			}
		}
	}
	return q
}

const (
	// maxQueryTerms bounds the distinct terms that are looked up at all.
	maxQueryTerms = 1024
	// minShare is the least share of a related word that is worth the walk over its postings.
	minShare = 0.05
	// endText is how much of the start and of the end of a long message is read, in bytes.
	endText = 1000
)

// ends shortens a long message to its start and its end, where people ask.
func ends(text string) string {
	if len(text) <= 2*endText+1 {
		return text
	}
	return strings.ToValidUTF8(text[:endText]+"\n"+text[len(text)-endText:], "")
}

// add appends terms that are not there yet. How often a term stands in a message says nothing about what is sought.
func (q *query) add(a *text.Analysis, w *Weights, share float64) {
	var seen map[string]bool // once there are many
	for _, s := range a.Terms {
		if len(q.terms) == maxQueryTerms {
			return
		}
		if s == text.EndOfStatement || s == text.EndOfQuestion {
			continue
		}
		if len(q.terms) < 32 {
			if q.has(s) {
				continue
			}
		} else {
			if seen == nil {
				seen = make(map[string]bool, len(q.terms)+len(a.Terms))
				for _, t := range q.terms {
					seen[t.stem] = true
				}
			}
			if seen[s] {
				continue
			}
			seen[s] = true
		}
		weight, is := share, standings()[s]
		switch {
		case is&ofRequest != 0:
			weight *= w.Request
		case is&isLight != 0:
			weight *= w.Light
		case slices.Contains(a.Proper, s):
			weight *= w.Proper
		}
		q.terms = append(q.terms, queryTerm{stem: s, standing: is, weight: weight})
	}
}

// resolve looks the terms up, takes the names of speakers out and keeps the limit heaviest terms.
func (ix *index) resolve(q *query, limit int, w *Weights) {
	ix.resolveNames(q)
	q.idle = q.idle && ix.onlySocial(q) || q.onlyFigures()
	n := float64(max(ix.live-ix.liveFacts, ix.liveFacts)) // see postings.standing
	rarest := idf(n, 1)
	own := slices.Grow(q.own[:0], len(q.terms))
	q.hashes = q.hashes[:0]
	for i := range q.terms {
		q.hashes = append(q.hashes, ix.terms.hashOf(q.terms[i].stem))
	}
	q.sink = ix.approachTerms(q.hashes)
	tongues := ix.tongues(q)
	for i := range q.terms {
		t := &q.terms[i]
		df := 0.0
		if id, ok := ix.terms.findHashed(t.stem, q.hashes[i]); ok && ix.posts[id].df > 0 {
			df = ix.posts[id].standing()
			own = append(own, queryWord{id: id, share: 1})
			t.words = own[len(own)-1 : len(own) : len(own)]
		} else if tongues != 0 { // then the word is as rare as those of other languages
			var space [8]queryWord
			for _, w := range ix.translate(space[:0], t, q, tongues) {
				df = max(df, ix.posts[w.id].standing())
			}
		}
		t.idf = idf(n, df)
		t.sure = idf(n+unseen, df)
	}
	if len(q.terms) > limit {
		slices.SortStableFunc(q.terms, func(a, b queryTerm) int {
			return cmp.Or(cmp.Compare(min(len(b.words), 1), min(len(a.words), 1)), cmp.Compare(b.idf*b.weight, a.idf*a.weight))
		})
		q.terms = q.terms[:limit]
	}
	q.own = own
	for i := range q.terms {
		t := &q.terms[i]
		q.mass += min(t.idf, rarest) * t.weight
		q.sure += t.sure * t.weight
		from := len(q.words)
		q.words = append(q.words, t.words...)
		if tongues != 0 {
			q.words = ix.translate(q.words, t, q, tongues)
		}
		var kin []relatedTerm
		if t.standing&hasRelated != 0 {
			kin = related()[t.stem]
		}
		for _, r := range kin {
			share, how := w.Synonym, "synonym"
			if r.how == kindOf {
				share, how = w.KindOf, "kind"
			}
			id, ok := ix.terms.find(r.stem)
			if !ok || share == 0 || ix.posts[id].df == 0 || q.has(r.stem) {
				continue
			}
			if rarity := idf(n, ix.posts[id].standing()) / t.idf; rarity < 1 {
				share *= math.Pow(rarity, w.RelatedIDF)
			}
			if share < minShare {
				continue
			}
			q.words = append(q.words, queryWord{id: id, share: float32(share), how: how})
		}
		t.words = q.words[from:len(q.words):len(q.words)]
		for _, word := range t.words {
			q.filter[word.id>>6&15] |= 1 << (word.id & 63)
		}
	}
}

// approachTerms reads a little of all that is known of the terms with these hashes, step by step, as approach does of hits: four
// pointers lead from a hash to the postings.
func (ix *index) approachTerms(hashes []uint64) (read byte) {
	t := &ix.terms
	if len(t.at.slots) == 0 || len(t.ends) == 0 {
		return 0
	}
	mask, low := uint64(len(t.at.slots)-1), t.at.low()
	for len(hashes) > 0 {
		var ids [16]uint32
		n := min(len(hashes), len(ids))
		for i, h := range hashes[:n] {
			ids[i] = t.at.slots[h&mask]
		}
		for i := range ids[:n] {
			id := ids[i]&low - 1 // mostly the term's
			if id >= uint32(len(t.ends)) {
				id = 0
			}
			ids[i] = id
			read += byte(t.ends[id])
		}
		for _, id := range ids[:n] {
			if name := t.raw(id); len(name) > 0 {
				read += name[0]
			}
			if buf := ix.posts[id].buf; len(buf) > 0 {
				read += buf[0]
			}
		}
		hashes = hashes[n:]
	}
	return read
}

// onlySocial reports whether nothing is said but small talk and speakers' names, whatever the message before lent: "ok", "go on".
func (ix *index) onlySocial(q *query) bool {
	for _, t := range q.terms {
		if !t.lent && t.standing&(isSocial|isLight) == 0 && ix.names[t.stem] == 0 {
			return false
		}
	}
	return true
}

// may is a quick necessary condition for termOf and shareOf to find a word.
func (q *query) may(id uint32) bool { return q.filter[id>>6&15]&(1<<(id&63)) != 0 }

// termOf returns the term that is this very word, -2 if none is.
func (q *query) termOf(id uint32) int {
	for k := range q.terms {
		if w := q.terms[k].words; len(w) > 0 && w[0].id == id && w[0].how == "" {
			return k
		}
	}
	return -2
}

func (q *query) has(stem string) bool {
	return slices.ContainsFunc(q.terms, func(t queryTerm) bool { return t.stem == stem })
}

// resolveNames takes the names of speakers out of the text, unless there is nothing else, and notes the speaker if only
// one is named.
func (ix *index) resolveNames(q *query) {
	var named uint16
	names, others := 0, 0
	for _, t := range q.terms {
		if n := ix.names[t.stem]; n == 0 {
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
		q.terms = slices.DeleteFunc(q.terms, func(t queryTerm) bool { return ix.names[t.stem] != 0 })
	}
}
