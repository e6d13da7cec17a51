package redact

import (
	"math"
	"math/bits"
	"regexp"
	"strings"
)

// minRandomDigits is the length of the shortest number that counts as random.
const minRandomDigits = 10

// randomValue reports whether value is a key and not a word, a path, a
// template, a version or a name.
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
		random = digits >= minRandomDigits && others <= 4
	case digits == 0:
		random = len(value) >= 16 && entropy(value) >= 3.5 && !hasWords(value)
	default:
		numbered := len(value)-len(strings.TrimRight(value, "0123456789")) == digits // words and a number
		random = entropy(value) >= 2.7 && !(numbered && hasWords(value))
	}
	return random && !isPlaceholderValue(value) && !looksLikePath(value) && !isTimeUUID(value) && !isMixedHex(value) && !isNumber(value)
}

// isSymbolMix reports whether value is mostly letters with several different
// symbols between them, as a generator of passwords writes and a regular
// expression or a path does not.
func isSymbolMix(value string) bool {
	if strings.ContainsAny(value, " \\") || isPlaceholderValue(value) || looksLikePath(value) {
		return false
	}
	letters, symbols := 0, ""
	for i := range len(value) {
		switch c := value[i]; {
		case isLetter(c):
			letters++
		case strings.IndexByte("!@#$%^&*(){}[]<>~|;?", c) >= 0 && strings.IndexByte(symbols, c) < 0:
			symbols += string(c)
		}
	}
	return letters*2 > len(value) && len(symbols) >= 4
}

// isBalanced reports whether every bracket in value has its partner, as in code.
func isBalanced(value string) bool {
	const brackets = "([{)]}"
	var open []int
	for i := range len(value) {
		switch kind := strings.IndexByte(brackets, value[i]); {
		case kind < 0:
		case kind < len(brackets)/2:
			open = append(open, kind)
		case len(open) == 0 || open[len(open)-1] != kind-len(brackets)/2:
			return false
		default:
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0
}

// isNumber reports whether value is a hexadecimal integer of at most 64 bits as
// programs write it, or bytes that are escaped one by one.
func isNumber(value string) bool {
	digits, ok := strings.CutPrefix(strings.TrimPrefix(value, "-"), "0x")
	return ok && len(digits) <= 16 || strings.Count(value, `\x`) > 2
}

var timeUUID = regexp.MustCompile(`^(?i:[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})$`)

// isTimeUUID reports whether value is a UUID of version 1 (RFC 9562): a clock
// and a network card, so guessable, and therefore an identifier.
func isTimeUUID(value string) bool { return len(value) == 36 && timeUUID.MatchString(value) }

// isMixedHex reports whether value is hex digits of both cases, as long as a
// hash. No encoder writes keys like this, but checksummed Ethereum addresses,
// which are public, are written so (ERC-55).
func isMixedHex(value string) bool {
	return len(value) >= 32 && strings.Trim(value, "0123456789abcdefABCDEF") == "" &&
		strings.ContainsAny(value, "abcdef") && strings.ContainsAny(value, "ABCDEF")
}

// hasDigitAndLetter reports whether value has both a digit and a letter.
func hasDigitAndLetter(value string) bool {
	digits, letters := false, false
	for i := range len(value) {
		digits, letters = digits || isDigit(value[i]), letters || isLetter(value[i])
	}
	return digits && letters
}

// hasWords reports whether value is made of words: its parts between separators
// and capitals have enough vowels to be pronounced.
func hasWords(value string) bool {
	vowels, letters, run, longest, humps := 0, 0, 0, 0, 0
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
		if i > 0 && isUpper(c) && value[i-1] >= 'a' && value[i-1] <= 'z' {
			humps++
		}
	}
	return letters > 0 && vowels*4 >= letters && longest <= 4 && humps*5 <= letters
}

// isPronounceable reports whether value has words and is not a hexadecimal
// number, of whose six letters two are vowels.
func isPronounceable(value string) bool {
	return strings.Trim(value, "0123456789abcdefABCDEF") != "" && hasWords(value)
}

// placeholderMarks occur in the placeholders of documentation and code.
var placeholderMarks = []string{"your", "example", "replace", "changeme", "xxxx", "****", "....", "placeholder", "redacted", "process.env", "os.environ", "getenv", "secrets."}

// isPlaceholderValue reports whether value stands for a value: a variable, a
// placeholder, a mask.
func isPlaceholderValue(value string) bool {
	if value == "" || strings.IndexByte("$<{%[(", value[0]) >= 0 || value == "*" || strings.HasPrefix(value, "**") {
		return true
	}
	folded := strings.ToLower(value)
	switch folded {
	case "password", "passwort", "secret", "null", "none", "true", "false", "undefined", "string", "token":
		return true
	}
	return containsAny(folded, placeholderMarks) || anyWord(value, isStandIn) || strings.HasSuffix(value, "1234567890") || isNameOfSecret(folded) ||
		containsAny(value, []string{"${", "{{", "$("}) && template.MatchString(value)
}

// template is a variable within a value, or the beginning of one at its end.
var template = regexp.MustCompile(`\$\{[^{}\[\]()]*(?:\}|$)|\{\{[^{}]*(?:\}\}|$)|\$\([^()]*(?:\)|$)`)

// isStandIn reports whether a word says that a value is none. As a part of
// another word it says nothing.
func isStandIn(word string) bool {
	return strings.EqualFold(word, "dummy") || strings.EqualFold(word, "fake")
}

// nameWords are in names that stand for a secret in documentation and tests,
// together with otherNameWords.
var (
	nameWords      = []string{"key", "apikey", "token", "secret", "password", "passwd", "here", "value", "name"}
	otherNameWords = []string{
		"access", "account", "actual", "add", "admin", "any", "api", "app", "auth", "aws", "azure", "bearer", "bot", "client", "config", "custom",
		"database", "db", "default", "demo", "deploy", "encryption", "enter", "env", "fill", "from", "github", "gitlab", "google", "id", "in", "insert",
		"invalid", "jwt", "license", "local", "login", "master", "my", "mysql", "new", "oauth", "old", "openai", "pass", "paste", "postgres", "private",
		"prod", "public", "put", "random", "real", "redis", "refresh", "root", "sample", "service", "session", "set", "shared", "signing", "smtp",
		"some", "stripe", "strong", "super", "test", "the", "this", "top", "user", "username", "valid", "webhook",
	}
)

// isNameOfSecret reports whether value, in lower case, is two or three words
// joined by separators, one of nameWords and others of either list: real_key,
// "insert-token-here". Other words may be those of a passphrase.
func isNameOfSecret(value string) bool {
	words, named := 0, false
	for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '_' || r == '-' }) {
		name := isOneOf(word, nameWords)
		if !name && !isOneOf(word, otherNameWords) {
			return false
		}
		words++
		named = named || name
	}
	return named && (words == 2 || words == 3)
}

// looksLikePath reports whether value is a URL, a file path or a dotted name.
func looksLikePath(value string) bool {
	if strings.Contains(value, "://") || strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "~/") {
		return true
	}
	return (strings.Count(value, "/") >= 2 || isDotted(value)) && hasWords(value) || strings.HasPrefix(value, "arn:")
}

var dotted = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$`)

// isDotted reports whether value consists of identifiers joined by dots.
func isDotted(value string) bool {
	return strings.IndexByte(value, '.') > 0 && dotted.MatchString(value)
}

// hasMixedCase reports whether value has a lower-case letter and, after its
// first byte, a capital.
func hasMixedCase(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r >= 'a' && r <= 'z' }) &&
		strings.ContainsFunc(value[min(1, len(value)):], func(r rune) bool { return r >= 'A' && r <= 'Z' })
}

// entropy returns Shannon's entropy, in bits per byte.
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

// looksRandom reports whether a key with a known prefix has enough different
// bytes for its length and none of the marks of documentation.
func looksRandom(value string) bool {
	if containsAny(strings.ToUpper(value), []string{"EXAMPLE", "PLACEHOLDER", "DUMMY", "XXXX", "REDACTED", "YOURKEY", "YOUR_", "YOUR-", "CHANGEME"}) {
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
