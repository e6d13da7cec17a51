package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Language decides how words are stemmed and which are stop words. Its values
// are stored with indexes.
type Language uint8

const (
	Unknown Language = iota
	English
	German
	French
	Spanish
	Italian
	Portuguese
	Dutch
	Swedish
	Danish
	Norwegian
	Finnish
	Russian
	Turkish
	Hungarian
	Romanian
	Arabic
	NumLanguages // the number of languages
)

// detectWords is how many words of a text are read to detect its language.
const detectWords = 64

// detect returns the language with the most function words among the first
// words of a text, or Unknown if there are none. Of several with as many it
// prefers the usual language, then English.
func detect(text string, ascii bool, usual Language) Language {
	if usual <= English && ascii && plainlyEnglish(text) {
		return English
	}
	var hits [NumLanguages]int
	for range detectWords {
		var word string
		if word, text = nextWord(text); word == "" {
			break
		}
		for _, l := range revealed(word) {
			hits[l]++
		}
	}
	best := English
	for l := German; l < NumLanguages; l++ {
		if hits[l] > hits[best] || hits[l] == hits[best] && l == usual {
			best = l
		}
	}
	if hits[best] == 0 {
		return Unknown
	}
	return best
}

// nextWord returns the first run of letters and apostrophes and what follows
// it, or "" if there is none.
func nextWord(text string) (word, rest string) {
	from := -1
	for i := 0; i < len(text); {
		c, n := rune(text[i]), 1
		letter := c == '\'' || asciiClasses[text[i]] == classLetter
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRuneInString(text[i:])
			letter = c == '’' || unicode.IsLetter(c)
		}
		switch {
		case letter && from < 0:
			from = i
		case !letter && from >= 0:
			return text[from:i], text[i:]
		}
		i += n
	}
	if from < 0 {
		return "", ""
	}
	return text[from:], ""
}

// revealed returns the languages that a word, in whatever case, speaks for.
func revealed(w string) []Language {
	var lower [16]byte
	if len(w) > len(lower) {
		return languagesOf[strings.ToLower(w)]
	}
	for i := range len(w) {
		c := w[i]
		if c >= utf8.RuneSelf {
			return languagesOf[strings.ToLower(w)]
		}
		if c != '\'' {
			c |= 0x20
		}
		lower[i] = c
	}
	return languagesOf[string(lower[:len(w)])]
}

// plainlyEnglish reports whether one of the first words of an ASCII text is
// frequent in English and a word of no other language. It spares most English
// texts the count.
func plainlyEnglish(text string) bool {
	for i, seen := 0, 0; i < len(text) && seen < detectWords; i++ {
		from := i
		for i < len(text) && asciiClasses[text[i]] == classLetter {
			i++
		}
		if i == from {
			continue
		}
		seen++
		var lower [len("should")]byte
		if n := i - from; n <= len(lower) {
			for k := range n {
				lower[k] = text[from+k] | 0x20
			}
			if onlyEnglish[string(lower[:n])] {
				return true
			}
		}
	}
	return false
}

// onlyEnglish holds words for plainlyEnglish, none longer than "should".
var onlyEnglish = WordSet(`the and are what when where who how why did does my you your with this that they from about which can could would should
were been`)
