package redact

import "strings"

// Passwords and codes in sentences.

// tellers are words before "password" after which the password itself may follow without another word.
var tellers = []string{"user", "login", "account", "benutzer", "utilisateur", "usuario", "machine"}

// toldPassword finds "password hunter2" behind the name of a user, also in .netrc, and "set the password to hunter2".
func (s *scanner) toldPassword(start, end int) {
	if at(s.text, end) != ' ' || !strings.ContainsAny(s.text[end:min(len(s.text), end+maxTold)], "0123456789") && !s.netrc(start) {
		return
	}
	from, stop := s.word(end + 1)
	before := s.before(start, 48)
	if s.quoted(end+1, from, stop) && s.addTold(from, stop) {
		return
	}
	switch said := strings.ToLower(s.text[from:stop]); said {
	case "to", "auf", "à", "a":
		around := before + strings.ToLower(s.text[stop:min(len(s.text), stop+64)])
		if containsAny(around, []string{"set ", "chang", "reset", "updat", "rotat", "änder", "setzt", "cambi"}) && s.addTold(s.word(stop+1)) {
			return
		}
		s.toldAfter(stop)
	case "on", "for", "of", "in", "at", "du", "de", "des", "del", "für", "vom", "von", "zum", "am", "pour", "para", "is":
		s.toldAfter(stop)
	case "from":
		old, end := s.word(stop + 1)
		to, behind := s.word(end + 1)
		if s.addTold(old, end) && s.text[to:behind] == "to" {
			s.addTold(s.word(behind + 1))
		}
	case "-", "–", "—":
		s.addTold(s.word(stop + 1))
	case "has", "was", "got", "wurde":
		s.toldAsChanged(stop)
	default:
		if at(s.text, end+1) == '(' {
			s.toldBehindBrackets(end + 1)
			return
		}
		if !containsAny(before, tellers) {
			if value := s.text[from:stop]; len(value) > minPassword && strings.ContainsAny(value[1:len(value)-1], "!@#$%^&*~+?") && mixedCase(value) {
				s.addTold(from, stop) // no word is written like this
			}
			return
		}
		if s.netrc(start) && stop-from >= minPassword && !isTemplate(s.text[from:stop]) {
			s.add(rulePassword, from, stop)
		} else {
			s.addTold(from, stop)
		}
	}
}

// quoted reports that the word at from is all that stands between the quotation marks that open at i.
func (s *scanner) quoted(i, from, stop int) bool {
	return from == i+1 && stop > from && at(s.text, stop) == s.text[i]
}

// toldAsChanged finds "password has been changed to hunter2", from behind "has".
func (s *scanner) toldAsChanged(i int) {
	behind := s.text[i:min(len(s.text), i+40)]
	for _, to := range [...]string{" to ", " auf "} {
		if n := strings.Index(behind, to); n >= 0 && containsAny(strings.ToLower(behind[:n]), []string{"set", "chang", "reset", "updat", "rotat", "änder"}) {
			s.addTold(s.word(i + n + len(to)))
			return
		}
	}
}

// toldBehindBrackets finds "password (for the VPN): hunter2", from the bracket on.
func (s *scanner) toldBehindBrackets(i int) {
	n := strings.IndexAny(s.text[i:min(len(s.text), i+40)], ")\n")
	if n < 0 || s.text[i+n] != ')' {
		return
	}
	i += n + 1
	switch n := copula(s.text[i:min(len(s.text), i+maxGap)]); {
	case n > 0:
		s.addTold(s.word(i + n))
	case at(s.text, i) == ':' && at(s.text, i+1) == ' ':
		s.addTold(s.word(i + 2))
	}
}

// maxTold is how far behind "password" a password of a sentence ends, which has a digit.
const maxTold = 96

// netrc reports that a password at i is that of a machine in .netrc, where it may be a word.
func (s *scanner) netrc(i int) bool {
	from := max(0, i-48)
	return strings.Contains(s.text[from:i], "login ") && strings.Contains(s.text[max(0, i-160):i], "machine ")
}

// toldAfter finds the password behind words that say what it is for: "password for the router: ...", "du wifi est ...".
func (s *scanner) toldAfter(i int) {
	t := s.text
	for words := 0; words < 6 && at(t, i) == ' '; words++ {
		i++
		if n := copula(t[i:min(len(t), i+maxGap)]); n > 0 {
			s.addTold(s.word(i + n))
			return
		}
		i = s.runTo(i, 24, func(c byte) bool { return isWord(c) || c == '-' || c == '\'' || c >= 0x80 })
		if at(t, i) == ':' {
			s.addTold(s.word(i + 2))
			return
		}
	}
}

// algorithms have letters and digits, and follow "password" in texts on programming.
var algorithms = []string{"sha", "md", "oauth", "base", "argon", "bcrypt", "pbkdf", "utf", "aes", "scrypt", "ntlm"}

// addTold adds a password of a sentence, which must not look like a word of it.
func (s *scanner) addTold(from, stop int) bool {
	value := s.text[from:stop]
	if !mixed(value) || !s.isPassword(from, stop, false) {
		return false
	}
	for _, a := range algorithms {
		if len(value) > len(a) && strings.EqualFold(value[:len(a)], a) && (isDigit(value[len(a)]) || value[len(a)] == '-') {
			return false
		}
	}
	s.add(rulePassword, from, stop)
	return true
}

// key finds a password behind a word that means a key of any kind, too: "la clave es Gato1234".
func (s *scanner) key(start, end int) {
	if end < s.assignedTo || start > 0 && isWord(s.text[start-1]) || isWord(at(s.text, end)) {
		return
	}
	if from, stop, _, ok := s.assigned(end); ok && mixed(s.text[from:stop]) && s.isPassword(from, stop, false) {
		s.addAssigned(rulePassword, from, stop)
	}
}

// securedString finds the literal that PowerShell is told to keep secret.
func (s *scanner) securedString(_, end int) {
	line := s.text[end:min(len(s.text), end+maxCommand)]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	quote := strings.IndexAny(line, "\"'")
	if quote < 0 || !strings.Contains(strings.ToLower(line), "-asplaintext") {
		return
	}
	s.argument(end+quote, false, false)
}

// word returns the bounds of the word at i, without quotes around it and without the end of a sentence.
func (s *scanner) word(i int) (from, stop int) {
	i = min(i, len(s.text))
	for i < len(s.text) && strings.IndexByte("\"'`", s.text[i]) >= 0 {
		i++
	}
	stop = s.runTo(i, 128, func(c byte) bool { return c > ' ' && strings.IndexByte("\"'`<>", c) < 0 })
	for stop > i && strings.IndexByte(".,;:)?", s.text[stop-1]) >= 0 {
		stop--
	}
	return i, stop
}

// shortCode finds the digits of a PIN, a card's security code or a one-time code behind its name: "PIN is 4711",
// "CVV: 123", "your verification code is 481920", and "481920 is your verification code".
func (s *scanner) shortCode(start, end int) {
	t := s.text
	if start > 0 && isWord(t[start-1]) && t[start-1] != '_' || end < len(t) && isAlnum(t[end]) {
		return
	}
	window := max(0, start-40)
	if is := max(strings.LastIndex(t[window:start], " is your "), strings.LastIndex(t[window:start], " as your ")); is >= 0 {
		stop := window + is
		if from := s.back(max(0, stop), 9, isDigit); stop-from >= 4 && stop-from <= 8 {
			s.add(ruleCode, from, stop)
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
	sign := copula(t[i:limit])
	switch {
	case sign > 0:
		i += sign
	case i < limit && (t[i] == ':' || t[i] == '='):
		i++
	case i > end && i < limit && isDigit(t[i]) && oneOf(t[start:end], []string{"cvv", "cvc", "otp"}):
	default:
		return
	}
	for limit := min(len(t), i+3); i < limit && strings.IndexByte(" \"'*", t[i]) >= 0; i++ {
	}
	stop := s.run(i, isDigit)
	if stop-i == 3 && stop+4 <= len(t) && (t[stop] == ' ' || t[stop] == '-') && s.run(stop+1, isDigit) == stop+4 {
		stop += 4 // 123 456
	}
	least := 4
	if lower(t[start]) == 'c' && lower(at(t, start+1)) == 'v' {
		least = 3
	}
	if n := stop - i; n < least || n > 8 || isWord(at(t, stop)) || at(t, stop) == '.' && isDigit(at(t, stop+1)) {
		return
	}
	s.add(ruleCode, i, stop)
}

// notOfASeed are the commonest words of English that no word list of wallets (BIP 39) has.
var notOfASeed = []string{"the", "and", "for", "not", "are", "was", "with", "from", "have", "has", "had", "but", "its", "our", "his", "her", "which", "been"}

// seedPhrase finds the 12 to 24 words of a wallet behind what announces them.
func (s *scanner) seedPhrase(_, end int) {
	const least, most = 12, 24
	t := s.text
	i := s.runTo(end, maxGap, func(c byte) bool { return strings.IndexByte("\"'`:=* \n\r", c) >= 0 })
	if n := copula(t[i:min(len(t), i+maxGap)]); n > 0 {
		i = s.runTo(i+n, maxGap, func(c byte) bool { return strings.IndexByte("\"'`:=* \n\r", c) >= 0 })
	}
	from, stop, n := i, i, 0
	for n < most {
		next := s.runTo(i, 9, func(c byte) bool { return c >= 'a' && c <= 'z' })
		if next-i < 3 || next-i > 8 || oneOf(t[i:next], notOfASeed) {
			break
		}
		stop = next
		n++
		if i = s.runTo(next, 2, func(c byte) bool { return strings.IndexByte(" ,\n", c) >= 0 }); i == next {
			break
		}
	}
	if n >= least {
		s.add(rulePrivateKey, from, stop)
	}
}
