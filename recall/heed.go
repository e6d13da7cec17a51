package recall

import (
	"bytes"
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/remora-proxy/remora/text"
)

// "What should I cook tonight?" shares no word with "my son is allergic to peanuts", and yet nothing else matters as much. What must be
// heeded is looked for by areas: whoever asks for something of one is reminded of what was told that belongs to it, whatever the gate
// says of the words. What was asked or is looked back at needs none of it.

//go:embed heed.txt
var heedText string

const (
	// maxHeeded bounds such lines.
	maxHeeded = 3
	// maxHeedTerms is the most terms of a message that is looked at: a longer one says by itself what it is about.
	maxHeedTerms = 16
	// maxHeedTurns bounds the turns that are taken for one word, the newest, and maxHeedLooked those that are looked at for it.
	maxHeedTurns  = 8
	maxHeedLooked = 64
	// maxHeedSeen bounds those that are read for it, the newest.
	maxHeedSeen = 4096
	// maxHeedTold is the longest turn of the user's that is taken for such a statement, maxHeedMarked the longest fact of one with a mark, in
	// terms: in a long one the words belong to different things.
	maxHeedTold   = 24
	maxHeedMarked = 16
	// heedAge is how old a statement is that counts half as much as one of today.
	heedAge = 2 * profileAge
	// heedFloor is what is always left to count of a statement of the first kind: an allergy does not pass.
	heedFloor = 0.7
)

// heedKind says where a word of heed.txt counts.
type heedKind uint8

const (
	heedTold   heedKind = iota // wherever users tell it of themselves
	heedFact                   // in facts
	heedMarked                 // in facts with one of heedMarks
	heedShare                  // in facts that share a word with the request
)

type heedWord struct {
	stem  string
	of    text.Language
	kind  heedKind
	whole string // of a script without spaces: the word of whose pairs stem is one
}

type heedAsk struct {
	of    text.Language
	areas uint32 // a bit for each
}

// heedSign is a word of a script without spaces that is asked with.
type heedSign struct {
	sign  string
	areas uint32
}

// heedTable is heed.txt. Area 0 is of every request.
type heedTable struct {
	asks  map[string][]heedAsk // by stem
	signs []heedSign
	tells [][]heedWord    // by area
	said  [][]byte        // in lower case, what says nothing of a word in it: "food for thought"
	code  map[string]bool // stems of words that say that a message is about software
	work  uint32          // the areas that it may then be about
}

// heeds is read by New, as related is.
var heeds = sync.OnceValue(func() *heedTable { return readHeeds(heedText) })

var heedLanguages = map[string]text.Language{
	"en": text.English, "de": text.German, "fr": text.French, "es": text.Spanish, "it": text.Italian, "pt": text.Portuguese, "nl": text.Dutch,
	"ja": text.Unknown, "zh": text.Unknown,
}

func readHeeds(table string) *heedTable {
	h := &heedTable{asks: map[string][]heedAsk{}, code: map[string]bool{}, work: 1}
	kinds := map[byte]heedKind{'!': heedTold, '+': heedFact, '~': heedMarked, '&': heedShare}
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] == "#" {
			continue
		}
		if f[0] == ":" || f[0] == "::" {
			if f[0] == "::" {
				h.work |= 1 << len(h.tells)
			}
			h.tells = append(h.tells, nil)
			continue
		}
		area := len(h.tells) - 1
		of, sign := heedLanguages[f[0][:2]], f[0][2]
		for _, w := range f[1:] {
			s := text.Stem(of, strings.ToLower(w))
			if sign == '-' {
				h.said = append(h.said, []byte(strings.ReplaceAll(w, "_", " ")))
			} else if sign == '=' {
				h.code[s] = true
			} else if chars := []rune(w); of == text.Unknown && sign != '?' && len(chars) > 2 {
				h.tells[area] = append(h.tells[area], heedWord{string(chars[1:3]), of, kinds[sign], w})
			} else if sign != '?' {
				h.tells[area] = append(h.tells[area], heedWord{s, of, kinds[sign], ""})
			} else if of == text.Unknown {
				h.signs = append(h.signs, heedSign{w, 1 << area})
			} else if at := slices.IndexFunc(h.asks[s], func(a heedAsk) bool { return a.of == of }); at >= 0 {
				h.asks[s][at].areas |= 1 << area
			} else {
				h.asks[s] = append(h.asks[s], heedAsk{of, 1 << area})
			}
		}
	}
	return h
}

// heedMarks are words of what holds for good: what is not done, is always done, or hurts.
var heedMarks = text.WordSet(`not no never always without avoid avoids cannot can't don't doesn't won't isn't aren't can’t don’t doesn’t won’t prefer prefers hate hates hurt hurts bad worse pain injured broken weak stiff
nicht kein keine keinen keinem nie immer ohne vermeide lieber schmerzen kaputt ne pas jamais toujours sans mal évite nunca siempre sin duele dolor evito
non mai sempre senza male não sem dói`)

// heedHit is a turn that tells a word that must be heeded.
type heedHit struct {
	hit
	word uint32
}

// wanting follow "I" where something is asked for without a question.
var wanting = text.WordSet("need want would wish brauche möchte will suche necesito quiero busco voudrais veux cherche besoin vorrei voglio cerco preciso quero")

// maxShortAsk is the most terms of a question that asks for advice though it does not say so: "what's for dinner?"
const maxShortAsk = 3

// unspaced reports whether a message is likely in a script without spaces.
func (q *query) unspaced() bool {
	return q.language == text.Unknown && !text.IsASCII(string(q.lower))
}

// atMost reports whether a message has so many terms at most; of scripts without spaces, whose terms are characters and pairs, five times as many.
func (q *query) atMost(n int) bool {
	return len(q.terms) <= n || len(q.terms) <= 5*n && q.unspaced()
}

// requests reports whether a message asks for advice or work, rather than for what was said or done, or telling something.
func (q *query) requests() bool {
	if q.intent&wantsAdvice != 0 {
		return true
	}
	if q.language <= text.English && !q.asks && states(q.lower) {
		return false
	}
	if q.command {
		return true
	}
	if q.language <= text.English && looksBack(q.lower) {
		return false
	}
	if q.asks {
		intent := q.intent &^ fromSpeaker
		if begins(q.lower, "which ") { // "what", of a few
			intent &^= wantsName
		}
		return mayDo(q.lower) || intent == 0 && q.atMost(maxShortAsk)
	}
	first, rest := cutWord(q.lower)
	if len(first) == 0 {
		return false
	}
	if q.unspaced() {
		return true // no first word tells
	}
	if text.IsFunctionWord(string(first)) { // no imperative
		second, rest := cutWord(rest)
		third, _ := cutWord(rest)
		return wanting[string(second)] || wanting[string(third)]
	}
	return true
}

var mayDoWords = text.WordSet("can could may should shall must")

// mayDo reports whether a text asks what "I" or "we" can or should do.
func mayDo(lower []byte) bool {
	var before []byte
	for rest := lower; len(rest) > 0; {
		var w []byte
		if w, rest = cutWord(rest); (string(w) == "i" || string(w) == "we") && mayDoWords[string(before)] {
			return true
		}
		before = w
	}
	return false
}

// ofCode reports whether a message is about software: "add a menu component".
func (q *query) ofCode() bool {
	return bytes.Contains(q.lower, []byte("()")) || slices.ContainsFunc(q.terms, func(t queryTerm) bool { return !t.lent && heeds().code[t.stem] })
}

// beingWords are verbs of statements, relativeWords what may stand before them in a request: "something that is quick".
var (
	beingWords    = text.WordSet("is are was were has had")
	relativeWords = text.WordSet("that which who what where")
)

// states reports whether a text in lower case that asks nothing says how something is or was: "dinner was great".
func states(lower []byte) bool {
	before, rest := cutWord(lower)
	for range 2 {
		var w []byte
		if w, rest = cutWord(rest); beingWords[string(w)] && !relativeWords[string(before)] {
			return true
		}
		before = w
	}
	return false
}

// heedAreas are the areas that a message is about, a bit for each, 0 for none or where it asks for nothing.
func (q *query) heedAreas() (areas uint32) {
	if q.speaker != 0 || q.idle || !q.atMost(maxHeedTerms) {
		return 0
	}
	for _, t := range q.terms {
		if t.standing&ofArea != 0 && !t.lent {
			for _, a := range heeds().asks[t.stem] {
				if a.of == q.language || q.language == text.Unknown {
					areas |= a.areas
				}
			}
		}
	}
	if q.unspaced() {
		for _, s := range heeds().signs {
			if bytes.Contains(q.lower, []byte(s.sign)) {
				areas |= s.areas
			}
		}
	}
	if areas != 0 && !q.unspaced() {
		areas = q.asWords(areas)
	}
	if areas&^heeds().work != 0 && q.ofCode() {
		if areas &= heeds().work; areas == 0 {
			return 0
		}
	}
	if areas == 0 && q.intent&wantsAdvice == 0 && !mayDo(q.lower) || !q.requests() {
		return 0
	}
	return areas | 1
}

// asWords are those of areas of which a word stands by itself: neither in an identifier or the name of a file ("fix MealPlanner in menu.tsx") nor in a phrase
// that says nothing of it. A word that stands in neither counts, whatever its form.
func (q *query) asWords(areas uint32) (left uint32) {
	var own, names []byte
	for w := range strings.FieldsSeq(q.text) {
		if isIdentifier(w) {
			names = append(append(names, w...), ' ')
		} else {
			own = append(append(own, w...), ' ')
		}
	}
	own, names = bytes.ToLower(own), bytes.ToLower(names)
	for _, phrase := range heeds().said {
		if bytes.Contains(own, phrase) {
			own, names = bytes.ReplaceAll(own, phrase, nil), append(names, phrase...)
		}
	}
	if len(names) == 0 {
		return areas
	}
	for _, t := range q.terms {
		if root := []byte(t.stem[:max(len(t.stem)-1, min(len(t.stem), 3))]); t.standing&ofArea == 0 || t.lent || bytes.Contains(names, root) && !bytes.Contains(own, root) {
			continue
		}
		for _, a := range heeds().asks[t.stem] {
			if a.of == q.language || q.language == text.Unknown {
				left |= a.areas & areas
			}
		}
	}
	return left
}

// fileKinds end the names of files of code.
var fileKinds = text.WordSet("go py rs js ts jsx tsx vue svelte java kt swift rb php cs cpp cc c h hpp html css scss sql sh json yaml yml toml xml csv md txt lock")

// isIdentifier reports whether a word is how code names something: "flightSearch", "recipe_list", "menu.tsx", "`dinner`".
func isIdentifier(w string) bool {
	if w[0] == '`' {
		return true
	}
	w = strings.Trim(w, `"'(),.:;?!`)
	if dot := strings.LastIndexByte(w, '.'); dot > 0 && fileKinds[w[dot+1:]] {
		return true
	}
	for i := 1; i+1 < len(w); i++ {
		if w[i] == '_' || w[i-1] >= 'a' && w[i-1] <= 'z' && w[i] >= 'A' && w[i] <= 'Z' {
			return true
		}
	}
	return false
}

// heeded finds what a request must heed, what matters most first.
func (ix *index) heeded(q *query, f *filter, s *scratch) []heedHit {
	areas := q.heedAreas()
	if areas == 0 {
		return nil
	}
	found := s.heeded[:0]
	for area, words := range heeds().tells {
		if areas>>area&1 == 0 {
			continue
		}
		from := len(found)
		for _, w := range words {
			if w.of > text.English && ix.spoken[w.of] == 0 {
				continue
			}
			id, ok := ix.terms.find(w.stem)
			if !ok || ix.posts[id].df == 0 {
				continue
			}
			found = ix.heedWord(found, from, heedSought{id, w.kind, area == 0, w.whole}, q, f, s)
		}
	}
	slices.SortStableFunc(found, func(a, b heedHit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.turn, a.turn)) })
	s.heeded = found
	return found
}

// heedSought is a word that is looked for.
type heedSought struct {
	id   uint32
	kind heedKind
	kin  bool   // for heedShare words that may stand for the request's count, too
	of   string // the word that must stand there, if id is a part of it
}

// heedWord adds the turns that tell a word, or what it adds to those that are there.
func (ix *index) heedWord(found []heedHit, from int, w heedSought, q *query, f *filter, s *scratch) []heedHit {
	turns := s.entries[:0]
	for buf, now := ix.posts[w.id].buf, uint32(0); len(buf) > 0; {
		var tf frequency
		if buf, now, tf = next(buf, now); tf.tell() > 0 {
			if len(turns) == 2*maxHeedSeen {
				turns = turns[:copy(turns, turns[maxHeedSeen:])]
			}
			turns = append(turns, now-1)
		}
	}
	s.entries = turns[:0]
	taken, looked := 0, 0
	for i := len(turns) - 1; i >= max(0, len(turns)-maxHeedSeen) && taken < maxHeedTurns && looked < maxHeedLooked; i-- {
		n := int32(turns[i])
		t := &ix.turns[n]
		if w.kind != heedTold && !t.mayHold() || t.flags&(turnDead|turnResource) != 0 || !f.pass(n) {
			continue
		}
		looked++
		if at := slices.IndexFunc(found[from:], func(h heedHit) bool { return h.turn == n }); at >= 0 {
			found[from+at].score += 0.5
			taken++
			continue
		}
		if w.of != "" && !bytes.Contains(ix.lowerText(t.mem, s), []byte(w.of)) {
			continue
		}
		score, aged := 1.0, agedBy(f.now, t.time, heedAge)
		switch w.kind {
		case heedTold:
			aged = max(aged, heedFloor)
			if score += 2; t.flags&turnFact == 0 && (t.userLen > maxHeedTold || t.traits&text.FirstPerson == 0 && !ofOneself(ix.lowerText(t.mem, s))) {
				continue
			}
		case heedFact: // or what is none yet
			if t.flags&turnFact == 0 && t.traits&text.HasPreference == 0 && !hasWordOf(heedMarks, ix.lowerText(t.mem, s)) {
				continue
			}
		case heedMarked:
			if t.userLen > maxHeedMarked || !hasWordOf(heedMarks, ix.lowerText(t.mem, s)) {
				continue
			}
		case heedShare:
			if t.flags&turnFact == 0 && t.traits&text.HasPreference == 0 || !ix.sharesWord(n, q, w) {
				continue
			}
		}
		if t.flags&turnFact != 0 {
			score++
		}
		found = append(found, heedHit{hit{turn: n, score: score * aged}, w.id})
		taken++
	}
	return found
}

// mayHold reports whether a turn may say what holds for good: it is a fact, or in a few words the user's own.
func (t *turn) mayHold() bool {
	return t.flags&turnFact != 0 || t.traits&(text.HasPreference|text.FirstPerson) != 0 && t.userLen <= maxHeedTold
}

// lowerText is the text of passage i in lower case, until the next call.
func (ix *index) lowerText(i int32, s *scratch) []byte {
	s.text = ix.appendText(s.text[:0], i)
	return bytes.ToLower(s.text)
}

// hasWordOf reports whether one of these words stands in a text in lower case.
func hasWordOf(words map[string]bool, lower []byte) bool {
	for rest := lower; len(rest) > 0; {
		var w []byte
		if w, rest = cutWord(rest); words[string(w)] {
			return true
		}
	}
	return false
}

// sharesWord reports whether turn n holds a telling word of the query beside the one that was looked for.
func (ix *index) sharesWord(n int32, q *query, sought heedSought) bool {
	t := &ix.turns[n]
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		packed := ix.head(i).packed
		for _, t := range q.terms {
			if t.lent || t.standing&(isLight|ofRequest|ofArea) != 0 {
				continue
			}
			for _, w := range t.words {
				if w.id != sought.id && (sought.kin || w.how == "") && findTerm(packed, w.id) >= 0 {
					return true
				}
			}
		}
	}
	return false
}

// heed takes what must be heeded, before all else.
func (s *selection) heed(hits []heedHit) {
	most := min(maxHeeded, max(s.topK/2, 1)) // what the words find has a place, too
	for _, h := range hits {
		if len(s.taken) == most {
			return
		}
		t := &s.ix.turns[h.turn]
		for i := t.mem; i < t.mem+int32(t.count); i++ {
			if p := s.ix.head(i); !p.assistant && !(t.flags&turnFact == 0 && s.q.madeUp(s.ix.appendText(nil, i))) && findTerm(p.packed, h.word) >= 0 && s.filter.shows(s.ix, t, i) {
				if s.take(h.hit, i, 0) == "" {
					s.taken[len(s.taken)-1].heeded = true
				}
				break
			}
		}
	}
}
