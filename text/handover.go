package text

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:embed handover.txt
var handoverText string

// Handover is what a word has to do with a text that somebody hands over to be
// worked on, or that somebody else wrote. Each value is a section of
// handover.txt.
type Handover uint16

// The sections.
const (
	HandoverWork    Handover = 1 << iota // what is done to texts alone: translate
	HandoverEdit                         // what is done to texts and other things: improve
	HandoverCreate                       // makes a text: write
	HandoverKind                         // the name of a text: email
	HandoverQuality                      // what texts have: grammar
	HandoverSound                        // sounds
	HandoverPointer                      // this
	HandoverAhead                        // following
	HandoverBack                         // above
	HandoverSays                         // wrote
	HandoverGot                          // received
	HandoverOwn                          // remember: what follows is the speaker's own
)

var handoverSections = map[string]Handover{
	"work": HandoverWork, "edit": HandoverEdit, "create": HandoverCreate, "kind": HandoverKind, "quality": HandoverQuality, "sound": HandoverSound, "pointer": HandoverPointer,
	"ahead": HandoverAhead, "back": HandoverBack, "says": HandoverSays, "got": HandoverGot, "own": HandoverOwn,
}

// Has reports whether h has any of these.
func (h Handover) Has(any Handover) bool { return h&any != 0 }

// handoverBook is handover.txt.
type handoverBook struct {
	words  map[string]Handover // folded
	begins map[string]Handover // beginnings of words
	parts  []handoverPart      // found anywhere
}

type handoverPart struct {
	text string
	is   Handover
}

// minBeginning is the shortest beginning of a word in handover.txt, in bytes.
const minBeginning = 3

var handover = sync.OnceValue(func() *handoverBook {
	book := &handoverBook{words: map[string]Handover{}, begins: map[string]Handover{}}
	var is Handover
	for line := range strings.Lines(handoverText) {
		line = strings.TrimSpace(line)
		switch {
		case line == "", line[0] == '#':
		case line[0] == ':':
			is = handoverSections[line[1:]]
		case strings.Contains(line, "|"):
			for part := range strings.SplitSeq(line, "|") {
				book.parts = append(book.parts, handoverPart{part, is})
			}
		default:
			for w := range strings.FieldsSeq(line) {
				r, _ := utf8.DecodeRuneInString(w)
				switch beginning, cut := strings.CutSuffix(w, "*"); {
				case r >= utf8.RuneSelf && !unicode.Is(unicode.Cyrillic, r):
					book.parts = append(book.parts, handoverPart{strings.ReplaceAll(w, "_", " "), is})
				case cut:
					book.begins[beginning] |= is
				default:
					book.words[w] |= is
				}
			}
		}
	}
	return book
})

// HandoverOf returns the classes of a word, which is folded.
func HandoverOf(folded string) Handover {
	book := handover()
	is := book.words[folded]
	for n := minBeginning; n <= len(folded); n++ {
		is |= book.begins[folded[:n]]
	}
	return is
}

// HandoverIn returns the classes of phrases, and of words in scripts that
// don't inflect at the end or don't separate words, in a text in lower case.
func HandoverIn(lower string) (is Handover) {
	ascii := IsASCII(lower)
	for _, p := range handover().parts {
		if is&p.is == 0 && (!ascii || p.text[0] < utf8.RuneSelf) && strings.Contains(lower, p.text) {
			is |= p.is
		}
	}
	return is
}

// NamesText reports whether a message names a text, or work on one: "what did
// the email say?", "translate ...".
func NamesText(message string) bool {
	const names = HandoverKind | HandoverWork
	lower := strings.ToLower(message)
	for w := range strings.FieldsFuncSeq(lower, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }) {
		if HandoverOf(string(AppendFolded(nil, w))).Has(names) {
			return true
		}
	}
	return HandoverIn(lower).Has(names)
}
