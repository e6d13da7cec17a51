package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// assignmentMatcher finds values assigned to a name that announces a secret, in
// code, settings, forms and tables.
type assignmentMatcher struct {
	*document
	sentences *sentenceMatcher
	// assignedEnd is the end of the last value that an assignment rule matched.
	assignedEnd int
	// bareStart and bareEndKnown bound what is known of one bare value.
	// bareCount is the number of assignments in it that were examined.
	bareStart, bareEndKnown, bareCount int
}

// Limits of an assignment's parts, in bytes.
const (
	maxGap             = 24   // white space, type name and operator between identifier and value
	maxAssigned        = 1024 // value; a longer one is added to its end
	maxQuoted          = 64   // distance of the closing quotation mark of a password with blanks
	minToken           = 10   // value of a token
	minPassword        = 5    // value of a password
	maxBareAssignments = 12   // number of assignments within one bare value; at the next one the rest is added whole
)

// passwordMarks are what passwords have and words have not.
const passwordMarks = "0123456789!@#$%^&*~+?"

// tokenAssignment finds a random value assigned to an identifier with the
// keyword.
func (m *assignmentMatcher) tokenAssignment(start, end int) {
	if end < m.assignedEnd {
		return
	}
	if isInflected(m.text, end) {
		return
	}
	from, stop, quoted, ok := m.assigned(end)
	if literalFrom, literalStop, compared := m.comparedLiteral(start); !ok && compared {
		from, stop, quoted, ok = literalFrom, literalStop, true, true
	}
	value := m.text[from:stop]
	if !ok || !quoted && strings.IndexByte(value, '*') >= 0 { // arithmetic
		return
	}
	if m.tooManyInBare(from, quoted) || len(value) >= minToken && (randomValue(value) || quoted && isSymbolMix(value)) && !isFake(m.text, start) && !isMetadata(m.text, end) && !m.inARN(start) {
		m.addAssigned(ruleAssignment, from, stop)
	}
}

// addAssigned adds a value, to its end if it was cut at maxAssigned. Keywords
// inside it are not examined.
func (m *assignmentMatcher) addAssigned(rule ruleID, from, stop int) {
	if stop-from >= maxAssigned-1 {
		stop = m.run(stop, wordOr("-+/=."))
	}
	m.assignedEnd = max(m.assignedEnd, stop)
	m.add(rule, from, stop)
}

// passwordAssignment finds a password in code, in settings, on a command line
// or in a sentence. Values that read as a word are kept unless quoted
// ("password: required", "password is wrong").
func (m *assignmentMatcher) passwordAssignment(start, end int) {
	if end < m.assignedEnd {
		return
	}
	from, stop, quoted, ok := m.assigned(m.skipEnding(end))
	ok = ok && !isMetadata(m.text, end)
	if closing := m.toClosingQuote(from, stop, quoted); ok && closing > stop {
		stop, quoted = closing, true
	}
	if ok && (m.tooManyInBare(from, quoted) || isPasswordValue(m.text[from:stop], quoted)) {
		m.addAssigned(rulePassword, from, stop)
		return
	}
	if from, stop, ok := m.comparedLiteral(start); ok && isPasswordValue(m.text[from:stop], true) {
		m.add(rulePassword, from, stop)
		return
	}
	m.sentences.passwordInSentence(start, end)
}

// skipEnding returns the end of the word that ends at i but for an ending, as
// keywords of languages that inflect are stems: "парол" of "пароль". A longer
// rest is another word, and left to the parser of identifiers.
func (m *assignmentMatcher) skipEnding(i int) int {
	end := i
	for n := 0; end < len(m.text); n++ {
		r, size := utf8.DecodeRuneInString(m.text[end:])
		if isUnspaced(r) || !unicode.IsLetter(r) && !unicode.IsMark(r) {
			break
		}
		if n == maxEnding {
			return i
		}
		end += size
	}
	return end
}

// isMemberValue reports whether the identifier around i is itself a value, in
// quotation marks after a colon or an equals sign: {"type": "password", ...}.
func (m *assignmentMatcher) isMemberValue(i int) bool {
	from := m.back(i, maxName, isBase64URL)
	if from == 0 || strings.IndexByte("\"'", m.text[from-1]) < 0 {
		return false
	}
	operator := byteAt(m.text, m.back(from-1, 2, isBlank)-1)
	return operator == ':' || operator == '='
}

// comparedLiteral returns the literal that the identifier around i is compared
// with, before it: "hunter2" == password.
func (m *assignmentMatcher) comparedLiteral(i int) (from, stop int, ok bool) {
	i = m.back(i, maxName, wordOr(".$"))
	i = m.back(i, 2, isBlank)
	operator := m.back(i, 3, in("=!"))
	if i-operator < 2 {
		return 0, 0, false
	}
	stop = m.back(operator, 2, isBlank) - 1
	quote := byteAt(m.text, stop)
	if quote != '"' && quote != '\'' {
		return 0, 0, false
	}
	from = m.back(stop, maxQuoted, func(c byte) bool { return c > ' ' && c != quote })
	return from, stop, from < stop && byteAt(m.text, from-1) == quote
}

// toClosingQuote returns the end of a password with blanks in quotation marks.
// Its first word must not be a word of a sentence.
func (m *assignmentMatcher) toClosingQuote(from, stop int, quoted bool) int {
	if quoted || from == 0 || strings.IndexByte("\"'`", m.text[from-1]) < 0 || !strings.ContainsAny(m.text[from:stop], passwordMarks) {
		return stop
	}
	return stop + max(0, strings.IndexByte(m.line(stop, maxQuoted), m.text[from-1]))
}

// shortPassword is passwordAssignment for names such as pass, pw and psk, which
// are also parts of words. They count only at the end of an identifier, and
// before an equals sign, a colon or, as a flag, a blank.
func (m *assignmentMatcher) shortPassword(start, end int) {
	t := m.text
	if end < m.assignedEnd || isBase64URL(byteAt(t, end)) {
		return
	}
	hump := start > 0 && isUpper(t[start]) && !isUpper(t[start-1])
	if isLetter(byteAt(t, start-1)) && !hump && !m.isFlag(start) {
		return
	}
	from, stop, quoted, ok := m.assigned(end)
	switch value := t[from:stop]; {
	case !ok:
		return
	case m.tooManyInBare(from, quoted):
	case !isPasswordValue(value, quoted):
		return
	case strings.Trim(t[end:from], "\"'`\\)]* \t:=>!") != "" || !quoted && (!hasDigitAndLetter(value) || isDotted(value)):
		return // "pass is 5th", f(pass, "slices"), "pass: all"
	case strings.IndexByte(t[end:from], '=') < 0 && byteAt(t, start-1) == ' ' &&
		strings.Trim(t[m.back(start, maxName, func(c byte) bool { return c != '\n' }):start], " \t") != "":
		return // "--- PASS: Test2", "boarding pass: LH1234"
	}
	m.addAssigned(rulePassword, from, stop)
}

// inARN reports whether the keyword at i is part of the name of an AWS
// resource: arn:aws:secretsmanager:...:secret:name.
func (m *assignmentMatcher) inARN(i int) bool {
	return strings.HasPrefix(m.text[m.back(i, 100, wordOr(":-/")):], "arn:")
}

// isPasswordValue reports whether the value of a password may be genuine.
func isPasswordValue(value string, quoted bool) bool {
	if len(value) < minPassword || isPlaceholderValue(value) || distinctBytes(value) < 3 || looksLikePath(value) ||
		!strings.ContainsFunc(value, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return false
	}
	if !quoted && (value[0] == '*' || value[0] == '&') && !strings.ContainsFunc(value[1:], func(r rune) bool { return r >= 0x80 || !isWord(byte(r)) }) {
		return false // a pointer
	}
	return quoted || strings.ContainsAny(value, passwordMarks) || hasMixedCase(value)
}

// assigned parses what follows a keyword that ends at i: the rest of its
// identifier, an operator, a value. It returns the value without quotes.
func (m *assignmentMatcher) assigned(i int) (from, stop int, quoted, ok bool) {
	text := m.text
	at := m.runTo(i, maxName, isBase64URL)
	if at < len(text) && at > i && text[at-1] == '-' { // "token->..." and dashes of prose
		return 0, 0, false, false
	}
	if n := m.runTo(min(at+1, len(text)), 5, isDigit); byteAt(text, at) == '[' && byteAt(text, n) == ']' { // char password[20]
		at = n
	}
	at = m.run(at, in("\"'`\\)]*"))
	gapEnd := min(len(text), at+maxGap)
	blank := m.runTo(at, maxGap, in(" \t"))
	value, multiline := operator(text, blank, gapEnd)
	switch {
	case value >= 0:
	case typedOperator(text, blank, gapEnd) >= 0:
		value = typedOperator(text, blank, gapEnd)
	case blank > at && (m.isFlag(i) || m.isDockerfileName(i)):
		value = blank
	case strings.HasPrefix(text[blank:], "| ") && m.isTableCell(blank+2):
		value = blank + 2
	default:
		if value = m.terraformDefault(blank); value < 0 {
			return 0, 0, false, false
		}
	}
	op := text[value-1]
	compared := strings.HasPrefix(text[blank:], "!=") || strings.HasPrefix(text[blank:], "===")
	if multiline {
		value = m.runTo(value, maxGap, in(" \t\r\n"))
	} else {
		value = m.runTo(value, maxGap, in(" \t"))
	}
	if op == ',' && m.isMemberValue(i) {
		return 0, 0, false, false
	}
	switch {
	case op == '=' && m.inConnectionString(i):
		from, stop = m.connectionValue(value)
		return from, stop, true, stop > from
	case op == ':':
		value = m.skipType(value)
	}
	from, stop, quoted, ok = m.value(m.skipMarkdown(value))
	return from, stop, quoted, ok && (quoted || op != ',' && !compared) // between arguments and in comparisons only a literal is a value
}

// operator returns the end of an assignment operator at i, or -1. With
// multiline the value may be on the next line. "value:" on the next line is how
// Kubernetes writes an environment, value= after a key how .NET writes
// settings.
func operator(text string, i, limit int) (end int, multiline bool) {
	rest := text[i:limit]
	for _, op := range [...]string{":::=", "::=", ":=", "=>", "->", "→", "!==", "!=", "===", "==", "?=", ".=", "||=", "=", ":", ",", ">"} {
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
	if len(line) < len(rest) && strings.HasPrefix(line, "value:") || byteAt(text, i-1) == ' ' && strings.HasPrefix(rest, "value=") {
		return i + len(rest) - len(line) + len("value:"), false
	}
	return -1, false
}

// typedOperator skips one word, the type of a declaration ("var token string =
// ..."), before an equals sign. It returns -1 if there is none.
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

// isFlag reports whether the identifier around i is a command line flag, whose
// value follows a blank.
func (m *assignmentMatcher) isFlag(i int) bool {
	from := m.back(i, maxName, isBase64URL)
	return byteAt(m.text, from) == '-' && (from == 0 || m.text[from-1] <= ' ')
}

// literal returns the contents of the quoted string at i, which ends on the
// same line. Backslashes before the quote, as in a JSON string, must also
// precede the closing one. If ok is false from is where a bare value would
// begin.
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
	if strings.HasPrefix(text[i:], `@"`) { // of C# and Objective-C
		i++
	}
	if from, stop, ok = literal(text, i); ok {
		return from, stop, true, true
	}
	limit := min(len(text), from+maxAssigned)
	stop = m.bareEnd(from, limit)
	if stop < limit && strings.IndexByte("([{<", text[stop]) >= 0 {
		if stop > from && closesElement(text, from, stop) {
			return from, stop, false, true
		}
		if argument := constructorLiteral(text, from, stop); argument > 0 {
			return m.value(argument)
		}
		whole := m.runTo(from, maxQuoted, func(c byte) bool { return c > ' ' && c < 0x7f })
		whole = from + len(strings.TrimRight(text[from:whole], "\"'`,;"))
		if value := text[from:whole]; isSymbolMix(value) && !isBalanced(value) {
			return from, whole, true, true
		}
		return 0, 0, false, false // a call, an index, a template
	}
	for stop > from && strings.IndexByte(".:", text[stop-1]) >= 0 && (stop == limit || text[stop] <= ' ') {
		stop-- // the end of a sentence
	}
	return from, stop, false, stop > from
}

// bareEnds are the bytes that end a bare value.
var bareEnds = func() (ends [256]bool) {
	for c := range ends {
		ends[c] = c <= ' ' || c >= 0x7f || strings.IndexByte("\"'`,;<>()[]{}|\\", byte(c)) >= 0
	}
	return ends
}()

// bareEnd returns the end of the bare value at i, at most limit. One that
// begins within the value that was read last ends where that does, so that a
// value made of assignments is read once and not at each of them.
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
	if stop == limit { // with more text, a parameter may begin here
		known -= maxName + 1
	}
	m.bareEndKnown = max(m.bareEndKnown, known)
	return stop
}

// tooManyInBare counts an assignment and reports whether there are so many in
// one bare value that examining each would cost too much. No key is named that
// often: the rest of the value is taken for a secret.
func (m *assignmentMatcher) tooManyInBare(from int, quoted bool) bool {
	if quoted || from < m.bareStart || from > m.bareEndKnown {
		return false
	}
	m.bareCount++
	return m.bareCount > maxBareAssignments
}
