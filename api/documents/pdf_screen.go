package documents

import (
	"bytes"
	"compress/zlib"
	"io"
	"iter"
)

// ledongthuc/pdf believes what a PDF says of its own structure. A file of 231
// bytes can make it overflow the stack, allocate terabytes or loop for ever, and
// no recover helps against that. So a file is screened before the library sees
// it: here for its tables of objects, in pdf_container.go for the streams that
// hold objects. What these reject, no honest program writes.

const (
	maxPDFObjects   = 1 << 20
	maxPDFStructure = 8 << 20   // of a stream that holds objects or their table, inflated
	maxPDFScreening = 256 << 20 // bytes that are read or inflated for screening
)

// pdfScreen checks a file at all places that could be what it looks for, as the
// library may be led anywhere.
type pdfScreen struct {
	body     []byte
	inflated map[int64]int64 // the sizes of streams by where their data begins
	left     int             // of maxPDFScreening
}

// tables checks the tables of objects, which are in plain text or in streams.
func (s *pdfScreen) tables() error {
	streams := false
	for at := range occurrences(s.body, "/") {
		l := pdfLexer{data: s.body, at: at}
		switch token, _ := l.token(); token {
		case pdfName("Encrypt"):
			return ErrUnsupported
		case pdfName("XRef"):
			streams = true
		}
	}
	for at := range occurrences(s.body, "xref") {
		l := pdfLexer{data: s.body, at: at + len("xref")}
		if !plainTable(&l) || !s.spend(l.at-at) {
			return ErrMalformed
		}
	}
	if !streams {
		return nil
	}
	for at := range occurrences(s.body, "obj") {
		l := pdfLexer{data: s.body, at: at + len("obj")}
		if word, _ := l.token(); word != pdfWord("<<") {
			continue
		}
		if !s.table(&l) || !s.spend(l.at-at) {
			return ErrMalformed
		}
	}
	return nil
}

// spend reports whether screening may read that much more.
func (s *pdfScreen) spend(n int) bool {
	s.left -= n
	return s.left >= 0
}

// occurrences returns the places of a word in a file.
func occurrences(body []byte, word string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 0; ; at += len(word) {
			i := bytes.Index(body[at:], []byte(word))
			if i < 0 || !yield(at+i) {
				return
			}
			at += i
		}
	}
}

// plainTable reports whether the sections of a table are of a size that memory
// is there for. It stops where the table does.
func plainTable(l *pdfLexer) bool {
	for {
		from, ok := l.integer()
		n, isInt := l.integer()
		if !ok || !isInt {
			return true
		}
		if !isRange(from, n) {
			return false
		}
		for range n {
			_, isOffset := l.integer()
			_, isGeneration := l.integer()
			if word, _ := l.token(); !isOffset || !isGeneration || word != pdfWord("n") && word != pdfWord("f") {
				return true
			}
		}
	}
}

// integer reads a token and returns it if it is an integer.
func (l *pdfLexer) integer() (int64, bool) {
	token, _ := l.token()
	n, ok := token.(int64)
	return n, ok
}

// table reports whether the dictionary that begins here, and the table that may
// follow in a stream, can be read.
func (s *pdfScreen) table(l *pdfLexer) bool {
	value, ok := l.dictionary(0)
	if !ok {
		return false
	}
	dict := value.(map[pdfName]any)
	data, ok := l.stream()
	if !ok || dict["Type"] != pdfName("XRef") {
		return true
	}
	size, _ := dict["Size"].(int64)
	index, ok := dict["Index"].([]any)
	if !ok {
		index = []any{int64(0), size}
	}
	total := int64(0)
	for i := 1; i < len(index); i += 2 {
		from, _ := index[i-1].(int64)
		n, _ := index[i].(int64)
		if total += n; !isRange(from, n) || total > maxPDFObjects {
			return false
		}
	}
	if !isRange(0, size) || !plainWidths(dict) {
		return false
	}
	_, ok = s.inflate(dict, int64(data), s.body[data:])
	return ok
}

// isRange reports whether n objects from one on are objects that may exist.
func isRange(from, n int64) bool {
	return from >= 0 && n >= 0 && from <= maxPDFObjects && n <= maxPDFObjects-from
}

// plainWidths reports whether the entries of a table have one to 64 bytes.
func plainWidths(dict map[pdfName]any) bool {
	widths, _ := dict["W"].([]any)
	sum := int64(0)
	for _, w := range widths {
		width, ok := w.(int64)
		if !ok || width < 0 || width > 8 {
			return false
		}
		sum += width
	}
	return sum > 0 && len(widths) <= 8
}

// inflate returns the data of a stream that begins at a place of the file. It
// returns false if that is beyond a bound or compressed in a way that structures
// of files are not. What is broken ends early, as it does for the library.
func (s *pdfScreen) inflate(dict map[pdfName]any, at int64, data []byte) ([]byte, bool) {
	if !plainFilter(dict) {
		return nil, false
	}
	if dict["Filter"] == nil {
		return data, true
	}
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, true
	}
	decoded, _ := io.ReadAll(io.LimitReader(z, maxPDFStructure+1))
	s.inflated[at] = int64(len(decoded))
	return decoded, len(decoded) <= maxPDFStructure && s.spend(len(decoded))
}
