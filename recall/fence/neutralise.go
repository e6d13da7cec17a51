package fence

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Neutralise returns text as one line of a block, of at most limit bytes:
//
//   - line ends of every kind become a space, and so does any other run of
//     white space;
//   - terminal escapes, control characters, zero-width and bidirectional
//     controls, variation selectors and Unicode tag characters are removed;
//   - the fence's name in any disguise (case, letters of another script, full
//     width, separators inside) loses its hyphen and its angle brackets;
//   - special tokens of chat templates (<|im_start|>, [TOOL_CALLS], <<SYS>>,
//     </s>, ...), which are known by their shape, lose their brackets, and lines
//     of a transcript ("Human: ...") their colon.
//
// HTML entities are ordinary text and stay as they are.
func Neutralise(text string, limit int) string { return neutralised(text, limit, nil) }

// neutralised is Neutralise with Options.Placeholder.
func neutralised(text string, limit int, placeholder func(string) bool) string {
	if len(text) <= limit && isPlain(text) {
		return text
	}
	return neutralise(text, limit, placeholder)
}

// isPlain reports whether neutralise would return text as it is, and may
// wrongly deny it. Most lines are plain, and neutralise takes many times as
// long.
func isPlain(text string) bool {
	last := byte(' ') // before the text, so that a blank at its start is one too many
	for i := range len(text) {
		c := text[i]
		if !plainBytes[c] || c == ' ' && last == ' ' {
			return false
		}
		last = c
	}
	return last != ' ' && !mayHoldName(text) && defuseRoleLine(text) == text
}

// plainBytes are the bytes that neutralise leaves as they are, wherever they
// stand.
var plainBytes = func() (plain [256]bool) {
	for c := byte(' '); c <= '~'; c++ {
		plain[c] = c != '<' && c != '[' && c != '|'
	}
	return plain
}()

func neutralise(text string, limit int, placeholder func(string) bool) string {
	lines := visibleLines(text, limit)
	for i, l := range lines {
		lines[i] = defuseRoleLine(l)
	}
	s := strings.Join(lines, " ")
	s = defuseTokens(s, placeholder)
	s = defuseName(s)
	return cut(strings.TrimSpace(s), limit)
}

// visibleLines splits text at line ends and drops what a reader can't see. It
// reads no further than limit needs, so a huge text costs no more than a long
// one.
func visibleLines(text string, limit int) []string {
	var lines []string
	var b strings.Builder
	total, space := 0, false
	flush := func() {
		if l := b.String(); l != "" {
			lines = append(lines, l)
		}
		b.Reset()
		space = false
	}
	for i := 0; i < len(text) && total <= 4*limit+64; {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == 0x1b || r == 0x9b:
			i += escapeLen(text[i:])
			continue
		case r == '\n' || r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029:
			flush()
		case unicode.IsSpace(r):
			space = b.Len() > 0
		case r == utf8.RuneError && n == 1, invisible(r):
		default:
			if space {
				b.WriteByte(' ')
				total++
				space = false
			}
			b.WriteString(text[i : i+n])
			total += n
		}
		i += n
	}
	flush()
	return lines
}

// escapeLen returns the length of the terminal escape sequence at the start of
// s: CSI (ESC [ ... final byte), or a string command (OSC, DCS, APC, PM, SOS up
// to BEL or ESC \). Of a string command that doesn't end within its line and 4
// KiB only the start counts, of any other sequence ESC alone.
func escapeLen(s string) int {
	i := 2 // U+009B, the one-character CSI, takes two bytes
	if s[0] != 0xc2 {
		if len(s) == 1 {
			return 1
		}
		switch s[1] {
		case '[':
		case ']', 'P', '_', '^', 'X':
			for j := 2; j < len(s) && j < 4096; j++ {
				if s[j] == 0x07 {
					return j + 1
				}
				if s[j] == 0x1b {
					return min(j+2, len(s))
				}
				if s[j] == '\n' {
					break
				}
			}
			return 2
		default:
			return 1
		}
	}
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
		i++
	}
	if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
		i++
	}
	return i
}

// invisible reports whether a character changes or hides text without being
// seen.
func invisible(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f: // C0, DEL, C1
		return true
	case r < 0xad:
		return false
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0:
		return true
	case r >= 0x180b && r <= 0x180f, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r == 0xfeff, r >= 0xfff0 && r <= 0xfffb:
		return true
	case r >= 0xe0000 && r <= 0xe0fff: // tags, variation selectors
		return true
	case r >= 0x1d173 && r <= 0x1d17a:
		return true
	}
	return unicode.Is(unicode.Co, r) || r == 0xfffe || r == 0xffff
}

// fold returns the ASCII letter or sign that a character passes for, or else
// the character in lower case, without accents.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}
	var space [utf8.UTFMax]byte
	if parts := norm.NFKD.Properties(utf8.AppendRune(space[:0], r)).Decomposition(); len(parts) > 0 {
		r, _ = utf8.DecodeRune(parts) // the base letter comes first
	}
	r = unicode.ToLower(r)
	if l, ok := lookalikes[r]; ok {
		return l
	}
	return r
}

// lookalikes maps letters of other scripts, and signs, to the characters of the
// fence and of role tokens that they pass for.
var lookalikes = map[rune]rune{
	'г': 'r', 'ᴦ': 'r', 'ʀ': 'r', 'ꮁ': 'r', 'ⲅ': 'r',
	'е': 'e', 'ҽ': 'e', 'є': 'e', 'ε': 'e', 'ɛ': 'e', 'ℯ': 'e', 'ⅇ': 'e', 'ᴇ': 'e',
	'м': 'm', 'ᴍ': 'm', 'μ': 'm', 'ϻ': 'm', 'ⅿ': 'm', 'ɱ': 'm',
	'о': 'o', 'ο': 'o', 'σ': 'o', 'օ': 'o', 'ᴏ': 'o', 'ס': 'o', '०': 'o', 'ø': 'o',
	'а': 'a', 'α': 'a', 'ɑ': 'a', 'ᴀ': 'a',
	'у': 'y', 'γ': 'y', 'ү': 'y', 'ʏ': 'y', 'ყ': 'y',
	'‹': '<', '〈': '<', '⟨': '<', '❮': '<', '❬': '<', '˂': '<', 'ᐸ': '<', '≺': '<', '«': '<', '《': '<',
	'›': '>', '〉': '>', '⟩': '>', '❯': '>', '❭': '>', '˃': '>', 'ᐳ': '>', '≻': '>', '»': '>', '》': '>',
	'【': '[', '〔': '[', '⟦': '[', '〖': '[', '】': ']', '〕': ']', '⟧': ']', '〗': ']',
	'｜': '|', '∣': '|', '│': '|', 'ǀ': '|', '⁄': '/', '∕': '/', '⧸': '/', '╱': '/',
}

// cut shortens s to at most limit bytes between two characters, and ends it in
// an ellipsis then.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const dots = "…"
	end := max(limit-len(dots), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.TrimRight(s[:end], " ") + dots
}
