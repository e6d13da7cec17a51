package query

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/remora-proxy/remora/text"
)

// "What should I cook tonight?" shares no word with "my son is allergic to
// peanuts", and yet nothing else matters as much. Such constraints are found by
// areas: a request about food is shown what the user said of allergies,
// whatever the other words. Questions and messages about the past get none.

//go:embed constraints.txt
var constraintsText string

// maxConstraintTerms is the maximum number of terms of a message that gets
// constraints. A longer one says itself what it is about.
const maxConstraintTerms = 16

// ConstraintKind says where a word of constraints.txt counts.
type ConstraintKind uint8

const (
	ConstraintTold   ConstraintKind = iota // wherever users say it of themselves
	ConstraintFact                         // in facts
	ConstraintMarked                       // in facts with a mark (HasConstraintMark)
	ConstraintShared                       // in facts that share a word with the request
	ConstraintStyle                        // in orders about how to answer or write (IsStyle)
)

// ConstraintWord is a word that a constraint may have.
type ConstraintWord struct {
	Stem     string
	Language text.Language
	Kind     ConstraintKind
	Whole    string // in a script without spaces: the word of which Stem is a pair
}

// areaWord says that a word of a language asks about areas, a bit for each.
type areaWord struct {
	language text.Language
	areas    uint32
}

// areaSign is such a word in a script without spaces.
type areaSign struct {
	sign  string
	areas uint32
}

// constraintTable is constraints.txt. Area 0 belongs to every request.
type constraintTable struct {
	asks    map[string][]areaWord // by stem
	signs   []areaSign
	words   [][]ConstraintWord // by area
	phrases [][]byte           // in lower case, in which a word of an area does not count: "food for thought"
	code    map[string]bool    // stems that mark a message as being about software
	work    uint32             // the areas that such a message may be about
}

var constraints = sync.OnceValue(func() *constraintTable { return readConstraints(constraintsText) })

// Constraints returns the words of constraints by area, which is their index.
// The caller must not change them.
func Constraints() [][]ConstraintWord { return constraints().words }

var constraintLanguages = map[string]text.Language{
	"en": text.English, "de": text.German, "fr": text.French, "es": text.Spanish, "it": text.Italian, "pt": text.Portuguese, "nl": text.Dutch,
	"ja": text.Unknown, "zh": text.Unknown, "ko": text.Unknown, "hi": text.Unknown, "ru": text.Russian, "ar": text.Arabic,
}

func readConstraints(table string) *constraintTable {
	h := &constraintTable{asks: map[string][]areaWord{}, code: map[string]bool{}, work: 1}
	kinds := map[byte]ConstraintKind{'!': ConstraintTold, '+': ConstraintFact, '~': ConstraintMarked, '&': ConstraintShared, '*': ConstraintStyle}
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] == "#" {
			continue
		}
		if f[0] == ":" || f[0] == "::" {
			if f[0] == "::" {
				h.work |= 1 << len(h.words)
			}
			h.words = append(h.words, nil)
			continue
		}
		area := len(h.words) - 1
		of, sign := constraintLanguages[f[0][:2]], f[0][2]
		for _, w := range f[1:] {
			if of == text.Unknown {
				w = strings.ReplaceAll(w, "_", " ")
			}
			s := text.Stem(of, strings.ToLower(w))
			if sign == '-' {
				h.phrases = append(h.phrases, []byte(strings.ReplaceAll(w, "_", " ")))
			} else if sign == '=' {
				h.code[s] = true
			} else if chars := []rune(w); of == text.Unknown && sign != '?' && len(chars) > 2 && text.Spaceless(chars[0]) {
				h.words[area] = append(h.words[area], ConstraintWord{string(chars[1:3]), of, kinds[sign], w})
			} else if sign != '?' {
				h.words[area] = append(h.words[area], ConstraintWord{s, of, kinds[sign], ""})
			} else if of == text.Unknown {
				h.signs = append(h.signs, areaSign{w, 1 << area})
			} else if at := slices.IndexFunc(h.asks[s], func(a areaWord) bool { return a.language == of }); at >= 0 {
				h.asks[s][at].areas |= 1 << area
			} else {
				h.asks[s] = append(h.asks[s], areaWord{of, 1 << area})
			}
		}
	}
	return h
}

// lastingWords are words of statements that hold permanently: what is not done,
// is always done, or hurts.
var lastingWords = text.WordSet(`not no never always without avoid avoids cannot can't don't doesn't won't isn't aren't can’t don’t doesn’t won’t prefer prefers hate hates hurt hurts bad worse pain injured broken weak stiff
nicht kein keine keinen keinem nie immer ohne vermeide lieber schmerzen kaputt ne pas jamais toujours sans mal évite nunca siempre sin duele dolor evito
non mai sempre senza male não sem dói niet geen nooit altijd zonder не нет никогда всегда без нельзя नहीं कभी हमेशा لا ليس أبدا دائما بدون`)

// IsLasting reports whether a text in lower case says something that holds
// permanently.
func IsLasting(lower []byte) bool { return hasWordOf(lastingWords, lower) }

// styleWords say how answers and texts are wanted.
var styleWords = text.WordSet(`short shorter brief briefly concise long bullet bullets sentences easy simple simply jargon plain formal informal exclamation emoji emojis british american spelling tone polite
kurz knapp einfach einfache einfachen fachwörter stichpunkten stichpunkte sätze sätzen förmlich duze sieze ausrufezeichen court courts courtes bref brève simple simples jargon tutoie vouvoie phrases
corto corta cortas cortos breve breves sencillo sencillas simples tutea exclamación brevi breve semplice semplici curtas curto curta simples kort korte eenvoudig коротко кратко просто проще
मुख़्तसर संक्षेप छोटे आसान مختصر باختصار قصير قصيرة بسيط بسيطة`)

// styleSigns are the same in scripts without spaces.
var styleSigns = strings.Fields("简短 简单 简洁 要点 不要超过 列出 短く 簡潔 簡単 箇条書き 敬語 짧게 간단 간결 쉽게 쉬운")

// IsStyle reports whether a text in lower case says how answers or texts are
// wanted.
func IsStyle(lower []byte) bool {
	for _, sign := range styleSigns {
		if bytes.Contains(lower, []byte(sign)) {
			return true
		}
	}
	return hasWordOf(styleWords, lower)
}

// requestVerbs follow "I" where something is asked for without a question.
var requestVerbs = text.WordSet("need want would wish brauche möchte will suche necesito quiero busco voudrais veux cherche besoin vorrei voglio cerco preciso quero")

var modalVerbs = text.WordSet("can could may should shall must")

// asksPermission reports whether a text asks what "I" or "we" can or should do.
func asksPermission(lower []byte) bool {
	var before []byte
	for rest := lower; len(rest) > 0; {
		var w []byte
		if w, rest = cutWord(rest); (string(w) == "i" || string(w) == "we") && modalVerbs[string(before)] {
			return true
		}
		before = w
	}
	return false
}

// isAboutCode reports whether a message is about software: "add a menu
// component".
func (q *Query) isAboutCode() bool {
	return bytes.Contains(q.Lower, []byte("()")) || slices.ContainsFunc(q.Terms, func(t Term) bool { return !t.Borrowed && constraints().code[t.Stem] })
}

// statementVerbs are verbs of statements; relativeWords may precede them in a
// request: "something that is quick".
var (
	statementVerbs = text.WordSet("is are was were has had")
	relativeWords  = text.WordSet("that which who what where")
)

// isStatement reports whether a text in lower case says how something is or
// was: "dinner was great".
func isStatement(lower []byte) bool {
	before, rest := cutWord(lower)
	for range 2 {
		var w []byte
		if w, rest = cutWord(rest); statementVerbs[string(w)] && !relativeWords[string(before)] {
			return true
		}
		before = w
	}
	return false
}

// ConstraintAreas returns the areas that a request is about, a bit for each, or
// 0 if it is about none or asks for nothing.
func (q *Query) ConstraintAreas() (areas uint32) {
	if !q.atMost(maxConstraintTerms) {
		return 0
	}
	for _, t := range q.Terms {
		if t.Role&OfArea != 0 && !t.Borrowed {
			for _, a := range constraints().asks[t.Stem] {
				if a.language == q.Language || q.Language == text.Unknown {
					areas |= a.areas
				}
			}
		}
	}
	if q.isUnspaced() {
		for _, s := range constraints().signs {
			if bytes.Contains(q.Lower, []byte(s.sign)) {
				areas |= s.areas
			}
		}
	}
	if areas != 0 && !q.isUnspaced() {
		areas = q.outsideNames(areas)
	}
	if areas&^constraints().work != 0 && q.isAboutCode() {
		if areas &= constraints().work; areas == 0 {
			return 0
		}
	}
	if areas == 0 && q.Intent&WantsAdvice == 0 && !asksPermission(q.Lower) || !q.isRequest() {
		return 0
	}
	return areas | 1
}

// outsideNames returns those of areas that have a word outside of identifiers
// and names of files ("fix MealPlanner in menu.tsx"), and outside of phrases in
// which the word says nothing.
func (q *Query) outsideNames(areas uint32) (left uint32) {
	var own, names []byte
	for w := range strings.FieldsSeq(q.Text) {
		if isIdentifier(w) {
			names = append(append(names, w...), ' ')
		} else {
			own = append(append(own, w...), ' ')
		}
	}
	own, names = bytes.ToLower(own), bytes.ToLower(names)
	for _, phrase := range constraints().phrases {
		if bytes.Contains(own, phrase) {
			own, names = bytes.ReplaceAll(own, phrase, nil), append(names, phrase...)
		}
	}
	if len(names) == 0 {
		return areas
	}
	for _, t := range q.Terms {
		if root := []byte(t.Stem[:max(len(t.Stem)-1, min(len(t.Stem), 3))]); t.Role&OfArea == 0 || t.Borrowed || bytes.Contains(names, root) && !bytes.Contains(own, root) {
			continue
		}
		for _, a := range constraints().asks[t.Stem] {
			if a.language == q.Language || q.Language == text.Unknown {
				left |= a.areas & areas
			}
		}
	}
	return left
}

// codeExtensions are the extensions of files of code.
var codeExtensions = text.WordSet("go py rs js ts jsx tsx vue svelte java kt swift rb php cs cpp cc c h hpp html css scss sql sh json yaml yml toml xml csv md txt lock")

// isIdentifier reports whether a word is a name in code: "flightSearch",
// "recipe_list", "menu.tsx", "`dinner`".
func isIdentifier(w string) bool {
	if w[0] == '`' {
		return true
	}
	w = strings.Trim(w, `"'(),.:;?!`)
	if dot := strings.LastIndexByte(w, '.'); dot > 0 && codeExtensions[w[dot+1:]] {
		return true
	}
	for i := 1; i+1 < len(w); i++ {
		if w[i] == '_' || w[i-1] >= 'a' && w[i-1] <= 'z' && w[i] >= 'A' && w[i] <= 'Z' {
			return true
		}
	}
	return false
}
