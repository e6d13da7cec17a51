package text

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

// Cue tells what a word says about whether its statement changes what was said
// before. The highest byte is a number: of a month, a weekday (Monday is 1) or
// a small count.
type Cue uint32

// The kinds of cues, in the order of cueNames.
const (
	CueChange  Cue = 1 << iota // it has become different: "moved", "now"
	CueFresh                   // it may have become different: "new", "later"
	CueEnd                     // it is over: "quit", "instead of"
	CueInstead                 // the same of what follows: "instead of"
	CueLeave                   // the same of a name: "left Google", not "left the keys"
	CueMore                    // ends what is negated near it: "no longer"
	CueNot                     // negates
	CuePast                    // about the past: "used to"
	CueMaybe                   // not meant, or not yet
	CueAlso                    // adds to what was said
	CueSelf                    // the speaker
	CueKin                     // a person by a relation
	CueAt                      // may precede a value: "to Friday"
	CueHome                    // where somebody lives
	CueWork                    // where somebody works
	CueAge                     // years of age
	CueTurned                  // became an age
	CueName                    // what somebody is called
	CueSingle                  // without a partner
	CuePartner                 // with one
	CueApart                   // no longer with one
	CueVeg                     // eats no meat
	CueMeat                    // meat
	CueEat                     // eats

	cueShift  = 24
	cueMonths = 1 << 5
	cueDays   = 2 << 5
	cueCounts = 3 << 5
)

// mayChange are the cues of statements that may change earlier ones.
const mayChange = CueChange | CueFresh | CueEnd | CueInstead | CueLeave | CueTurned | CueName | CueSingle | CuePartner | CueApart | CueVeg | CueMeat

// statesClass are the cues of classes of which one statement holds at a time.
const statesClass = CueHome | CueWork | CueAge | CueTurned | CueName | CueSingle | CuePartner | CueApart | CueVeg | CueMeat

var cueNames = strings.Fields("change fresh end instead leave more not past maybe also self kin at home work age turned name single partner apart veg meat eat")

// Month returns the number of the month that the word names, or 0.
func (c Cue) Month() int { return c.number(cueMonths) }

// Weekday returns the number of the weekday that the word names, or 0.
func (c Cue) Weekday() int { return c.number(cueDays) }

// Count returns the number that the word is, or 0.
func (c Cue) Count() int { return c.number(cueCounts) }

func (c Cue) number(kind Cue) int {
	if n := c >> cueShift; n&^31 == kind {
		return int(n & 31)
	}
	return 0
}

//go:embed cues.txt
var cuesText string

// cueTable is what cues.txt holds.
type cueTable struct {
	exact    map[string]Cue
	of       [NumLanguages]map[string]Cue // words that count in one language only
	prefixes map[string][]cueEntry        // by their first three letters
	runs     map[rune][]cueEntry          // in scripts without spaces, by their first character
	phrases  map[string]*[]cuePhraseEntry // by their first word
}

type cueEntry struct {
	word string
	cue  Cue
}

// cuePhraseEntry is a phrase without its first word; "" stands for up to
// maxCueGap words.
type cuePhraseEntry struct {
	words []string
	cue   Cue
}

const maxCueGap = 3

var languageCodes = map[string]Language{
	"en": English, "de": German, "fr": French, "es": Spanish, "it": Italian, "pt": Portuguese, "nl": Dutch, "sv": Swedish, "da": Danish,
	"nb": Norwegian, "fi": Finnish, "ru": Russian, "tr": Turkish, "hu": Hungarian, "ro": Romanian, "ar": Arabic,
}

var cues = sync.OnceValue(func() *cueTable {
	t := &cueTable{exact: map[string]Cue{}, prefixes: map[string][]cueEntry{}, runs: map[rune][]cueEntry{}, phrases: map[string]*[]cuePhraseEntry{}}
	for line := range strings.Lines(cuesText) {
		kind, list, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(kind, "#") {
			continue
		}
		kind, code, _ := strings.Cut(kind, "@")
		words := t.exact
		if l := languageCodes[code]; l != 0 {
			if words = t.of[l]; words == nil {
				words = map[string]Cue{}
				t.of[l] = words
			}
		}
		cue := cueOfKind(kind)
		for w := range strings.FieldsSeq(list) {
			t.add(words, string(AppendFolded(nil, w)), cue)
		}
	}
	return t
})

// cueOfKind returns the cue of a kind of cues.txt: a name, or "month3".
func cueOfKind(kind string) Cue {
	for i, name := range cueNames {
		if kind == name {
			return 1 << i
		}
	}
	name := strings.TrimRight(kind, "0123456789")
	n, _ := strconv.Atoi(kind[len(name):])
	switch name {
	case "month":
		return Cue(cueMonths+n) << cueShift
	case "weekday":
		return Cue(cueDays+n) << cueShift
	case "number":
		return Cue(cueCounts+n) << cueShift
	}
	return 0
}

func (t *cueTable) add(words map[string]Cue, w string, cue Cue) {
	first, _ := utf8.DecodeRuneInString(w)
	switch {
	case Spaceless(first):
		t.runs[first] = append(t.runs[first], cueEntry{w, cue})
	case strings.HasSuffix(w, "*"):
		w = strings.TrimSuffix(w, "*")
		t.prefixes[firstLetters(w)] = append(t.prefixes[firstLetters(w)], cueEntry{w, cue})
	case strings.Contains(w, "_"):
		parts := strings.Split(w, "_")
		list := t.phrases[parts[0]]
		if list == nil {
			list = new([]cuePhraseEntry)
			t.phrases[parts[0]] = list
		}
		*list = append(*list, cuePhraseEntry{parts[1:], cue})
	case cue>>cueShift == 0:
		words[w] |= cue
	case words[w]>>cueShift == 0: // a word has one number
		words[w] |= cue
	}
}

// firstLetters returns the first three letters of a word that has them.
func firstLetters(w string) string {
	n := 0
	for i := range w {
		if n == 3 {
			return w[:i]
		}
		n++
	}
	return w
}

// cueOf returns the cues of a word that is no part of a script without spaces.
func cueOf(l Language, w string) (Cue, *[]cuePhraseEntry) {
	t := cues()
	var space [MaxWord]byte
	folded := AppendFolded(space[:0], w)
	cue := t.cue(l, string(folded))
	for i, c := range folded {
		if c != '\'' {
			continue
		}
		cue |= t.cue(l, string(folded[:i]))
		if i+1 < len(folded) && i <= 2 { // l'appuntamento, j'habite
			cue |= t.cue(l, string(folded[i+1:]))
		}
		break
	}
	return cue, t.phrases[string(folded)]
}

func (t *cueTable) cue(l Language, w string) (cue Cue) {
	cue = t.exact[w]
	if own, ok := t.of[l][w]; ok {
		cue |= own
	}
	for _, p := range t.prefixes[firstLetters(w)] {
		if strings.HasPrefix(w, p.word) {
			cue |= p.cue
		}
	}
	if first, _ := utf8.DecodeRuneInString(w); unicode.Is(unicode.Arabic, first) { // "and", "so", "to" and "the" are written with the word
		for _, prefix := range [...]string{"و", "ف", "ل", "ب", "ال", "وال", "لل", "بال"} {
			if rest, ok := strings.CutPrefix(w, prefix); ok && len(rest) > 4 {
				cue = joinCues(cue, t.exact[rest])
			}
		}
	}
	return cue
}

func joinCues(a, b Cue) Cue {
	if a>>cueShift != 0 {
		b &= 1<<cueShift - 1
	}
	return a | b
}

// cueOfRun returns the cues that begin where s, which is of a script without
// spaces, begins.
func cueOfRun(s string) (cue Cue) {
	first, _ := utf8.DecodeRuneInString(s)
	for _, p := range cues().runs[first] {
		if strings.HasPrefix(s, p.word) {
			cue = joinCues(cue, p.cue)
		}
	}
	return cue
}

// Token is a word of a text, a character of a script without spaces, or a sign
// that ends a clause.
type Token struct {
	Kind  TokenKind
	Cue   Cue
	From  int32 // in the text
	To    int32
	Terms []string // as Analyze finds them; of a character the pair that it ends
}

// TokenKind is what a Token is.
type TokenKind uint8

// The kinds of tokens.
const (
	WordToken TokenKind = iota
	CharacterToken
	ClauseToken   // a comma, or another sign inside a sentence
	SentenceToken // the end of a sentence
	QuestionToken // the end of a question
)

// Tokens appends the words and signs of s to out, with the cues of words and of
// phrases; a phrase's are those of its first word. It returns the text in which
// they are, which is s unless NFKC changes it, and its language.
func (a *Analyzer) Tokens(s string, usual Language, out []Token) (string, Language, []Token) {
	if len(s) > MaxText {
		s = strings.ToValidUTF8(s[:MaxText], "")
	}
	ascii := IsASCII(s)
	if !ascii && !norm.NFKC.IsNormalString(s) {
		s = norm.NFKC.String(s)
		ascii = IsASCII(s)
	}
	l := detect(s, ascii, usual)
	if l == Unknown {
		l = usual
	}
	if ascii {
		for at, end := 0, 0; at < len(s); at = end {
			end = at + asciiWord(s[at:])
			if asciiClasses[s[at]] != classBlank {
				out = a.appendToken(out, s, at, end, l)
			}
		}
	} else {
		for it := words.FromString(s); it.Next(); {
			out = a.appendToken(out, s, it.Start(), it.End(), l)
		}
	}
	return s, l, out
}

func (a *Analyzer) appendToken(out []Token, s string, from, end int, l Language) []Token {
	w := s[from:end]
	first, n := utf8.DecodeRuneInString(w)
	t := Token{From: int32(from), To: int32(end)}
	switch {
	case first == '?' || first == '؟' || first == '？':
		t.Kind = QuestionToken
	case first == '.' && len(w) == n || first == '!' || first == '\n' || first == '\r' || first == '。' || first == '！':
		t.Kind = SentenceToken
	case first == ',' || first == ';' || first == ':' || first == '，' || first == '、' || first == '；' || first == '：' || first == '(' || first == ')' || first == '،':
		t.Kind = ClauseToken
	case len(w) > MaxWord || !unicode.IsLetter(first) && !unicode.IsNumber(first):
		return out
	case Spaceless(first):
		for at := from; at < end; {
			_, n := utf8.DecodeRuneInString(s[at:end])
			c := Token{Kind: CharacterToken, From: int32(at), To: int32(at + n), Cue: cueOfRun(s[at:])}
			if k := len(out) - 1; k >= 0 && out[k].Kind == CharacterToken && int(out[k].To) == at {
				if pair := s[out[k].From : at+n]; !particles[pair] && !hinges(s[out[k].From:at], s[at:at+n]) {
					c.Terms = []string{pair}
				}
			}
			out = append(out, c)
			at += n
		}
		return out
	default:
		known := a.word(l, w)
		t.Cue, t.Terms = known.cue, known.terms
		if known.phrases != nil {
			t.Cue = joinCues(t.Cue, cueOfPhrases(*known.phrases, s[end:]))
		}
	}
	return append(out, t)
}

// cueOfPhrases returns the cues of the phrases that rest continues.
func cueOfPhrases(phrases []cuePhraseEntry, rest string) (cue Cue) {
	for i := range phrases {
		if p := &phrases[i]; continuesPhrase(rest, p.words) {
			cue = joinCues(cue, p.cue)
		}
	}
	return cue
}

// continuesPhrase reports whether s begins with the rest of a phrase, in the
// same clause.
func continuesPhrase(s string, rest []string) bool {
	gap := 0
	for _, w := range rest {
		if w == "" {
			gap, s = maxCueGap, strings.TrimPrefix(s, ",") // "Sorry, I said ..."
			continue
		}
		for {
			var said string
			if said, s = wordAfterBlank(s); said == "" {
				return false
			}
			if equalsFolded(said, w) {
				break
			}
			if gap--; gap < 0 {
				return false
			}
		}
		gap = 0
	}
	return true
}

// wordAfterBlank returns the word that follows a blank and what follows it, or
// "" if something else comes first.
func wordAfterBlank(s string) (w, rest string) {
	if s == "" || s[0] != ' ' {
		return "", ""
	}
	for s = s[1:]; s != "" && s[0] == ' '; {
		s = s[1:]
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < utf8.RuneSelf && asciiClasses[c] > classJoiner && c != '\'' {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// equalsFolded reports whether a word is equal to a folded one.
func equalsFolded(w, folded string) bool {
	var space [MaxWord]byte
	if len(w) > len(space) {
		return false
	}
	if IsASCII(w) {
		if len(w) != len(folded) {
			return false
		}
		for i := range len(w) {
			if lower(w[i]) != folded[i] {
				return false
			}
		}
		return true
	}
	return string(AppendFolded(space[:0], w)) == folded
}
