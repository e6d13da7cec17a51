package persist

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is one word of a text: as it was written, folded for comparison, and where it stands.
type word struct {
	raw, folded string
	start, end  int  // bytes of the text
	clause      bool // first of a clause: begins the text, or follows a sign or a conjunction
}

// maxWord is the longest word that is read, in bytes; longer ones are data.
const maxWord = 48

// words reads text. Contractions come apart ("I'm" is "i am", "j'ai" is "je ai"), so that patterns need one form only;
// both parts then share a place.
func words(text string) []word {
	out := make([]word, 0, 1+len(text)/5)
	clause := true
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			switch r {
			case ',', ';', ':', '.', '!', '?', '(', ')', '"', '\n', '—', '–', '„', '“', '”', '«', '»', '¡', '¿', '…':
				clause = true
			case '-':
				clause = clause || i+n < len(text) && text[i+n] == ' '
			}
			i += n
			continue
		}
		j := i + n
		for j < len(text) {
			r, n := utf8.DecodeRuneInString(text[j:])
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) && !joins(text, j, r, n) {
				break
			}
			j += n
		}
		raw := text[i:j]
		if len(raw) <= maxWord {
			first := len(out)
			out = appendWord(out, raw, i, j)
			for k := first; k < len(out); k++ {
				out[k].clause = clause && k == first
			}
			clause = lexicon.conjunctions[out[len(out)-1].folded]
		}
		i = j
	}
	return out
}

// joins says whether a sign holds a word together: don't, left-handed, 2.5, a_b.
func joins(text string, at int, r rune, n int) bool {
	if r != '\'' && r != '’' && r != '-' && r != '.' && r != '_' && r != ',' {
		return false
	}
	if at+n >= len(text) {
		return false
	}
	after, _ := utf8.DecodeRuneInString(text[at+n:])
	if r == '.' || r == ',' {
		before := text[at-1]
		return before >= '0' && before <= '9' && after >= '0' && after <= '9'
	}
	return unicode.IsLetter(after) || unicode.IsDigit(after)
}

func appendWord(out []word, raw string, start, end int) []word {
	f := fold(raw)
	if at := strings.IndexByte(f, '\''); at > 0 {
		if parts, ok := lexicon.contractions[f]; ok {
			for _, p := range parts {
				out = append(out, word{raw: raw, folded: p, start: start, end: end})
			}
			return out
		}
		if full, ok := lexicon.elisions[f[:at]]; ok && at+1 < len(f) {
			out = append(out, word{raw: raw, folded: full, start: start, end: end})
			return append(out, word{raw: raw, folded: f[at+1:], start: start, end: end})
		}
		if strings.HasSuffix(f, "'s") {
			return append(out, word{raw: raw, folded: f[:at], start: start, end: end})
		}
	}
	if parts, ok := lexicon.contractions[f]; ok {
		for _, p := range parts {
			out = append(out, word{raw: raw, folded: p, start: start, end: end})
		}
		return out
	}
	return append(out, word{raw: raw, folded: f, start: start, end: end})
}

// fold writes a word in small letters without accents, for people leave them out; ß is ss.
func fold(s string) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		r = unicode.ToLower(r)
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case strings.ContainsRune("áàâäãå", r):
			b.WriteByte('a')
		case strings.ContainsRune("éèêë", r):
			b.WriteByte('e')
		case strings.ContainsRune("íìîï", r):
			b.WriteByte('i')
		case strings.ContainsRune("óòôöõ", r):
			b.WriteByte('o')
		case strings.ContainsRune("úùûü", r):
			b.WriteByte('u')
		case r == 'ç':
			b.WriteByte('c')
		case r == 'ñ':
			b.WriteByte('n')
		case r == 'ß':
			b.WriteString("ss")
		case r == 'œ':
			b.WriteString("oe")
		case r == '’':
			b.WriteByte('\'')
		case unicode.Is(unicode.Mn, r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// sentences cuts text into sentences. Lines are borders too. The parts keep their end sign and lose the space around.
func sentences(text string) []string {
	var out []string
	start := 0
	cut := func(end int) {
		if s := strings.TrimSpace(text[start:end]); s != "" {
			out = append(out, s)
		}
		start = end
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		switch r {
		case '\n', '\r', '。', '！', '？', '…':
			cut(i)
		case '.', '!', '?':
			for i < len(text) && strings.IndexByte(`.!?"')]`, text[i]) >= 0 {
				i++
			}
			if i < len(text) && text[i] != ' ' && text[i] != '\n' && text[i] != '\t' {
				continue
			}
			if r != '.' || !abbreviates(text[start:i], text[i:]) {
				cut(i)
			}
		}
	}
	cut(len(text))
	return out
}

// abbreviates says whether the dot at the end of s, before rest, is not the end of a sentence.
func abbreviates(s, rest string) bool {
	s = strings.TrimSuffix(s, ".")
	at := strings.LastIndexAny(s, " \t(")
	last := s[at+1:]
	switch {
	case last == "":
		return false
	case len(last) == 1 && unicode.IsUpper(rune(last[0])) && at >= 0:
		return last != "I"
	case strings.Trim(last, "0123456789") == "": // 3. März; 1. begins a list's item
		next, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
		return len(last) <= 2 && (at < 0 || monthOf[strings.TrimRight(fold(next), ".,;")] > 0)
	}
	return lexicon.abbreviations[fold(last)]
}
