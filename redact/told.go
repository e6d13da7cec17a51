package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a sentence that tells a secret, in bytes and words.
const (
	maxTold      = 128 // from the keyword to the end of the value
	maxToldFirst = 96  // from the value to a keyword after it
	maxToldWords = 10  // between keyword and value
	maxEnding    = 5   // letters of a keyword's ending
	maxBetween   = 3   // words from the copula to a keyword after the value
	maxToldValue = 128
)

// token is a part of a sentence.
type token struct {
	sort     tokenSort
	from, to int // without quotation marks
	next     int // where the token after it begins
}

type tokenSort uint8

const (
	tokenEnd tokenSort = iota
	tokenWord
	tokenQuoted
	tokenLink // a colon, an arrow, a dash
	tokenComma
)

// quotes are opening quotation marks and those that may close them.
var quotes = map[rune]string{
	'"': `"`, '`': "`", '\'': "'", '“': "”“", '„': "“”\"", '”': "”", '«': "»", '»': "«", '‘': "’", '‚': "‘’", '「': "」", '『': "』", '‹': "›",
}

// told finds the secret that a sentence gives for w, which is at [start, end):
// "my password for the router is still X", "X is the key". What stands between
// the two may be a copula or a colon, words for the purpose, quotation marks.
// The less of that shows a value, the less like a word the value must look.
// It reports whether it found one.
func (m *sentenceMatcher) told(start, end int, w secretWord) bool {
	if m.withinWord(start, w) || m.tooManyInRun(start) {
		return false
	}
	end, ok := m.ending(end, w)
	if !ok {
		return false
	}
	after := m.lastCandidate(end, m.endOfLine(end), w.kind, w.kind == kindPassword)
	from := max(0, start-maxToldFirst)
	from += strings.LastIndexByte(m.text[from:start], '\n') + 1
	before := m.lastCandidate(from, start, w.kind, false)
	if after < 0 && before < 0 || w.kind == kindKey && m.isOtherKey(start, end) {
		return false
	}
	found := after >= 0 && m.toldAfter(start, end, after, w)
	return before >= 0 && m.toldBefore(start, end, w) || found
}

// endOfLine returns the end of the line at i, at most maxTold bytes from it. A
// line continues in the next one if nothing or a colon ends it.
func (m *sentenceMatcher) endOfLine(i int) int {
	window := m.after(i, maxTold)
	at := strings.IndexByte(window, '\n')
	if line := strings.TrimRight(window[:max(0, at)], " \r"); at < 0 || line == "" || strings.HasSuffix(line, ":") {
		return i + len(window)
	}
	return i + at
}

// maxTellingWords is how many keywords are read within one run without blanks.
// More are not in a sentence.
const maxTellingWords = 12

// tooManyInRun counts a keyword at i. Runs are those that no blank ends within
// maxTold bytes.
func (m *sentenceMatcher) tooManyInRun(i int) bool {
	if i >= m.runEnd {
		m.runEnd, m.inRun = m.runTo(i, maxTold, func(c byte) bool { return c > ' ' }), 0
	}
	m.inRun++
	return m.inRun > maxTellingWords
}

// minTold is the length of the shortest values, by kind.
var minTold = [...]int{kindPassword: 4, kindPIN: 4, kindCode: 4, kindKey: minToldKey}

// lastCandidate returns where the last digit is within a run that is long enough
// for a value or, if quoted values may be words, the last quotation mark; -1 if
// there is none. It is what most sentences cost.
func (m *sentenceMatcher) lastCandidate(from, to int, k kind, quoted bool) int {
	t := m.text
	for i := to - 1; i >= from; i-- {
		c := t[i]
		if !isDigit(c) {
			if quoted && (c == '"' || c == '`' || c == '\'' && t[i-1] == ' ' || c >= 0xc2 && startsQuote(t[i:])) {
				return i
			}
			continue
		}
		first := m.back(i, i-from, isValueByte)
		if m.runTo(i, maxToldValue, isValueByte)-first >= minTold[k] {
			return i
		}
		i = first
	}
	return -1
}

// isValueByte reports whether c may be within a value that is not quoted.
func isValueByte(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '(' && c != '<' }

// startsQuote reports whether text begins with one of quotes outside ASCII.
func startsQuote(text string) bool {
	switch text[0] {
	case 0xc2, 0xe2, 0xe3:
		r, _ := utf8.DecodeRuneInString(text)
		return quotes[r] != ""
	}
	return false
}

// withinWord reports whether the keyword at start is the end of another word:
// "monkey". Names of Germanic languages are written together ("Routerpasswort"),
// so long keywords may end one.
func (m *sentenceMatcher) withinWord(start int, w secretWord) bool {
	before, _ := utf8.DecodeLastRuneInString(m.text[:start])
	first, _ := utf8.DecodeRuneInString(m.text[start:])
	if before == '?' || before == '&' { // a parameter
		return true
	}
	if isUnspaced(first) || isSemitic(first) || !unicode.IsLetter(before) && !unicode.IsDigit(before) || isUnspaced(before) {
		return false
	}
	switch {
	case w.kind == kindPassword:
		return utf8.RuneCountInString(w.text) <= maxEnding
	case w.kind == kindCode:
		return !m.hasObject(m.back(start, 24, func(c byte) bool { return c > ' ' }), start)
	default: // apiKey
		return !(isUpper(m.text[start]) && before >= 'a' && before <= 'z')
	}
}

// ending skips the ending of the keyword before i. It is not ok if the word
// continues as another one.
func (m *sentenceMatcher) ending(i int, w secretWord) (end int, ok bool) {
	n, limit := 0, maxEnding
	if w.compound { // English
		limit = len("es")
	}
	for i < len(m.text) {
		r, size := utf8.DecodeRuneInString(m.text[i:])
		if isUnspaced(r) || !unicode.IsLetter(r) && !unicode.IsMark(r) {
			break
		}
		i += size
		n++
	}
	switch c := byteAt(m.text, i); {
	case n > limit:
		return i, false
	case c == '\'' && byteAt(m.text, i+1) == 's': // the router password's
		return i + 2, true
	case c == '-' || c == '.' || c == '/':
		return i, !isLetter(byteAt(m.text, i+1))
	default:
		return i, c != '_' && c != '(' && !isDigit(c)
	}
}

// isOtherKey reports whether the key at [start, end) is one that is no secret:
// "cache key", "key fingerprint".
func (m *sentenceMatcher) isOtherKey(start, end int) bool {
	stop := start
	for stop > 0 && strings.IndexByte(" _-", m.text[stop-1]) >= 0 {
		stop--
	}
	from := m.back(stop, 20, func(c byte) bool { return isLetter(c) || c >= 0x80 })
	for i := stop - 1; i > from; i-- { // cacheKey
		if isUpper(m.text[i]) && !isUpper(m.text[i-1]) {
			from = i
		}
	}
	if lexicon().roles[strings.ToLower(m.text[from:stop])]&roleOther != 0 || isFake(m.text, start) {
		return true
	}
	i := m.runTo(end, 1, isBlank)
	next := m.text[i:m.runTo(i, 16, isLetter)]
	return isOneOf(next, metadataWords) || strings.EqualFold(next, "id")
}

// hashWords say that hex digits are no key.
var hashWords = []string{"commit", "hash", "sha", "digest", "checksum", "fingerprint", "revision", "md5", "etag"}

// state is what the words that were read say about the next one.
type state struct {
	linked bool // a copula or a colon came, and at most fillers since
	direct bool // nothing came but the keyword
	colon  bool // the value may be on the next line
	comma  bool // nothing came since a comma
	clause bool // another clause began after a comma
	into   bool // the word before was "to"
	hash   bool // a word such as commit or checksum came
	list   bool // a value came
}

// toldAfter finds the values after the keyword.
// None begins after last.
func (m *sentenceMatcher) toldAfter(start, end, last int, w secretWord) bool {
	limit := min(len(m.text), end+maxTold)
	s := state{direct: true, colon: strings.HasPrefix(strings.TrimLeft(m.after(end, 4), " \r"), "\n")}
	i, found := end, false
	for range maxToldWords {
		if i > last && !found {
			return false
		}
		t := m.token(i, limit, s.colon)
		i = t.next
		if t.sort == tokenEnd {
			return found
		}
		if t.sort == tokenLink {
			s.linked, s.colon = true, true
			limit = min(len(m.text), i+maxTold)
			continue
		}
		if t.sort == tokenComma {
			s.comma = true
			continue
		}
		word := m.text[t.from:t.to]
		r, _ := utf8.DecodeRuneInString(word)
		if isUnspaced(r) {
			particle := hasAnySuffix(word, lexicon().particles)
			s.linked = particle || s.linked && s.colon
			s.direct = s.direct && particle
			if found {
				return true
			}
			continue
		}
		if s.into && hasDigit(word) {
			s.linked = s.linked || m.changes(start, t.from, t.next)
		}
		if m.isValue(t, w, s) && (w.kind != kindCode || m.hasObject(m.wordsBefore(start, 2), t.from)) {
			m.add(w.rule(), t.from, m.valueEnd(t))
			found, s.list, s.linked = true, true, true
			limit = min(len(m.text), t.next+maxTold)
			continue
		}
		role := w.role(word)
		switch {
		case s.list && role&(roleAnd|roleOpen|roleAs) == 0:
			return found
		case s.list:
		case s.direct && w.compound && w.kind <= kindPIN && role == 0 && !s.linked:
			return false
		case role&roleCopula != 0:
			s.linked = true
		case role&roleInto != 0:
			s.into = true
		case role&roleFiller != 0:
		default:
			s.into, s.linked = false, s.linked && role&roleAnd != 0
			s.clause = s.clause || s.comma && role == 0
			s.hash = s.hash || isOneOf(word, hashWords)
		}
		s.direct, s.colon, s.comma = false, false, false
	}
	return found
}

// toldBefore finds the value before the keyword: "X is my password", "use X as
// the password".
func (m *sentenceMatcher) toldBefore(start, end int, w secretWord) bool {
	if w.compound && w.kind <= kindPIN {
		if t := m.token(end, min(len(m.text), end+32), false); t.sort == tokenWord {
			if w.role(m.text[t.from:t.to]) == 0 && !isUnspacedAt(m.text, t.from) {
				return false
			}
		}
	}
	i := m.clauseStart(start)
	var value token
	linked, between := false, 0
	for range 2 * maxToldWords {
		if i >= start {
			break
		}
		t := m.token(i, start, false)
		i = t.next
		switch t.sort {
		case tokenEnd:
			i = start // blanks
			continue
		case tokenLink:
			if linked = value.sort != tokenEnd; m.text[t.next-1] == ':' {
				value, linked = token{}, false
			}
			continue
		case tokenComma:
			continue
		}
		word := m.text[t.from:t.to]
		if isUnspacedAt(m.text, t.from) {
			if value.sort != tokenEnd && hasAnyPrefix(word, lexicon().particles) {
				linked = true
			} else if !linked {
				value = token{}
			}
			continue
		}
		if w.kind != kindCode && m.isValue(t, w, state{linked: true}) && (t.sort == tokenWord || hasDigitAndLetter(word)) {
			value, linked, between = t, false, 0
			continue
		}
		role := w.role(word)
		switch {
		case value.sort == tokenEnd:
		case role&(roleCopula|roleAs) != 0:
			linked, between = true, 0
		case role&roleBlock != 0, !linked, between >= maxBetween:
			value = token{}
		default:
			between++
		}
	}
	if value.sort == tokenEnd || !linked {
		return false
	}
	m.add(w.rule(), value.from, m.valueEnd(value))
	return true
}

// clauseStart returns where the sentence around i begins, at most maxToldFirst
// bytes before it, at a word.
func (m *sentenceMatcher) clauseStart(i int) int {
	from := max(0, i-maxToldFirst)
	cut := from > 0
	for from < i && !utf8.RuneStart(m.text[from]) {
		from++
	}
	window := m.text[from:i]
	for _, mark := range [...]string{"\n", ". ", "! ", "? ", "; ", "。", "！", "？"} {
		if at := strings.LastIndex(window, mark); at >= 0 {
			if r, _ := utf8.DecodeRuneInString(window[at+len(mark):]); mark[0] <= '?' && unicode.IsLower(r) {
				continue // "take Kestrel8! as ..."
			}
			from += at + len(mark)
			window = m.text[from:i]
			cut = false
		}
	}
	if cut { // not within a value
		if blank := strings.IndexByte(window, ' '); blank >= 0 {
			return from + blank
		}
		return i
	}
	return from
}

func isUnspacedAt(text string, i int) bool {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return isUnspaced(r)
}

func isUnspacedText(text string) bool { return isUnspacedAt(text, 0) }

func hasAnyPrefix(word string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(word, p) {
			return true
		}
	}
	return false
}

func hasAnySuffix(word string, suffixes []string) bool {
	for _, p := range suffixes {
		if strings.HasSuffix(word, p) {
			return true
		}
	}
	return false
}

// changes reports whether a word for a change is near a keyword.
func (m *sentenceMatcher) changes(start, i, next int) bool {
	around := m.before(start, 40) + " " + strings.ToLower(m.text[start:i]) + strings.ToLower(m.after(next, 64))
	for word := range strings.FieldsSeq(around) {
		if lexicon().changes.of(word) {
			return true
		}
	}
	return false
}

// wordsBefore returns the start of the word n words before i.
func (m *sentenceMatcher) wordsBefore(i, n int) int {
	const maxWord = 24
	i = m.back(i, maxWord, func(c byte) bool { return c > ' ' }) // Türcode
	for range n {
		i = m.back(m.back(i, 2, isBlank), maxWord, func(c byte) bool { return c > ' ' })
	}
	return i
}

// hasObject reports whether one of the words in the text begins with an object.
func (m *sentenceMatcher) hasObject(from, to int) bool {
	for word := range strings.FieldsSeq(strings.ToLower(m.text[from:to])) {
		if i := strings.IndexAny(word, "'’"); i >= 0 && i < 3 { // d'entrée
			word = strings.TrimLeft(word[i:], "'’")
		}
		if lexicon().objects.of(word) {
			return true
		}
	}
	return false
}

// token returns the part of the sentence at i. With lines, the sentence may go
// on in the next line, also as an item of a list.
func (m *sentenceMatcher) token(i, limit int, lines bool) token {
	t := m.text
	for i < limit && (t[i] == ' ' || t[i] == '\t' || t[i] == '*' || lines && strings.IndexByte("\r\n", t[i]) >= 0) {
		i++
	}
	if i >= limit {
		return token{}
	}
	r, size := utf8.DecodeRuneInString(t[i:limit])
	switch r {
	case ':', '：', '=', '→', '—', '–', '➜', '⇒':
		return token{sort: tokenLink, next: i + size}
	case '-':
		next := byteAt(t, i+1)
		if next == '>' {
			return token{sort: tokenLink, next: i + 2}
		}
		if next == ' ' {
			return token{sort: tokenLink, next: i + 1}
		}
	case ',', '，', '、', '・':
		return token{sort: tokenComma, next: i + size}
	case '(', '（':
		if closing := strings.IndexAny(t[i:min(limit, i+48)], ")）"); closing > 0 {
			_, n := utf8.DecodeRuneInString(t[i+closing:])
			return token{sort: tokenComma, next: i + closing + n}
		}
		return token{}
	}
	if closing, ok := quotes[r]; ok {
		from := i + size
		if n := strings.IndexAny(t[from:min(limit, from+maxQuoted)], closing); n > 0 && !strings.Contains(t[from:from+n], "\n") {
			_, width := utf8.DecodeRuneInString(t[from+n:])
			return token{sort: tokenQuoted, from: from, to: from + n, next: from + n + width}
		}
		return token{sort: tokenComma, next: from}
	}
	stop := m.endOfWord(i, limit)
	to := i + len(strings.TrimRight(t[i:stop], ".:!?;,"))
	if to == i {
		return token{}
	}
	if r, _ := utf8.DecodeRuneInString(strings.TrimLeft(t[stop:min(stop+8, limit)], " ")); to < stop && byteAt(t, stop) == ' ' && unicode.IsLower(r) {
		to += strings.LastIndexAny(t[to:stop], "!?") + 1 // "take Kestrel8! as ..."
	}
	next := to
	for next < stop && t[next] != ':' && t[next] != ',' {
		if c := byteAt(t, next+1); (t[next] == '.' || t[next] == '?' || t[next] == ';' || t[next] == '!') && c <= ' ' {
			break // the next token is the end of the sentence
		}
		next++
	}
	return token{sort: tokenWord, from: i, to: to, next: next}
}

// endOfWord returns the end of the word at i: a blank, a bracket, a quotation
// mark, or a letter of a script without blanks after one of another, and the
// other way.
func (m *sentenceMatcher) endOfWord(i, limit int) int {
	first := true
	unspaced := false
	for j, r := range m.text[i:limit] {
		if first {
			unspaced, first = isUnspaced(r), false
			continue
		}
		switch {
		case r <= ' ', strings.ContainsRune("\"`<>()[]{},，。！？、（）：→", r), isUnspaced(r) != unspaced && r > ' ' && (isUnspaced(r) || unspaced):
			return i + j
		case r >= utf8.RuneSelf && quotes[r] != "" && r != '’' && r != '‘', r == '」' || r == '』' || r == '»' || r == '।' || r == '؟':
			return i + j
		}
	}
	return limit
}

// rule returns the rule of the secrets that w announces.
func (w secretWord) rule() ruleID {
	switch w.kind {
	case kindPIN, kindCode:
		return ruleCode
	case kindKey:
		return ruleAssignment
	default:
		return rulePassword
	}
}

// valueEnd returns the end of a value: without the ending that Turkish adds
// after an apostrophe.
func (m *sentenceMatcher) valueEnd(t token) int {
	word := m.text[t.from:t.to]
	if i := strings.LastIndexAny(word, "'’"); t.sort == tokenWord && i >= minPassword && strings.IndexFunc(word[i+1:], unicode.IsDigit) < 0 {
		return t.from + i
	}
	return t.to
}

// isValue reports whether a token is what w announces.
func (m *sentenceMatcher) isValue(t token, w secretWord, s state) bool {
	if t.to-t.from < minTold[w.kind] || !hasDigit(m.text[t.from:t.to]) && t.sort != tokenQuoted {
		return false
	}
	value := m.text[t.from:m.valueEnd(t)]
	linked := s.linked && !s.clause || s.list || m.isPostposed(t)
	switch w.kind {
	case kindPIN, kindCode:
		return isCode(value, w.kind) && (linked || w.zero && m.endsClause(t))
	case kindKey:
		return len(value) <= maxToldValue && !(s.hash && isHexWord(value)) && isToldKey(value, linked || s.direct)
	}
	if isDigits(value) && len(value) >= 4 && len(value) <= 12 {
		return linked && !s.list && (len(value) >= 6 || isUnspacedText(w.text)) && m.endsClause(t)
	}
	need := 3
	switch {
	case t.sort == tokenQuoted && (linked || s.direct):
		need = 1
	case linked:
		need = 2
	case s.direct && w.zero && len(value) >= 8 && (transitions(value) >= 2 || m.endsClause(t) && digitsIn(value) >= 3): // not "Windows11"
		need = 2
	}
	return passwordStrength(value, t.sort == tokenQuoted) >= need
}

// isPostposed reports whether a token is followed by a copula, as in Hindi,
// Japanese and Korean.
func (m *sentenceMatcher) isPostposed(t token) bool {
	i := m.runTo(t.next, 1, isBlank)
	if i >= len(m.text) || m.text[i] < utf8.RuneSelf {
		return false
	}
	word := m.text[i:m.endOfWord(i, min(len(m.text), i+24))]
	return lexicon().roles[word]&roleAfter != 0 || isUnspacedAt(m.text, i) && hasAnyPrefix(word, lexicon().postposed)
}

// endsClause reports whether nothing or no other word follows a token.
func (m *sentenceMatcher) endsClause(t token) bool {
	i := m.run(t.next, in(" \"'`*#)"))
	r, _ := utf8.DecodeRuneInString(m.text[min(i, len(m.text)):])
	return i >= len(m.text) || !unicode.IsLetter(r) || m.isPostposed(t) || lexicon().roles[strings.ToLower(m.text[i:m.wordEnd(i)])]&(roleAnd|roleFiller|roleOpen) != 0
}
