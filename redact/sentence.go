package redact

import (
	"strings"
)

// sentenceMatcher finds passwords and codes in prose.
type sentenceMatcher struct {
	*document
	// runEnd is the end of the run without blanks that was read last, inRun the
	// number of keywords in it.
	runEnd, inRun int
}

// maxSentencePassword is how far after "password" a password of a sentence
// ends, in bytes.
const maxSentencePassword = 96

// userWords before "password" allow the password to follow without another
// word.
var userWords = []string{"user", "login", "account", "benutzer", "utilisateur", "usuario", "machine"}

// changeVerbs occur in sentences that change a password.
var changeVerbs = []string{"set", "chang", "reset", "updat", "rotat", "änder"}

// passwordInSentence finds "password hunter2" after the name of a user, also in
// .netrc, and "set the password to hunter2".
func (m *sentenceMatcher) passwordInSentence(start, end int) {
	t := m.text
	if byteAt(t, end) != ' ' || !strings.ContainsAny(m.after(end, maxSentencePassword), "0123456789") && !m.isNetrc(start) {
		return
	}
	from, stop := m.word(end + 1)
	before := m.before(start, 48)
	if from == end+2 && stop > from && byteAt(t, stop) == t[end+1] && m.addPassword(from, stop) { // quoted
		return
	}
	switch value := t[from:stop]; strings.ToLower(value) {
	case "to", "auf", "à", "a":
		around := before + strings.ToLower(m.after(stop, 64))
		if containsAny(around, []string{"set ", "chang", "reset", "updat", "rotat", "änder", "setzt", "cambi"}) && m.addPassword(m.word(stop+1)) {
			return
		}
		m.passwordAfterPurpose(stop)
	case "on", "for", "of", "in", "at", "du", "de", "des", "del", "für", "vom", "von", "zum", "am", "pour", "para", "is":
		m.passwordAfterPurpose(stop)
	case "from":
		old, end := m.word(stop + 1)
		to, next := m.word(end + 1)
		if m.addPassword(old, end) && t[to:next] == "to" {
			m.addPassword(m.word(next + 1))
		}
	case "-", "–", "—":
		m.addPassword(m.word(stop + 1))
	case "has", "was", "got", "wurde":
		m.passwordAfterChange(stop)
	default:
		switch {
		case byteAt(t, end+1) == '(':
			m.passwordAfterParenthesis(end + 1)
		case !containsAny(before, userWords):
			if len(value) > minPassword && strings.ContainsAny(value[1:len(value)-1], "!@#$%^&*~+?") && hasMixedCase(value) {
				m.addPassword(from, stop) // no word is written like this
			}
		case m.isNetrc(start) && len(value) >= minPassword && !isPlaceholderValue(value):
			m.add(rulePassword, from, stop)
		default:
			m.addPassword(from, stop)
		}
	}
}

// passwordAfterChange finds the password of "password has been changed to
// hunter2", where i is after "has".
func (m *sentenceMatcher) passwordAfterChange(i int) {
	after := m.after(i, 40)
	for _, to := range [...]string{" to ", " auf "} {
		if n := strings.Index(after, to); n >= 0 && containsAny(strings.ToLower(after[:n]), changeVerbs) {
			m.addPassword(m.word(i + n + len(to)))
			return
		}
	}
}

// passwordAfterParenthesis finds the password of "password (for the VPN):
// hunter2", where i is at the parenthesis.
func (m *sentenceMatcher) passwordAfterParenthesis(i int) {
	inside, _, ok := strings.Cut(m.line(i, 40), ")")
	if !ok {
		return
	}
	i += len(inside) + 1
	if n := skipCopula(m.after(i, maxGap)); n > 0 {
		m.addPassword(m.word(i + n))
	} else if strings.HasPrefix(m.text[i:], ": ") {
		m.addPassword(m.word(i + 2))
	}
}

// passwordAfterPurpose finds the password after words about its purpose:
// "password for the router: ...", "du wifi est ...".
func (m *sentenceMatcher) passwordAfterPurpose(i int) {
	for words := 0; words < 6 && byteAt(m.text, i) == ' '; words++ {
		i++
		if n := skipCopula(m.after(i, maxGap)); n > 0 {
			m.addPassword(m.word(i + n))
			return
		}
		i = m.wordEnd(i)
		if byteAt(m.text, i) == ':' {
			m.addPassword(m.word(i + 2))
			return
		}
	}
}

// isNetrc reports whether a password at i is that of a machine in .netrc, where
// it may be a word.
func (m *sentenceMatcher) isNetrc(i int) bool {
	return strings.Contains(m.text[max(0, i-48):i], "login ") && strings.Contains(m.text[max(0, i-160):i], "machine ")
}

// algorithms have letters and digits, and follow "password" in texts on
// programming.
var algorithms = []string{"sha", "md", "oauth", "base", "argon", "bcrypt", "pbkdf", "utf", "aes", "scrypt", "ntlm"}

// addPassword adds a password of a sentence unless it looks like a word.
func (m *sentenceMatcher) addPassword(from, stop int) bool {
	value := m.text[from:stop]
	if !hasDigitAndLetter(value) || !isPasswordValue(value, false) {
		return false
	}
	if isAlgorithm(value) {
		return false
	}
	m.add(rulePassword, from, stop)
	return true
}

// word returns the bounds of the word at i, without quotes around it and
// without the punctuation after it.
func (m *sentenceMatcher) word(i int) (from, stop int) {
	from = m.run(min(i, len(m.text)), in("\"'`"))
	stop = m.runTo(from, 128, func(c byte) bool { return c > ' ' && strings.IndexByte("\"'`<>", c) < 0 })
	return from, from + len(strings.TrimRight(m.text[from:stop], ".,;:)?"))
}

// wordEnd returns the end of the word of prose at i.
func (m *sentenceMatcher) wordEnd(i int) int {
	return m.runTo(i, 24, func(c byte) bool { return isWord(c) || c == '-' || c == '\'' || c >= 0x80 })
}

// credentialsInSentence finds the password of a pair: "the credentials are
// bob:hunter2!", "creds: bob / hunter2!".
func (m *sentenceMatcher) credentialsInSentence(start, end int) {
	if isWord(byteAt(m.text, start-1)) || isWord(byteAt(m.text, end)) {
		return
	}
	i := end
	for words := 0; words < 5; words++ { // "for the router"
		if n := skipAnnouncement(m.after(i, maxGap)); n > 0 {
			m.passwordOfPair(i + n)
			return
		}
		if byteAt(m.text, i) != ' ' {
			return
		}
		i = m.wordEnd(i + 1)
	}
}

// passwordOfPair finds the password of user:password or user / password at i.
func (m *sentenceMatcher) passwordOfPair(i int) {
	i = m.runTo(i, 2, in("\"'`"))
	stop := m.runTo(i, 64, wordOr(".-@+\\"))
	if stop-i < 2 {
		return
	}
	for _, separator := range [...]string{":", "/", " / ", " : "} {
		if !strings.HasPrefix(m.text[stop:], separator) {
			continue
		}
		from, end := m.word(stop + len(separator))
		value := m.text[from:end]
		if strings.Contains(separator, ":") || len(value) > minPassword && strings.ContainsAny(value[1:], "!@#$%^&*~+?") { // "staging/prod2" is not a pair
			m.addPassword(from, end)
		}
		return
	}
}

// copulas link a name to its value in a sentence. The characters need no blank
// after them.
var (
	copulas       = []string{"is", "was", "ist", "war", "lautet", "heißt", "es", "est", "è", "é", "är", "er"}
	copulaLetters = []string{"は", "是", "：", "은", "는"}
	copulaFirsts  = "iIwWlLhHeE\xc3\xe3\xe6\xef\xec" // their first bytes
	pluralCopulas = []string{": ", ":\n", " = ", " are: ", " are ", " is ", " were ", " sind: ", " sind ", " lauten ", " sont: ", " sont ", " son: ", " son "}
)

// skipCopula returns the length of a copula with the blank, colon or line feed
// after it, 0 if rest does not begin with one.
func skipCopula(rest string) int {
	if rest == "" || strings.IndexByte(copulaFirsts, rest[0]) < 0 {
		return 0
	}
	for _, word := range copulas {
		if n := len(word); len(rest) > n+1 && strings.EqualFold(rest[:n], word) && strings.IndexByte(" :\n", rest[n]) >= 0 {
			return n + 1
		}
	}
	for _, word := range copulaLetters {
		if strings.HasPrefix(rest, word) {
			return len(word)
		}
	}
	return 0
}

// skipAnnouncement returns the length of what leads from a plural name to its
// value, 0 if rest does not begin with it.
func skipAnnouncement(rest string) int {
	for _, word := range pluralCopulas {
		if len(rest) >= len(word) && strings.EqualFold(rest[:len(word)], word) {
			return len(word)
		}
	}
	return 0
}
