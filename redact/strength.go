package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// Limits of what a sentence tells, in bytes.
const (
	minUnmistakable = 9  // password that needs nothing around it but its word
	minToldKey      = 16 // key that is linked to its word
	minLooseKey     = 24 // key elsewhere in the sentence
)

var (
	// quantity is a number with its unit, or an ordinal: 12characters, 30min.
	quantity = regexp.MustCompile(`^[0-9.]{1,5}[\p{L}%]+$`)
	// dateLike begins with a date or time, or is a version or an address.
	dateLike = regexp.MustCompile(`^(?:v?\d+(?:\.\d+)+|\d{4}-\d\d|\d{1,2}:\d\d|\d{1,2}[./]\d)`)
)

// passwordStrength says how little like a word a value looks: 0 is no password,
// 1 a word, 2 a word with a number or a mark, 3 a mixture that nothing else is
// written like.
func passwordStrength(value string, quoted bool) int {
	if len(value) < minPassword || len(value) > maxToldValue || distinctBytes(value) < 3 || isPlaceholderValue(value) || looksLikePath(value) ||
		quantity.MatchString(value) || dateLike.MatchString(value) || isAlgorithm(value) {
		return 0
	}
	if strings.IndexByte(value, ' ') >= 0 && !(quoted && hasDigitAndLetter(value)) {
		return 0
	}
	letters, digits, marks, others := 0, 0, 0, 0
	for _, r := range value {
		switch {
		case unicode.IsLetter(r):
			letters++
		case r >= '0' && r <= '9':
			digits++
		case strings.ContainsRune("!@#$%^&*~+?", r):
			marks++
		default:
			others++
		}
	}
	switch {
	case letters == 0 || strings.HasPrefix(value, "@") || strings.HasPrefix(value, "#"):
		return 0
	case digits == 0:
		return 1
	case others == 0 && len(value) >= minUnmistakable && hasMixedCase("a"+value) && (transitions(value) >= 2 || marks > 0) && !isHexWord(value):
		return 3
	}
	return 2
}

// transitions returns how often letters and digits change.
func transitions(value string) int {
	n := 0
	last := byte(0)
	for i := range len(value) {
		class := byte(0)
		switch c := value[i]; {
		case isDigit(c):
			class = 1
		case isLetter(c):
			class = 2
		}
		if class != 0 && last != 0 && class != last {
			n++
		}
		if class != 0 {
			last = class
		}
	}
	return n
}

// digitsIn returns how many digits value has.
func digitsIn(value string) int {
	n := 0
	for i := range len(value) {
		if isDigit(value[i]) {
			n++
		}
	}
	return n
}

func hasDigit(value string) bool { return strings.ContainsAny(value, "0123456789") }

func isHexWord(value string) bool { return strings.Trim(value, "0123456789abcdefABCDEF") == "" }

// isAlgorithm reports whether value begins with the name of an algorithm.
func isAlgorithm(value string) bool {
	for _, a := range algorithms {
		if len(value) > len(a) && strings.EqualFold(value[:len(a)], a) && (isDigit(value[len(a)]) || value[len(a)] == '-') {
			return true
		}
	}
	return false
}

var (
	plainCode  = regexp.MustCompile(`^[*#]?\d{4,8}[*#]?$`)
	groupCode  = regexp.MustCompile(`^\d{1,4}(?:-\d{1,4}){1,3}$`)
	letterCode = regexp.MustCompile(`^[\dA-ZА-Я]{4,8}[*#]?$`)
)

// isCode reports whether value is a PIN or, for doors and locks, a code.
func isCode(value string, k kind) bool {
	if plainCode.MatchString(value) {
		return true
	}
	return k == kindCode && (groupCode.MatchString(value) || letterCode.MatchString(value) && strings.IndexFunc(value, unicode.IsDigit) >= 0)
}

var uuid = regexp.MustCompile(`^(?i:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$`)

// isToldKey reports whether value is a random key of a sentence. One that is
// not linked to its word is longer and no hash.
func isToldKey(value string, linked bool) bool {
	if len(value) < minToldKey || !linked && (len(value) < minLooseKey || isHexWord(value)) {
		return false
	}
	for i := range len(value) {
		if c := value[i]; !isBase64(c) && strings.IndexByte("-_.~", c) < 0 {
			return false
		}
	}
	return digitsIn(value) >= 2 && transitions(value) >= 4 && randomValue(value) && !uuid.MatchString(value) && !strings.HasPrefix(value, "0x") &&
		!dateLike.MatchString(value) && !hasExtension(value)
}

// hasExtension reports whether value ends as a file name does.
func hasExtension(value string) bool {
	dot := strings.LastIndexByte(value, '.')
	return dot > 0 && len(value)-dot <= 6
}
