package redact

import (
	"math"
	"math/bits"
	"strings"
)

// mixed reports that value has letters and digits both.
func hasDigitAndLetter(value string) bool {
	digits, letters := false, false
	for i := range len(value) {
		digits, letters = digits || isDigit(value[i]), letters || isLetter(value[i])
	}
	return digits && letters
}

func isPrintable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// keyLike tells a key from a word that happens to be as long: it has digits, or is long and can't be spoken.
func isKeyLike(value string) bool {
	return strings.ContainsAny(value, "0123456789") || len(value) >= 20 && !hasWords(value)
}

// What a value looks like.

// randomValue tells a key from a word, a path, a template, a version or a name.
func randomValue(value string) bool {
	var digits, letters, others int
	for i := range len(value) {
		switch c := value[i]; {
		case isDigit(c):
			digits++
		case isLetter(c):
			letters++
		default:
			others++
		}
	}
	if others*3 > len(value) || distinctBytes(value) < 5 {
		return false
	}
	random := false
	switch {
	case letters == 0:
		random = digits >= minToken && others <= 4
	case digits == 0:
		random = len(value) >= 16 && entropy(value) >= 3.5 && !hasWords(value)
	default:
		random = entropy(value) >= 2.7 && !(hasWords(value) && trailingCount(value, isDigit) == digits)
	}
	return random && !isPlaceholderValue(value) && !looksLikePath(value) && !timeUUID(value) && !mixedHex(value) && !isNumber(value)
}

// isNumber reports a hexadecimal integer of at most 64 bits as programs write it, and bytes that are escaped one by one.
func isNumber(value string) bool {
	digits, ok := strings.CutPrefix(strings.TrimPrefix(value, "-"), "0x")
	return ok && len(digits) <= 16 || strings.Count(value, `\x`) > 2
}

// timeUUID reports a UUID of version 1 (RFC 9562): a clock and a network card, guessable, and so an identifier.
func timeUUID(value string) bool {
	if len(value) != 36 || value[14] != '1' || strings.IndexByte("89abAB", value[19]) < 0 {
		return false
	}
	for i := range len(value) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (value[i] == '-') || !dash && !isHex(value[i]) {
			return false
		}
	}
	return true
}

// mixedHex reports hex digits of both cases, as long as a hash: no encoder writes a key so, but checksummed addresses of
// Ethereum, which are public, are written so (ERC-55).
func mixedHex(value string) bool {
	if len(value) < 32 {
		return false
	}
	lowers, uppers := false, false
	for i := range len(value) {
		c := value[i]
		if !isHex(c) {
			return false
		}
		lowers, uppers = lowers || c >= 'a', uppers || c >= 'A' && c <= 'F'
	}
	return lowers && uppers
}

// trailing counts the bytes at the end of value that satisfy in.
func trailingCount(value string, in func(byte) bool) int {
	n := 0
	for n < len(value) && in(value[len(value)-1-n]) {
		n++
	}
	return n
}

// wordy reports that value is made of words: its parts between separators and capitals have vowels enough to be spoken.
func hasWords(value string) bool {
	vowels, letters, run, longest := 0, 0, 0, 0
	upperRuns := 0
	for i := range len(value) {
		c := value[i]
		if !isLetter(c) {
			run = 0
			continue
		}
		letters++
		if strings.IndexByte("aeiouy", lower(c)) >= 0 {
			vowels++
			run = 0
		} else if run++; run > longest {
			longest = run
		}
		if i > 0 && c < 'a' && isLetter(value[i-1]) && value[i-1] >= 'a' {
			upperRuns++
		}
	}
	return letters > 0 && vowels*4 >= letters && longest <= 4 && upperRuns*5 <= letters
}

// spoken reports a wordy value that is no hexadecimal number: of its six letters two are vowels.
func isPronounceable(value string) bool {
	for i := range len(value) {
		if !isHex(value[i]) {
			return hasWords(value)
		}
	}
	return false
}

// templateMarks are what placeholders in documentation and code contain.
var templateMarks = []string{"your", "example", "replace", "changeme", "xxxx", "****", "....", "placeholder", "redacted", "process.env", "os.environ", "getenv", "secrets."}

// isTemplate reports that value stands for a value: a variable, a placeholder, a mask.
func isPlaceholderValue(value string) bool {
	if value == "" || strings.IndexByte("$<{%[(*", value[0]) >= 0 && (len(value) < 2 || value[0] != '*' || value[1] == '*') {
		return true
	}
	folded := strings.ToLower(value)
	for _, mark := range templateMarks {
		if strings.Contains(folded, mark) {
			return true
		}
	}
	switch folded {
	case "password", "passwort", "secret", "null", "none", "true", "false", "undefined", "string", "token":
		return true
	}
	return strings.HasSuffix(value, "1234567890") || strings.Contains(value, "${") || strings.Contains(value, "{{") || strings.Contains(value, "$(")
}

// looksLikePath reports a URL, a file path or a dotted name.
func looksLikePath(value string) bool {
	if strings.Contains(value, "://") || strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "~/") {
		return true
	}
	return (strings.Count(value, "/") >= 2 || isDotted(value)) && hasWords(value) || strings.HasPrefix(value, "arn:")
}

// isDotted reports the name of something within something: identifiers with dots between them.
func isDotted(value string) bool {
	parts := 0
	for part := range strings.SplitSeq(value, ".") {
		if part == "" || isDigit(part[0]) || strings.Trim(part, wordBytes) != "" {
			return false
		}
		parts++
	}
	return parts > 1
}

func mixedCase(value string) bool {
	lowers, uppers := 0, 0
	for i := range len(value) {
		switch c := value[i]; {
		case c >= 'a' && c <= 'z':
			lowers++
		case c >= 'A' && c <= 'Z' && i > 0:
			uppers++
		}
	}
	return lowers > 0 && uppers > 0
}

// entropy is Shannon's, in bits per byte.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	h, n := 0.0, float64(len(s))
	for _, k := range count {
		if k > 0 {
			p := float64(k) / n
			h -= p * math.Log2(p)
		}
	}
	return h
}

// looksRandom reports whether value has enough different bytes for its length and
// none of the marks that documentation uses.
func looksRandom(value string) bool {
	if upper := strings.ToUpper(value); containsAny(upper, []string{"EXAMPLE", "PLACEHOLDER", "DUMMY", "XXXX", "REDACTED", "YOURKEY", "YOUR_", "YOUR-", "CHANGEME"}) {
		return false
	}
	return distinctBytes(value) >= min(8, 2+len(value)/3)
}

// distinctBytes returns how many different bytes s has.
func distinctBytes(s string) int {
	var seen [4]uint64
	for i := range len(s) {
		seen[s[i]>>6] |= 1 << (s[i] & 63)
	}
	return bits.OnesCount64(seen[0]) + bits.OnesCount64(seen[1]) + bits.OnesCount64(seen[2]) + bits.OnesCount64(seen[3])
}
