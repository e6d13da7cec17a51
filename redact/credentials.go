package redact

import "strings"

// toldCredentials finds the password of a pair in a sentence: "the credentials are bob:hunter2!", "creds: bob / hunter2!".
func (s *scanner) toldCredentials(start, end int) {
	t := s.text
	if start > 0 && isWord(t[start-1]) || isWord(at(t, end)) {
		return
	}
	i := end
	for words := 0; words < 5; words++ { // "for the router"
		if n := announced(t[i:min(len(t), i+maxGap)]); n > 0 {
			s.pair(i + n)
			return
		}
		if at(t, i) != ' ' {
			return
		}
		i = s.runTo(i+1, 24, func(c byte) bool { return isWord(c) || c == '-' || c == '\'' || c >= 0x80 })
	}
}

// announced returns the length of what leads from a name to its value in a sentence, 0 if rest doesn't begin so.
func announced(rest string) int {
	for _, word := range [...]string{": ", ":\n", " = ", " are: ", " are ", " is ", " were ", " sind: ", " sind ", " lauten ", " sont: ", " sont ", " son: ", " son "} {
		if len(rest) >= len(word) && strings.EqualFold(rest[:len(word)], word) {
			return len(word)
		}
	}
	return 0
}

// pair finds the password of user:password or user / password at i.
func (s *scanner) pair(i int) {
	t := s.text
	i = s.runTo(i, 2, func(c byte) bool { return strings.IndexByte("\"'`", c) >= 0 })
	stop := s.runTo(i, 64, func(c byte) bool { return isWord(c) || strings.IndexByte(".-@+\\", c) >= 0 })
	if stop-i < 2 {
		return
	}
	for _, between := range [...]string{":", "/", " / ", " : "} {
		if !strings.HasPrefix(t[stop:], between) {
			continue
		}
		from, end := s.word(stop + len(between))
		if value := t[from:end]; len(value) > minPassword && strings.ContainsAny(value[1:], "!@#$%^&*~+?") || between != "/" && between != " / " { // "staging/prod2" is no pair
			s.addTold(from, end)
		}
		return
	}
}

// Bounds of a recovery code, and of how many are given at a time.
const (
	minRecoveryCode  = 8 // letters and digits
	maxRecoveryCode  = 40
	maxRecoveryCodes = 24
)

// recoveryCodes finds what lets in without the second factor: "recovery codes: 1a2b3-c4d5e 6f7a8-b9c0d".
func (s *scanner) recoveryCodes(start, end int) {
	t := s.text
	if start > 0 && isWord(t[start-1]) {
		return
	}
	i := s.runTo(end, 2, isLetter) // codes, -codes
	switch n := announced(t[i:min(len(t), i+maxGap)]); {
	case n > 0:
		i += n
	case at(t, i) == ':' || at(t, i) == '=':
		i++
	default:
		return
	}
	shape := ""
	for range maxRecoveryCodes {
		i = s.runTo(i, 8, func(c byte) bool { return strings.IndexByte(" \t\r\n,;*|\"'`-", c) >= 0 })
		if n := s.runTo(i, 2, isDigit); n > i && strings.IndexByte(".)", at(t, n)) >= 0 && at(t, n+1) == ' ' { // of a list
			i = n + 2
		}
		for _, and := range [...]string{"and ", "und ", "et ", "y ", "or "} {
			if strings.HasPrefix(t[i:], and) {
				i += len(and)
			}
		}
		stop := s.runTo(i, maxRecoveryCode, func(c byte) bool { return isAlnum(c) || c == '-' })
		if next := s.run(min(stop+1, len(t)), isDigit); stop-i == 4 && digits(t[i:stop]) && at(t, stop) == ' ' && next == stop+5 {
			stop = next // 1234 5678
		}
		code := strings.TrimRight(t[i:stop], "-")
		form := codeForm(code)
		if form == "" || isWord(at(t, stop)) || form != shape && !strings.ContainsAny(code, "0123456789") {
			return
		}
		if shape == "" {
			shape = form
		}
		s.add(ruleCode, i, i+len(code))
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
	case group == 0 && !(digits(code) && count <= 10 || mixed(code) && entropy(code) >= 2.5 && !wordy(code)):
		return ""
	}
	return string(b)
}
