package redact

import (
	"strings"
)

// shortCode finds the digits of a PIN, a card's security code or a one-time code behind its name: "PIN is 4711",
// "CVV: 123", "your verification code is 481920", and "481920 is your verification code".
func (m *sentenceMatcher) shortCode(start, end int) {
	t := m.text
	if start > 0 && isWord(t[start-1]) && t[start-1] != '_' || end < len(t) && isAlnum(t[end]) {
		return
	}
	window := max(0, start-40)
	if is := max(strings.LastIndex(t[window:start], " is your "), strings.LastIndex(t[window:start], " as your ")); is >= 0 {
		stop := window + is
		if from := m.back(max(0, stop), 9, isDigit); stop-from >= 4 && stop-from <= 8 {
			m.add(ruleCode, from, stop)
			return
		}
	}
	i := end
	for i < len(t) && i-end < 3 && strings.IndexByte("\"'*_", t[i]) >= 0 {
		i++
	}
	for i < len(t) && t[i] == ' ' && i-end < 4 {
		i++
	}
	if rest := t[i:min(len(t), i+4)]; strings.HasPrefix(rest, "for ") || strings.HasPrefix(rest, "für ") {
		is := strings.Index(t[i:min(len(t), i+40)], " is ")
		if is < 0 {
			return
		}
		i += is + 1
	}
	limit := min(len(t), i+12)
	sign := skipCopula(t[i:limit])
	switch {
	case sign > 0:
		i += sign
	case i < limit && (t[i] == ':' || t[i] == '='):
		i++
	case i > end && i < limit && isDigit(t[i]) && isOneOf(t[start:end], []string{"cvv", "cvc", "otp"}):
	default:
		return
	}
	for limit := min(len(t), i+3); i < limit && strings.IndexByte(" \"'*", t[i]) >= 0; i++ {
	}
	stop := m.run(i, isDigit)
	if stop-i == 3 && stop+4 <= len(t) && (t[stop] == ' ' || t[stop] == '-') && m.run(stop+1, isDigit) == stop+4 {
		stop += 4 // 123 456
	}
	least := 4
	if lower(t[start]) == 'c' && lower(byteAt(t, start+1)) == 'v' {
		least = 3
	}
	if n := stop - i; n < least || n > 8 || isWord(byteAt(t, stop)) || byteAt(t, stop) == '.' && isDigit(byteAt(t, stop+1)) {
		return
	}
	m.add(ruleCode, i, stop)
}

// notOfASeed are the commonest words of English that no word list of wallets (BIP 39) has.
var notSeedWords = []string{"the", "and", "for", "not", "are", "was", "with", "from", "have", "has", "had", "but", "its", "our", "his", "her", "which", "been"}

// seedPhrase finds the 12 to 24 words of a wallet behind what announces them.
func (m *sentenceMatcher) seedPhrase(_, end int) {
	const least, most = 12, 24
	t := m.text
	i := m.runTo(end, maxGap, func(c byte) bool { return strings.IndexByte("\"'`:=* \n\r", c) >= 0 })
	if n := skipCopula(t[i:min(len(t), i+maxGap)]); n > 0 {
		i = m.runTo(i+n, maxGap, func(c byte) bool { return strings.IndexByte("\"'`:=* \n\r", c) >= 0 })
	}
	from, stop, n := i, i, 0
	for n < most {
		next := m.runTo(i, 9, func(c byte) bool { return c >= 'a' && c <= 'z' })
		if next-i < 3 || next-i > 8 || isOneOf(t[i:next], notSeedWords) {
			break
		}
		stop = next
		n++
		if i = m.runTo(next, 2, func(c byte) bool { return strings.IndexByte(" ,\n", c) >= 0 }); i == next {
			break
		}
	}
	if n >= least {
		m.add(rulePrivateKey, from, stop)
	}
}

// Bounds of a recovery code, and of how many are given at a time.
const (
	minRecoveryCode  = 8 // letters and digits
	maxRecoveryCode  = 40
	maxRecoveryCodes = 24
)

// recoveryCodes finds what lets in without the second factor: "recovery codes: 1a2b3-c4d5e 6f7a8-b9c0d".
func (m *sentenceMatcher) recoveryCodes(start, end int) {
	t := m.text
	if start > 0 && isWord(t[start-1]) {
		return
	}
	i := m.runTo(end, 2, isLetter) // codes, -codes
	switch n := skipAnnouncement(t[i:min(len(t), i+maxGap)]); {
	case n > 0:
		i += n
	case byteAt(t, i) == ':' || byteAt(t, i) == '=':
		i++
	default:
		return
	}
	shape := ""
	for range maxRecoveryCodes {
		i = m.runTo(i, 8, func(c byte) bool { return strings.IndexByte(" \t\r\n,;*|\"'`-", c) >= 0 })
		if n := m.runTo(i, 2, isDigit); n > i && strings.IndexByte(".)", byteAt(t, n)) >= 0 && byteAt(t, n+1) == ' ' { // of a list
			i = n + 2
		}
		for _, and := range [...]string{"and ", "und ", "et ", "y ", "or "} {
			if strings.HasPrefix(t[i:], and) {
				i += len(and)
			}
		}
		stop := m.runTo(i, maxRecoveryCode, func(c byte) bool { return isAlnum(c) || c == '-' })
		if next := m.run(min(stop+1, len(t)), isDigit); stop-i == 4 && isDigits(t[i:stop]) && byteAt(t, stop) == ' ' && next == stop+5 {
			stop = next // 1234 5678
		}
		code := strings.TrimRight(t[i:stop], "-")
		form := codeForm(code)
		if form == "" || isWord(byteAt(t, stop)) || form != shape && !strings.ContainsAny(code, "0123456789") {
			return
		}
		if shape == "" {
			shape = form
		}
		m.add(ruleCode, i, i+len(code))
		i += len(code)
	}
}

// codeForm is a recovery code with each letter and digit as 0: groups of one length, or a row of digits, or a random one. Else "".
func codeForm(code string) string {
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
