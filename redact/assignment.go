package redact

import (
	"strings"
)

// assignmentMatcher finds values assigned to a name that announces a secret, in
// code, settings, forms and tables.
type assignmentMatcher struct {
	*document
	sentences *sentenceMatcher
	// assignedEnd is the end of the last value that an assignment rule matched.
	assignedEnd int
	// bareStart and bareEndKnown bound what is known of one bare value. bareCount is
	// the number of values in it that were examined.
	bareStart, bareEndKnown, bareCount int
}

// key finds a password behind a word that means a key of any kind, too: "la clave es Gato1234".
func (m *assignmentMatcher) key(start, end int) {
	if end < m.assignedEnd || start > 0 && isWord(m.text[start-1]) || isWord(byteAt(m.text, end)) {
		return
	}
	if from, stop, _, ok := m.assigned(end); ok && hasDigitAndLetter(m.text[from:stop]) && isPasswordValue(m.text[from:stop], false) {
		m.addAssigned(rulePassword, from, stop)
	}
}

// Bounds of an assignment's parts, in bytes.
const (
	maxName            = 48   // what may follow the keyword within its identifier
	maxGap             = 24   // white space, type name and operator between identifier and value
	maxAssigned        = 1024 // value; what goes on behind it is of the same value
	minToken           = 10   // value of a token
	minPassword        = 5    // value of a password
	maxBareAssignments = 12   // assignments within one bare value that are judged; at the next one the rest of it goes whole
)

// tokenAssignment finds a random-looking value assigned to an identifier that holds the keyword.
func (m *assignmentMatcher) tokenAssignment(start, end int) {
	if end < m.assignedEnd {
		return
	}
	if from, stop, quoted, ok := m.assigned(end); ok {
		value := m.text[from:stop]
		if !quoted && strings.IndexByte(value, '*') >= 0 {
			return // arithmetic
		}
		if m.tooManyInBare(from, quoted) || len(value) >= minToken && randomValue(value) && !isFake(m.text, start) && !isMetadata(m.text, end) && !m.inARN(start) {
			m.addAssigned(ruleAssignment, from, stop)
		}
	}
}

// addAssigned adds a value, to its end where it was cut at maxAssigned. Keywords inside it are not looked at again.
func (m *assignmentMatcher) addAssigned(rule ruleID, from, stop int) {
	if stop-from >= maxAssigned-1 {
		stop = m.run(stop, func(c byte) bool { return isBase64(c) || isBase64URL(c) || c == '.' })
	}
	m.assignedEnd = max(m.assignedEnd, stop)
	m.add(rule, from, stop)
}

// passwordAssignment finds a value given to a password: in code, settings, on a command line, or in a sentence. Values
// that read as a word are kept unless quoted ("password: required", "password is wrong").
func (m *assignmentMatcher) passwordAssignment(start, end int) {
	if end < m.assignedEnd {
		return
	}
	from, stop, quoted, ok := m.assigned(end)
	if whole := m.toClosingQuote(from, stop, quoted); ok && whole > stop {
		stop, quoted = whole, true
	}
	if ok && (m.tooManyInBare(from, quoted) || isPasswordValue(m.text[from:stop], quoted)) {
		m.addAssigned(rulePassword, from, stop)
		return
	}
	m.sentences.passwordInSentence(start, end)
}

// toClosingQuote is where a password with blanks between quotation marks ends. Its first word is none of a sentence.
func (m *assignmentMatcher) toClosingQuote(from, stop int, quoted bool) int {
	if quoted || from == 0 || strings.IndexByte("\"'`", m.text[from-1]) < 0 || !strings.ContainsAny(m.text[from:stop], "0123456789!@#$%^&*~+?") {
		return stop
	}
	rest := m.text[stop:min(len(m.text), stop+maxBlanks)]
	n := strings.IndexByte(rest, m.text[from-1])
	if n < 0 || strings.IndexByte(rest[:n], '\n') >= 0 {
		return stop
	}
	return stop + n
}

// maxBlanks is how far the closing quotation mark of a password with blanks is looked for, in bytes.
const maxBlanks = 64

// shortPassword is passwordAssignment for names such as pass, pw and psk, which are parts of other words, too: they count
// at the end of an identifier only, and before an equals sign, a colon or, as a flag, a blank.
func (m *assignmentMatcher) shortPassword(start, end int) {
	t := m.text
	if end < m.assignedEnd || isWord(byteAt(t, end)) || byteAt(t, end) == '-' {
		return
	}
	hump := start > 0 && isUpper(t[start]) && !isUpper(t[start-1])
	if start > 0 && isLetter(t[start-1]) && !hump && !m.isFlag(start) {
		return
	}
	from, stop, quoted, ok := m.assigned(end)
	if ok && m.tooManyInBare(from, quoted) {
		m.addAssigned(rulePassword, from, stop)
		return
	}
	if !ok || !isPasswordValue(m.text[from:stop], quoted) {
		return
	}
	value, gap := t[from:stop], strings.Trim(t[end:from], "\"'`\\)]* \t:=>")
	if gap != "" || !quoted && (!hasDigitAndLetter(value) || isDotted(value)) {
		return // "pass is 5th", f(pass, "slices"), "pass: all"
	}
	if strings.IndexByte(t[end:from], '=') < 0 && start > 0 && t[start-1] == ' ' && strings.TrimLeft(t[m.back(start, maxName, func(c byte) bool { return c != '\n' }):start], " \t") != "" {
		return // "--- PASS: Test2", "boarding pass: LH1234"
	}
	m.addAssigned(rulePassword, from, stop)
}

// inARN reports that the keyword at i is a part of the name of a resource of AWS: arn:aws:secretsmanager:...:secret:name.
func (m *assignmentMatcher) inARN(i int) bool {
	from := m.back(i, 100, func(c byte) bool { return isWord(c) || strings.IndexByte(":-/", c) >= 0 })
	return strings.HasPrefix(m.text[from:], "arn:")
}

// wordBytes are what identifiers are made of.
const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// isPassword judges the value of a password.
func isPasswordValue(value string, quoted bool) bool {
	if len(value) < minPassword || isPlaceholderValue(value) || distinctBytes(value) < 3 || looksLikePath(value) {
		return false
	}
	if !quoted && (value[0] == '*' || value[0] == '&') && strings.Trim(value[1:], wordBytes) == "" {
		return false // a pointer
	}
	return quoted || strings.ContainsAny(value, "0123456789!@#$%^&*~+?") || mixedCase(value)
}

// assigned parses what follows a keyword that ends at i: the rest of its identifier, an operator, a value. It returns
// the value without quotes.
func (m *assignmentMatcher) assigned(i int) (from, stop int, quoted, ok bool) {
	text := m.text
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
		return m.encodedValue(at)
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
	if value < 0 && blank > at && (m.isFlag(i) || m.isDockerfileName(i)) {
		value = blank
	}
	if value < 0 {
		value = m.terraformDefault(blank)
	}
	if value < 0 && strings.HasPrefix(text[blank:], "| ") && m.isTableCell(blank+2) {
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
	case op == '=' && m.inConnectionString(i):
		from, stop = m.connectionValue(value)
		return from, stop, true, stop > from
	case op == ':':
		value = m.skipType(value)
	}
	from, stop, quoted, ok = m.value(m.skipMarkdown(value))
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
	if n := skipCopula(rest); n > 0 {
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
func skipCopula(rest string) int {
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
func (m *assignmentMatcher) isFlag(i int) bool {
	from := i
	for from > 0 && i-from < maxName && (isWord(m.text[from-1]) || m.text[from-1] == '-') {
		from--
	}
	return m.text[from] == '-' && (from == 0 || m.text[from-1] <= ' ')
}

// literal returns the contents of the quoted string at i, which ends on the same
// line. Backslashes before the quote, as in a JSON string, must also precede the
// closing one.
func literal(text string, i int) (from, stop int, ok bool) {
	escaped := 0
	for i < len(text) && text[i] == '\\' {
		i++
		escaped++
	}
	q := byteAt(text, i)
	if q != '"' && q != '\'' && q != '`' {
		return i, i, false
	}
	i++
	limit := min(len(text), i-1+maxAssigned)
	for stop = i; stop < limit && text[stop] > ' ' && text[stop] != q; stop++ {
		if text[stop] == '\\' && escaped == 0 && q == '"' && stop+1 < limit && (text[stop+1] == '"' || text[stop+1] == '\\') {
			stop++ // a quotation mark inside the value
		}
	}
	if stop >= limit || text[stop] != q {
		return i, i, false
	}
	for n := 0; stop > i && text[stop-1] == '\\' && n < escaped; n++ {
		stop--
	}
	return i, stop, stop > i
}

// value returns the value at i: a literal, or bytes up to one that ends a bare
// value.
func (m *assignmentMatcher) value(i int) (from, stop int, quoted, ok bool) {
	text := m.text
	from, stop, ok = literal(text, i)
	if ok {
		return from, stop, true, true
	}
	if i = from; i >= len(text) {
		return 0, 0, false, false
	}
	limit := min(len(text), i+maxAssigned)
	stop = m.bareEnd(i, limit)
	if stop < limit && (text[stop] == '(' || text[stop] == '[' || text[stop] == '{' || text[stop] == '<') {
		if stop > i && closesElement(text, i, stop) {
			return i, stop, false, true
		}
		if literal := constructorLiteral(text, i, stop); literal > 0 {
			return m.value(literal)
		}
		return 0, 0, false, false // a call, an index, a template
	}
	for stop > i && strings.IndexByte(".:", text[stop-1]) >= 0 && (stop == limit || text[stop] <= ' ') {
		stop-- // the end of a sentence
	}
	return i, stop, false, stop > i
}

// endsBare are the bytes that no bare value holds.
var bareEnds = func() (ends [256]bool) {
	for c := range ends {
		ends[c] = c <= ' ' || c >= 0x7f || strings.IndexByte("\"'`,;<>()[]{}|\\", byte(c)) >= 0
	}
	return ends
}()

// bareEnd returns where the bare value at i ends, limit at the latest. One that begins in the value that was read last ends
// where that does, so that a value made of assignments is read once and not at each of them.
func (m *assignmentMatcher) bareEnd(i, limit int) (stop int) {
	text := m.text
	stop = i
	if m.bareStart <= i && i < m.bareEndKnown {
		stop = min(m.bareEndKnown, limit)
	} else {
		m.bareStart, m.bareEndKnown, m.bareCount = i, i, 0
	}
	for ; stop < limit && !bareEnds[text[stop]]; stop++ {
		if text[stop] == '&' && isParameter(text[stop+1:limit]) {
			break
		}
	}
	known := stop
	if stop == limit { // so near to it another one may see a parameter
		known -= maxName + 1
	}
	m.bareEndKnown = max(m.bareEndKnown, known)
	return stop
}

// crowded reports that so many assignments stand in one bare value that judging each would cost too much. No key is named
// that often: what is left of the value is taken for a secret, whatever it looks like.
func (m *assignmentMatcher) tooManyInBare(from int, quoted bool) bool {
	if quoted || from < m.bareStart || from > m.bareEndKnown {
		return false
	}
	m.bareCount++
	return m.bareCount > maxBareAssignments
}
