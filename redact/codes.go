package redact

import (
	"strings"
)

// shortCode finds the digits of a PIN, a card's security code or a one-time
// code after its name: "PIN is 4711", "CVV: 123", "your verification code is
// 481920", and "481920 is your verification code".
func (m *sentenceMatcher) shortCode(start, end int) {
	t := m.text
	if before := byteAt(t, start-1); isWord(before) && before != '_' || isAlnum(byteAt(t, end)) {
		return
	}
	window := max(0, start-40)
	if is := max(strings.LastIndex(t[window:start], " is your "), strings.LastIndex(t[window:start], " as your ")); is >= 0 {
		stop := window + is
		if from := m.back(stop, 9, isDigit); stop-from >= 4 && stop-from <= 8 {
			m.add(ruleCode, from, stop)
			return
		}
	}
	i := m.runTo(end, 3, in("\"'*_"))
	i = m.runTo(i, max(0, 4-(i-end)), isBlank)
	if rest := m.after(i, 40); strings.HasPrefix(rest, "for ") || strings.HasPrefix(rest, "für ") {
		is := strings.Index(rest, " is ")
		if is < 0 {
			return
		}
		i += is + 1
	}
	next := byteAt(t, i)
	switch n := skipCopula(m.after(i, 12)); {
	case n > 0:
		i += n
	case next == ':' || next == '=':
		i++
	case i > end && isDigit(next) && isOneOf(t[start:end], []string{"cvv", "cvc", "otp"}):
	default:
		return
	}
	i = m.runTo(i, 3, in(" \"'*"))
	stop := m.run(i, isDigit)
	if c := byteAt(t, stop); stop-i == 3 && (c == ' ' || c == '-') && m.run(stop+1, isDigit) == stop+4 {
		stop += 4 // 123 456
	}
	minimum := 4
	if strings.EqualFold(t[start:start+2], "cv") {
		minimum = 3
	}
	if n := stop - i; n < minimum || n > 8 || isWord(byteAt(t, stop)) || byteAt(t, stop) == '.' && isDigit(byteAt(t, stop+1)) {
		return
	}
	m.add(ruleCode, i, stop)
}

// notSeedWords are the most common English words that are not in the word list
// of wallets (BIP 39).
var notSeedWords = []string{"the", "and", "for", "not", "are", "was", "with", "from", "have", "has", "had", "but", "its", "our", "his", "her", "which", "been"}

// seedPhrase finds the 12 to 24 words of a wallet after what announces them.
func (m *sentenceMatcher) seedPhrase(_, end int) {
	const minWords, maxWords = 12, 24
	separator := in("\"'`:=* \n\r")
	i := m.runTo(end, maxGap, separator)
	if n := skipCopula(m.after(i, maxGap)); n > 0 {
		i = m.runTo(i+n, maxGap, separator)
	}
	from, stop, n := i, i, 0
	for n < maxWords {
		next := m.runTo(i, 9, func(c byte) bool { return c >= 'a' && c <= 'z' })
		if next-i < 3 || next-i > 8 || isOneOf(m.text[i:next], notSeedWords) {
			break
		}
		stop = next
		n++
		if i = m.runTo(next, 2, in(" ,\n")); i == next {
			break
		}
	}
	if n >= minWords {
		m.add(rulePrivateKey, from, stop)
	}
}

// Limits of a recovery code, and of how many are found in a list.
const (
	minRecoveryCode  = 8 // letters and digits
	maxRecoveryCode  = 40
	maxRecoveryCodes = 24
)

// recoveryCodes finds codes that replace the second factor: "recovery codes:
// 1a2b3-c4d5e 6f7a8-b9c0d".
func (m *sentenceMatcher) recoveryCodes(start, end int) {
	t := m.text
	if isWord(byteAt(t, start-1)) {
		return
	}
	i := m.runTo(end, 2, isLetter) // codes
	switch n := skipAnnouncement(m.after(i, maxGap)); {
	case n > 0:
		i += n
	case byteAt(t, i) == ':' || byteAt(t, i) == '=':
		i++
	default:
		return
	}
	layout := ""
	for range maxRecoveryCodes {
		i = m.runTo(i, 8, in(" \t\r\n,;*|\"'`-"))
		if n := m.runTo(i, 2, isDigit); n > i && (strings.HasPrefix(t[n:], ". ") || strings.HasPrefix(t[n:], ") ")) { // of a list
			i = n + 2
		}
		for _, and := range [...]string{"and ", "und ", "et ", "y ", "or "} {
			if strings.HasPrefix(t[i:], and) {
				i += len(and)
			}
		}
		stop := m.runTo(i, maxRecoveryCode, func(c byte) bool { return isAlnum(c) || c == '-' })
		if stop-i == 4 && isDigits(t[i:stop]) && byteAt(t, stop) == ' ' && m.run(stop+1, isDigit) == stop+5 {
			stop += 5 // 1234 5678
		}
		code := strings.TrimRight(t[i:stop], "-")
		l := codeLayout(code)
		if l == "" || isWord(byteAt(t, stop)) || l != layout && !strings.ContainsAny(code, "0123456789") {
			return
		}
		if layout == "" {
			layout = l
		}
		m.add(ruleCode, i, i+len(code))
		i += len(code)
	}
}

// codeLayout returns a recovery code with each letter and digit as 0: groups of
// the same length, a row of digits, or random characters; "" if it is neither of
// these.
func codeLayout(code string) string {
	b := []byte(code)
	count, group := 0, 0
	even := true
	for i := range b {
		if isAlnum(b[i]) {
			b[i] = '0'
			count++
			continue
		}
		if group == 0 {
			group = i
		}
		even = even && group <= 8 && (i+1)%(group+1) == 0
	}
	switch {
	case count < minRecoveryCode || group > 0 && (!even || (len(b)+1)%(group+1) != 0):
		return ""
	case group == 0 && !(isDigits(code) && count <= 10 || hasDigitAndLetter(code) && entropy(code) >= 2.5 && !hasWords(code)):
		return ""
	}
	return string(b)
}
