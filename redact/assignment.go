package redact

import "strings"

// Bounds of an assignment's parts, in bytes.
const (
	maxName     = 48   // what may follow the keyword within its identifier
	maxGap      = 24   // white space, type name and operator between identifier and value
	maxAssigned = 1024 // value; what goes on behind it is of the same value
	minToken    = 10   // value of a token
	minPassword = 5    // value of a password
	maxInBare   = 12   // assignments within one bare value that are judged; at the next one the rest of it goes whole
)

// tokenAssignment finds a random-looking value assigned to an identifier that holds the keyword.
func (s *scanner) tokenAssignment(start, end int) {
	if end < s.assignedTo {
		return
	}
	if from, stop, quoted, ok := s.assigned(end); ok {
		value := s.text[from:stop]
		if !quoted && strings.IndexByte(value, '*') >= 0 {
			return // arithmetic
		}
		if s.crowded(from, quoted) || len(value) >= minToken && randomValue(value) && !disclaimed(s.text, start) && !describes(s.text, end) && !s.inARN(start) {
			s.addAssigned(ruleAssignment, from, stop)
		}
	}
}

// addAssigned adds a value, to its end where it was cut at maxAssigned. Keywords inside it are not looked at again.
func (s *scanner) addAssigned(rule ruleID, from, stop int) {
	if stop-from >= maxAssigned-1 {
		stop = s.run(stop, func(c byte) bool { return isBase64(c) || isBase64URL(c) || c == '.' })
	}
	s.assignedTo = max(s.assignedTo, stop)
	s.add(rule, from, stop)
}

// passwordAssignment finds a value given to a password: in code, settings, on a command line, or in a sentence. Values
// that read as a word are kept unless quoted ("password: required", "password is wrong").
func (s *scanner) passwordAssignment(start, end int) {
	if end < s.assignedTo {
		return
	}
	from, stop, quoted, ok := s.assigned(end)
	if whole := s.toClosingQuote(from, stop, quoted); ok && whole > stop {
		stop, quoted = whole, true
	}
	if ok && (s.crowded(from, quoted) || s.isPassword(from, stop, quoted)) {
		s.addAssigned(rulePassword, from, stop)
		return
	}
	s.toldPassword(start, end)
}

// toClosingQuote is where a password with blanks between quotation marks ends. Its first word is none of a sentence.
func (s *scanner) toClosingQuote(from, stop int, quoted bool) int {
	if quoted || from == 0 || strings.IndexByte("\"'`", s.text[from-1]) < 0 || !strings.ContainsAny(s.text[from:stop], "0123456789!@#$%^&*~+?") {
		return stop
	}
	rest := s.text[stop:min(len(s.text), stop+maxBlanks)]
	n := strings.IndexByte(rest, s.text[from-1])
	if n < 0 || strings.IndexByte(rest[:n], '\n') >= 0 {
		return stop
	}
	return stop + n
}

// maxBlanks is how far the closing quotation mark of a password with blanks is looked for, in bytes.
const maxBlanks = 64

// shortPassword is passwordAssignment for names such as pass, pw and psk, which are parts of other words, too: they count
// at the end of an identifier only, and before an equals sign, a colon or, as a flag, a blank.
func (s *scanner) shortPassword(start, end int) {
	t := s.text
	if end < s.assignedTo || isWord(at(t, end)) || at(t, end) == '-' {
		return
	}
	hump := start > 0 && isUpper(t[start]) && !isUpper(t[start-1])
	if start > 0 && isLetter(t[start-1]) && !hump && !s.isFlag(start) {
		return
	}
	from, stop, quoted, ok := s.assigned(end)
	if ok && s.crowded(from, quoted) {
		s.addAssigned(rulePassword, from, stop)
		return
	}
	if !ok || !s.isPassword(from, stop, quoted) {
		return
	}
	value, gap := t[from:stop], strings.Trim(t[end:from], "\"'`\\)]* \t:=>")
	if gap != "" || !quoted && (!mixed(value) || isDotted(value)) {
		return // "pass is 5th", f(pass, "slices"), "pass: all"
	}
	if strings.IndexByte(t[end:from], '=') < 0 && start > 0 && t[start-1] == ' ' && strings.TrimLeft(t[s.back(start, maxName, func(c byte) bool { return c != '\n' }):start], " \t") != "" {
		return // "--- PASS: Test2", "boarding pass: LH1234"
	}
	s.addAssigned(rulePassword, from, stop)
}

// inARN reports that the keyword at i is a part of the name of a resource of AWS: arn:aws:secretsmanager:...:secret:name.
func (s *scanner) inARN(i int) bool {
	from := s.back(i, 100, func(c byte) bool { return isWord(c) || strings.IndexByte(":-/", c) >= 0 })
	return strings.HasPrefix(s.text[from:], "arn:")
}

// wordBytes are what identifiers are made of.
const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// isPassword judges the value of a password.
func (s *scanner) isPassword(from, stop int, quoted bool) bool {
	value := s.text[from:stop]
	if len(value) < minPassword || isTemplate(value) || distinct(value) < 3 || looksLikePath(value) {
		return false
	}
	if !quoted && (value[0] == '*' || value[0] == '&') && strings.Trim(value[1:], wordBytes) == "" {
		return false // a pointer
	}
	return quoted || strings.ContainsAny(value, "0123456789!@#$%^&*~+?") || mixedCase(value)
}

// assigned parses what follows a keyword that ends at i: the rest of its identifier, an operator, a value. It returns
// the value without quotes.
func (s *scanner) assigned(i int) (from, stop int, quoted, ok bool) {
	text := s.text
	nameEnd := i
	for nameEnd < len(text) && nameEnd-i < maxName && (isWord(text[nameEnd]) || text[nameEnd] == '-') {
		nameEnd++
	}
	at := nameEnd
	if at < len(text) && at > i && text[at-1] == '-' { // "token->..." and prose dashes
		return 0, 0, false, false
	}
	for at < len(text) && strings.IndexByte("\"'`\\)]*", text[at]) >= 0 {
		at++
	}
	if at < len(text) && text[at] == '%' {
		return s.encodedValue(at)
	}
	gapEnd := min(len(text), at+maxGap)
	blank := at
	for blank < gapEnd && (text[blank] == ' ' || text[blank] == '\t') {
		blank++
	}
	value, xml := operator(text, blank, gapEnd)
	if value < 0 {
		value = typedOperator(text, blank, gapEnd)
	}
	if value < 0 && blank > at && (s.isFlag(i) || s.isDocker(i)) {
		value = blank
	}
	if value < 0 {
		value = s.terraformDefault(blank)
	}
	if value < 0 && strings.HasPrefix(text[blank:], "| ") && s.inTable(blank+2) {
		value = blank + 2
	}
	if value < 0 {
		return 0, 0, false, false
	}
	op := text[value-1]
	comma := op == ',' // between arguments, where only a literal is a value
	for limit := min(len(text), value+maxGap); value < limit && (text[value] == ' ' || text[value] == '\t' || xml && (text[value] == '\n' || text[value] == '\r')); {
		value++
	}
	switch {
	case op == '=' && s.inConnectionString(i):
		from, stop = s.connectionValue(value)
		return from, stop, true, stop > from
	case op == ':':
		value = s.typedLiteral(value)
	}
	from, stop, quoted, ok = s.value(s.unwrapped(value))
	return from, stop, quoted, ok && (quoted || !comma)
}

// operator returns the end of an assignment operator at i, or -1; xml tells a closing tag bracket, after which the value
// may stand on a line of its own. "value:" on the next line is how Kubernetes writes an environment, value= behind a key
// how .NET writes settings.
func operator(text string, i, limit int) (end int, xml bool) {
	rest := text[i:limit]
	for _, op := range [...]string{":::=", "::=", ":=", "=>", "->", "→", "==", "?=", ".=", "||=", "=", ":", ",", ">"} {
		if strings.HasPrefix(rest, op) {
			return i + len(op), op == ">" || op == ":"
		}
	}
	if n := copula(rest); n > 0 {
		i += n
		if strings.HasPrefix(text[i:], ": ") {
			i += 2
		}
		return i, text[i-1] != ' '
	}
	line := strings.TrimLeft(rest, "\r\n\t ")
	if len(line) < len(rest) && strings.HasPrefix(line, "value:") || i > 0 && text[i-1] == ' ' && strings.HasPrefix(rest, "value=") {
		return i + len(rest) - len(line) + len("value:"), false
	}
	return -1, false
}

// copulas say in a sentence what something is.
var copulas = []string{"is", "was", "ist", "war", "lautet", "heißt", "es", "est", "è", "é", "är", "er"}

// copula returns the length of one of them with the blank, colon or line feed behind it, 0 if rest doesn't begin so.
func copula(rest string) int {
	if rest == "" || strings.IndexByte("iIwWlLhHeE\xc3\xe3\xe6\xef\xec", rest[0]) < 0 {
		return 0 // with none of their first bytes
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

// typedOperator skips one word, the type of a declaration ("var token string = ..."), before an equals sign.
func typedOperator(text string, i, limit int) int {
	word := i
	for word < limit && isLetter(text[word]) {
		word++
	}
	if word == i || word >= limit || text[word] != ' ' {
		return -1
	}
	end, _ := operator(text, word+1, limit)
	if end < 0 || text[end-1] != '=' {
		return -1
	}
	return end
}

// isFlag reports whether the identifier around i is a command line flag, whose value follows a blank.
func (s *scanner) isFlag(i int) bool {
	from := i
	for from > 0 && i-from < maxName && (isWord(s.text[from-1]) || s.text[from-1] == '-') {
		from--
	}
	return s.text[from] == '-' && (from == 0 || s.text[from-1] <= ' ')
}

// value returns the value at i: up to its closing quote on the same line, or up to a byte that no bare value holds.
func (s *scanner) value(i int) (from, stop int, quoted, ok bool) {
	text := s.text
	escaped := 0
	for i < len(text) && text[i] == '\\' { // \"value\" inside a JSON string
		i++
		escaped++
	}
	if i >= len(text) {
		return 0, 0, false, false
	}
	limit := min(len(text), i+maxAssigned)
	if q := text[i]; q == '"' || q == '\'' || q == '`' {
		i++
		for stop = i; stop < limit && text[stop] > ' ' && text[stop] != q; stop++ {
			if text[stop] == '\\' && escaped == 0 && q == '"' && stop+1 < limit && (text[stop+1] == '"' || text[stop+1] == '\\') {
				stop++ // a quotation mark inside the value
			}
		}
		if stop < limit && text[stop] == q {
			for n := 0; stop > i && text[stop-1] == '\\' && n < escaped; n++ {
				stop--
			}
			return i, stop, true, stop > i
		}
	}
	stop = s.bareEnd(i, limit)
	if stop < limit && (text[stop] == '(' || text[stop] == '[' || text[stop] == '{' || text[stop] == '<') {
		if stop > i && closesElement(text, i, stop) {
			return i, stop, false, true
		}
		if literal := constructed(text, i, stop); literal > 0 {
			return s.value(literal)
		}
		return 0, 0, false, false // a call, an index, a template
	}
	for stop > i && strings.IndexByte(".:", text[stop-1]) >= 0 && (stop == limit || text[stop] <= ' ') {
		stop-- // the end of a sentence
	}
	return i, stop, false, stop > i
}

// endsBare are the bytes that no bare value holds.
var endsBare = func() (ends [256]bool) {
	for c := range ends {
		ends[c] = c <= ' ' || c >= 0x7f || strings.IndexByte("\"'`,;<>()[]{}|\\", byte(c)) >= 0
	}
	return ends
}()

// bareEnd returns where the bare value at i ends, limit at the latest. One that begins in the value that was read last ends
// where that does, so that a value made of assignments is read once and not at each of them.
func (s *scanner) bareEnd(i, limit int) (stop int) {
	text := s.text
	stop = i
	if s.bareFrom <= i && i < s.bareTo {
		stop = min(s.bareTo, limit)
	} else {
		s.bareFrom, s.bareTo, s.inBare = i, i, 0
	}
	for ; stop < limit && !endsBare[text[stop]]; stop++ {
		if text[stop] == '&' && isParameter(text[stop+1:limit]) {
			break
		}
	}
	known := stop
	if stop == limit { // so near to it another one may see a parameter
		known -= maxName + 1
	}
	s.bareTo = max(s.bareTo, known)
	return stop
}

// crowded reports that so many assignments stand in one bare value that judging each would cost too much. No key is named
// that often: what is left of the value is taken for a secret, whatever it looks like.
func (s *scanner) crowded(from int, quoted bool) bool {
	if quoted || from < s.bareFrom || from > s.bareTo {
		return false
	}
	s.inBare++
	return s.inBare > maxInBare
}
