package documents

// value returns the next value, or false if there is none: at the end, at an
// operator, which is then read, and within too many arrays and dictionaries. A
// value that is missing before >> or ] is nil, as ledongthuc/pdf has it.
func (l *pdfLexer) value(depth int) (any, bool) {
	token, ok := l.token()
	if !ok || depth > maxNesting {
		return nil, false
	}
	switch t := token.(type) {
	case int64:
		if !l.content {
			return l.reference(t)
		}
	case pdfWord:
		switch t {
		case "null", ">>", "]":
			return nil, true
		case "true", "false":
			return t == "true", true
		case "[":
			return l.array(depth)
		case "<<":
			return l.dictionary(depth)
		}
		return nil, false
	}
	return token, true
}

// reference returns the reference that begins with a number, or the number.
func (l *pdfLexer) reference(n int64) (any, bool) {
	after := l.at
	if generation, ok := l.token(); ok {
		if g, ok := generation.(int64); ok {
			switch word, _ := l.token(); word {
			case pdfWord("R"):
				return pdfRef{n, g}, true
			case pdfWord("obj"):
				return nil, false // an object within a value
			}
		}
	}
	l.at = after
	return n, true
}

func (l *pdfLexer) array(depth int) (any, bool) {
	var values []any
	for {
		before := l.at
		token, ok := l.token()
		if !ok {
			return nil, false
		}
		if token == pdfWord("]") {
			return values, true
		}
		l.at = before
		v, ok := l.value(depth + 1)
		if !ok {
			return nil, false
		}
		values = append(values, v)
	}
}

func (l *pdfLexer) dictionary(depth int) (any, bool) {
	values := map[pdfName]any{}
	for {
		token, ok := l.token()
		if !ok {
			return nil, false
		}
		if token == pdfWord(">>") {
			return values, true
		}
		key, ok := token.(pdfName)
		if !ok {
			return nil, false
		}
		if values[key], ok = l.value(depth + 1); !ok {
			return nil, false
		}
	}
}

// stream returns where the data of a stream begins, after its dictionary, or
// false if no stream follows.
func (l *pdfLexer) stream() (int, bool) {
	if word, _ := l.token(); word != pdfWord("stream") {
		return 0, false
	}
	if l.at < len(l.data) && l.data[l.at] == '\r' {
		l.at++
	}
	if l.at < len(l.data) && l.data[l.at] == '\n' {
		l.at++
	}
	return l.at, true
}

// digit returns the value of a hexadecimal digit, or -1.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func isPDFSpace(c byte) bool { return pdfClass[c] == 1 }

func isDelimiter(c byte) bool { return pdfClass[c] != 0 }

// pdfClass has 1 for white space, and 2 for what else ends a word.
var pdfClass = func() (class [256]byte) {
	for i, set := range []string{"\x00\t\n\f\r ", "<>()[]{}/%"} {
		for _, c := range []byte(set) {
			class[c] = byte(i + 1)
		}
	}
	return class
}()
