package extract

import (
	"encoding/base64"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hiddenTags reports whether text holds tag characters, which people do not see
// and models read. Flags of regions have some, too, after a black flag.
func hiddenTags(text string) bool {
	const tagPlane = "\xf3\xa0" // first bytes of U+E0000 to U+E0FFF
	i := strings.Index(text, tagPlane)
	if i < 0 {
		return false
	}
	tags, flag := 0, false
	for _, r := range text[max(0, i-4):] {
		switch {
		case r == 0x1F3F4:
			flag = true
		case r >= 0xE0020 && r <= 0xE007F:
			if tags++; tags >= 4 && !flag || tags > 8 {
				return true
			}
		default:
			flag, tags = false, 0
		}
	}
	return false
}

// lookalikes are letters of other scripts that pass for Latin ones.
var lookalikes = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ѕ': 's', 'ј': 'j', 'ԁ': 'd', 'һ': 'h', 'ո': 'n', 'А': 'A', 'В': 'B', 'Е': 'E', 'К': 'K',
	'М': 'M', 'Н': 'H', 'О': 'O', 'Р': 'P', 'С': 'C', 'Т': 'T', 'Х': 'X', 'І': 'I', 'ο': 'o', 'α': 'a', 'ν': 'v', 'ι': 'i', 'Ι': 'I', 'Ο': 'O',
}

// plain removes what hides words: zero-width characters, full-width letters,
// letters of other scripts in Latin words, and spaces between all letters.
// Other text is returned as it is.
func plain(text string) string {
	if !isASCII(text) && strings.IndexFunc(text, disguised) >= 0 {
		text = undisguise(text)
	}
	return unspaced(text)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func disguised(r rune) bool {
	switch {
	case r < 0xA0:
		return false
	case r >= 0x370 && r < 0x590: // Greek, Cyrillic, Armenian
		return lookalikes[r] != 0
	case r == 0xAD, r >= 0x180E && r < 0x2070, r >= 0xFEFF && r < 0xFF5F, r >= 0xE0000: // few are Cf, and most of them here
		return r != 0x200D && unicode.Is(unicode.Cf, r) || r >= 0xFF01 && r <= 0xFF5E
	}
	return false
}

func undisguise(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for from := 0; from < len(text); { // word by word
		to, latin := from, false
		for to < len(text) {
			r, n := utf8.DecodeRuneInString(text[to:])
			if to > from && (r == ' ' || r == '\n') {
				break
			}
			latin = latin || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
			to += n
		}
		for _, r := range text[from:to] {
			switch {
			case r >= 0xFF01 && r <= 0xFF5E:
				b.WriteRune(r - 0xFEE0)
			case latin && lookalikes[r] != 0:
				b.WriteRune(lookalikes[r])
			case unicode.Is(unicode.Cf, r):
			default:
				b.WriteRune(r)
			}
		}
		from = to
	}
	return b.String()
}

// spacedLetters is the number of single letters in a row from which they are
// taken for a word that was pulled apart.
const spacedLetters = 8

// unspaced joins runs of single letters; two spaces or more separate words in
// them.
func unspaced(text string) string {
	var b strings.Builder
	kept := 0
	for i := 0; i+1 < len(text); i++ {
		if !singleLetter(text, i) {
			continue
		}
		end, letters := i, 0
		between := byte(0) // the sign between the letters
		var row []byte
		for at := i; singleLetter(text, at); {
			row, end = append(row, text[at]), at+1
			letters++
			next := end
			for next < len(text) && (text[next] == ' ' || text[next] == '.' || text[next] == '-' || text[next] == '_') {
				next++
			}
			if next == end {
				break
			}
			if between == 0 {
				between = text[end]
			}
			if next > end+1 || text[end] == ' ' && between != ' ' {
				row = append(row, ' ')
			}
			at = next
		}
		if letters >= spacedLetters {
			b.WriteString(text[kept:i])
			b.Write(row)
			kept = end
		}
		i = max(i, end-1)
	}
	if kept == 0 {
		return text
	}
	b.WriteString(text[kept:])
	return b.String()
}

// singleLetter reports whether the letter at text[i] is a word.
func singleLetter(text string, i int) bool {
	letter := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z' || text[i] >= utf8.RuneSelf)
	}
	return letter(i) && text[i] < utf8.RuneSelf && !letter(i-1) && !letter(i+1)
}

// Limits of encoded text that is decoded. Shorter runs are words, longer ones
// are not stored.
const (
	minEncoded     = 32
	maxEncodedRows = 16 // in a text
)

// decoded calls found for each run of base64 that decodes to text, until it
// returns true.
func decoded(text string, found func(string) bool) bool {
	rows := 0
	for from := 0; from < len(text) && rows < maxEncodedRows; {
		to := from
		for to < len(text) && (text[to]|0x20 >= 'a' && text[to]|0x20 <= 'z' || text[to] >= '0' && text[to] <= '9' || text[to] == '+' || text[to] == '/' || text[to] == '-' || text[to] == '_') {
			to++
		}
		if to-from >= minEncoded {
			rows++
			row := strings.NewReplacer("-", "+", "_", "/").Replace(text[from:to])
			if b, err := base64.RawStdEncoding.DecodeString(row); err == nil && readable(b) && found(string(b)) {
				return true
			}
		}
		from = to + 1
	}
	return false
}

func readable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}
