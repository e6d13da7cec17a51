package redact

import (
	"strings"
)

// toldCredentials finds the password of a pair in a sentence: "the credentials are bob:hunter2!", "creds: bob / hunter2!".
func (m *sentenceMatcher) credentialsInSentence(start, end int) {
	t := m.text
	if start > 0 && isWord(t[start-1]) || isWord(byteAt(t, end)) {
		return
	}
	i := end
	for words := 0; words < 5; words++ { // "for the router"
		if n := skipAnnouncement(t[i:min(len(t), i+maxGap)]); n > 0 {
			m.passwordOfPair(i + n)
			return
		}
		if byteAt(t, i) != ' ' {
			return
		}
		i = m.runTo(i+1, 24, func(c byte) bool { return isWord(c) || c == '-' || c == '\'' || c >= 0x80 })
	}
}

// announced returns the length of what leads from a name to its value in a sentence, 0 if rest doesn't begin so.
func skipAnnouncement(rest string) int {
	for _, word := range [...]string{": ", ":\n", " = ", " are: ", " are ", " is ", " were ", " sind: ", " sind ", " lauten ", " sont: ", " sont ", " son: ", " son "} {
		if len(rest) >= len(word) && strings.EqualFold(rest[:len(word)], word) {
			return len(word)
		}
	}
	return 0
}

// pair finds the password of user:password or user / password at i.
func (m *sentenceMatcher) passwordOfPair(i int) {
	t := m.text
	i = m.runTo(i, 2, func(c byte) bool { return strings.IndexByte("\"'`", c) >= 0 })
	stop := m.runTo(i, 64, func(c byte) bool { return isWord(c) || strings.IndexByte(".-@+\\", c) >= 0 })
	if stop-i < 2 {
		return
	}
	for _, between := range [...]string{":", "/", " / ", " : "} {
		if !strings.HasPrefix(t[stop:], between) {
			continue
		}
		from, end := m.word(stop + len(between))
		if value := t[from:end]; len(value) > minPassword && strings.ContainsAny(value[1:], "!@#$%^&*~+?") || between != "/" && between != " / " { // "staging/prod2" is no pair
			m.addSentencePassword(from, end)
		}
		return
	}
}

// Passwords and codes in sentences.

// sentenceMatcher finds passwords and codes in prose.
type sentenceMatcher struct{ *document }

// tellers are words before "password" after which the password itself may follow without another word.
var userWords = []string{"user", "login", "account", "benutzer", "utilisateur", "usuario", "machine"}

// toldPassword finds "password hunter2" behind the name of a user, also in .netrc, and "set the password to hunter2".
func (m *sentenceMatcher) passwordInSentence(start, end int) {
	if byteAt(m.text, end) != ' ' || !strings.ContainsAny(m.text[end:min(len(m.text), end+maxSentencePassword)], "0123456789") && !m.netrc(start) {
		return
	}
	from, stop := m.word(end + 1)
	before := m.before(start, 48)
	if m.quoted(end+1, from, stop) && m.addSentencePassword(from, stop) {
		return
	}
	switch said := strings.ToLower(m.text[from:stop]); said {
	case "to", "auf", "à", "a":
		around := before + strings.ToLower(m.text[stop:min(len(m.text), stop+64)])
		if containsAny(around, []string{"set ", "chang", "reset", "updat", "rotat", "änder", "setzt", "cambi"}) && m.addSentencePassword(m.word(stop+1)) {
			return
		}
		m.passwordAfterPurpose(stop)
	case "on", "for", "of", "in", "at", "du", "de", "des", "del", "für", "vom", "von", "zum", "am", "pour", "para", "is":
		m.passwordAfterPurpose(stop)
	case "from":
		old, end := m.word(stop + 1)
		to, behind := m.word(end + 1)
		if m.addSentencePassword(old, end) && m.text[to:behind] == "to" {
			m.addSentencePassword(m.word(behind + 1))
		}
	case "-", "–", "—":
		m.addSentencePassword(m.word(stop + 1))
	case "has", "was", "got", "wurde":
		m.passwordAfterChange(stop)
	default:
		if byteAt(m.text, end+1) == '(' {
			m.passwordAfterParenthesis(end + 1)
			return
		}
		if !containsAny(before, userWords) {
			if value := m.text[from:stop]; len(value) > minPassword && strings.ContainsAny(value[1:len(value)-1], "!@#$%^&*~+?") && hasMixedCase(value) {
				m.addSentencePassword(from, stop) // no word is written like this
			}
			return
		}
		if m.netrc(start) && stop-from >= minPassword && !isPlaceholderValue(m.text[from:stop]) {
			m.add(rulePassword, from, stop)
		} else {
			m.addSentencePassword(from, stop)
		}
	}
}

// quoted reports that the word at from is all that stands between the quotation marks that open at i.
func (m *sentenceMatcher) quoted(i, from, stop int) bool {
	return from == i+1 && stop > from && byteAt(m.text, stop) == m.text[i]
}

// toldAsChanged finds "password has been changed to hunter2", from behind "has".
func (m *sentenceMatcher) passwordAfterChange(i int) {
	behind := m.text[i:min(len(m.text), i+40)]
	for _, to := range [...]string{" to ", " auf "} {
		if n := strings.Index(behind, to); n >= 0 && containsAny(strings.ToLower(behind[:n]), []string{"set", "chang", "reset", "updat", "rotat", "änder"}) {
			m.addSentencePassword(m.word(i + n + len(to)))
			return
		}
	}
}

// toldBehindBrackets finds "password (for the VPN): hunter2", from the bracket on.
func (m *sentenceMatcher) passwordAfterParenthesis(i int) {
	n := strings.IndexAny(m.text[i:min(len(m.text), i+40)], ")\n")
	if n < 0 || m.text[i+n] != ')' {
		return
	}
	i += n + 1
	switch n := skipCopula(m.text[i:min(len(m.text), i+maxGap)]); {
	case n > 0:
		m.addSentencePassword(m.word(i + n))
	case byteAt(m.text, i) == ':' && byteAt(m.text, i+1) == ' ':
		m.addSentencePassword(m.word(i + 2))
	}
}

// maxTold is how far behind "password" a password of a sentence ends, which has a digit.
const maxSentencePassword = 96

// netrc reports that a password at i is that of a machine in .netrc, where it may be a word.
func (m *sentenceMatcher) netrc(i int) bool {
	from := max(0, i-48)
	return strings.Contains(m.text[from:i], "login ") && strings.Contains(m.text[max(0, i-160):i], "machine ")
}

// toldAfter finds the password behind words that say what it is for: "password for the router: ...", "du wifi est ...".
func (m *sentenceMatcher) passwordAfterPurpose(i int) {
	t := m.text
	for words := 0; words < 6 && byteAt(t, i) == ' '; words++ {
		i++
		if n := skipCopula(t[i:min(len(t), i+maxGap)]); n > 0 {
			m.addSentencePassword(m.word(i + n))
			return
		}
		i = m.runTo(i, 24, func(c byte) bool { return isWord(c) || c == '-' || c == '\'' || c >= 0x80 })
		if byteAt(t, i) == ':' {
			m.addSentencePassword(m.word(i + 2))
			return
		}
	}
}

// algorithms have letters and digits, and follow "password" in texts on programming.
var algorithms = []string{"sha", "md", "oauth", "base", "argon", "bcrypt", "pbkdf", "utf", "aes", "scrypt", "ntlm"}

// addTold adds a password of a sentence, which must not look like a word of it.
func (m *sentenceMatcher) addSentencePassword(from, stop int) bool {
	value := m.text[from:stop]
	if !hasDigitAndLetter(value) || !isPasswordValue(m.text[from:stop], false) {
		return false
	}
	for _, a := range algorithms {
		if len(value) > len(a) && strings.EqualFold(value[:len(a)], a) && (isDigit(value[len(a)]) || value[len(a)] == '-') {
			return false
		}
	}
	m.add(rulePassword, from, stop)
	return true
}

// word returns the bounds of the word at i, without quotes around it and without the end of a sentence.
func (m *sentenceMatcher) word(i int) (from, stop int) {
	i = min(i, len(m.text))
	for i < len(m.text) && strings.IndexByte("\"'`", m.text[i]) >= 0 {
		i++
	}
	stop = m.runTo(i, 128, func(c byte) bool { return c > ' ' && strings.IndexByte("\"'`<>", c) < 0 })
	for stop > i && strings.IndexByte(".,;:)?", m.text[stop-1]) >= 0 {
		stop--
	}
	return i, stop
}

// copulas link a name to its value in a sentence.
var copulas = []string{"is", "was", "ist", "war", "lautet", "heißt", "es", "est", "è", "é", "är", "er"}

// skipCopula returns the length of a copula with the blank, colon or line feed after
// it, 0 if rest does not begin with one.
func skipCopula(rest string) int {
	if rest == "" || strings.IndexByte("iIwWlLhHeE\xc3\xe3\xe6\xef\xec", rest[0]) < 0 {
		return 0 // none of their first bytes
	}
	for _, word := range copulas {
		if n := len(word); len(rest) > n+1 && strings.EqualFold(rest[:n], word) && strings.IndexByte(" :\n", rest[n]) >= 0 {
			return n + 1
		}
	}
	for _, word := range [...]string{"は", "是", "：", "은", "는"} { // no blank follows these
		if strings.HasPrefix(rest, word) {
			return len(word)
		}
	}
	return 0
}
