package documents

import (
	"reflect"

	"github.com/ledongthuc/pdf"
)

// containers checks the streams that hold other objects. They are found in the
// table that the library has read, which it doesn't export: another version of
// it may have none, and then this panics and the PDF counts as malformed.
//
// The library follows a container that is itself in a container without end, and
// at the end of one it waits for a string to be closed without end.
func (s *pdfScreen) containers(r *pdf.Reader) error {
	table := reflect.ValueOf(r).Elem().FieldByName("xref")
	checked := map[uint64]bool{}
	for i := range table.Len() {
		entry := table.Index(i)
		if !entry.FieldByName("inStream").Bool() {
			continue
		}
		number, more := entry.FieldByName("stream").FieldByName("id").Uint(), true
		for more && !checked[number] && number < uint64(table.Len()) {
			checked[number] = true
			dict, ok := s.container(table, number)
			if !ok {
				return ErrMalformed
			}
			var next pdfRef
			next, more = dict["Extends"].(pdfRef) // where the library looks next
			number = uint64(next.number)
		}
	}
	return nil
}

// container returns the dictionary of a container, or false if it can't be read.
func (s *pdfScreen) container(table reflect.Value, number uint64) (map[pdfName]any, bool) {
	l, ok := s.object(table, number)
	if !ok {
		return nil, false
	}
	if word, _ := l.token(); word != pdfWord("<<") {
		return nil, false
	}
	value, ok := l.dictionary(0)
	if !ok {
		return nil, false
	}
	dict := value.(map[pdfName]any)
	data, ok := l.stream()
	length, isLength := s.length(table, dict["Length"])
	if !ok || !isLength || dict["Type"] != pdfName("ObjStm") {
		return nil, false
	}
	length = min(max(length, 0), int64(len(s.body)-data))
	decoded, ok := s.inflate(dict, int64(data), s.body[data:int64(data)+length])
	count, isCount := dict["N"].(int64)
	first, isFirst := dict["First"].(int64)
	ok = ok && isCount && count <= int64(len(decoded)) && isFirst && first > 0
	return dict, ok && !endsInHex(decoded)
}

// object returns a lexer that is at the value of an object, or false if the file
// has none but in a container.
func (s *pdfScreen) object(table reflect.Value, number uint64) (*pdfLexer, bool) {
	if number >= uint64(table.Len()) || table.Index(int(number)).FieldByName("inStream").Bool() {
		return nil, false
	}
	at := table.Index(int(number)).FieldByName("offset").Int()
	if at <= 0 || at >= int64(len(s.body)) {
		return nil, false
	}
	l := &pdfLexer{data: s.body, at: int(at)}
	_, isNumber := l.integer()
	_, isGeneration := l.integer()
	word, _ := l.token()
	return l, isNumber && isGeneration && word == pdfWord("obj")
}

// length returns the length of a stream, which may be an object of its own.
func (s *pdfScreen) length(table reflect.Value, value any) (int64, bool) {
	if n, ok := value.(int64); ok {
		return n, true
	}
	if ref, ok := value.(pdfRef); ok {
		if l, ok := s.object(table, uint64(ref.number)); ok {
			return l.integer()
		}
	}
	return 0, false
}

// endsInHex reports whether data ends within a string of hexadecimal digits.
func endsInHex(data []byte) bool {
	for i := len(data) - 1; i >= 0; i-- {
		if c := data[i]; c == '<' {
			return true
		} else if digit(c) < 0 && !isPDFSpace(c) {
			return false
		}
	}
	return false
}

// plainFilter reports whether a stream is compressed at most once, and in no
// other way than structures of files are.
func plainFilter(dict map[pdfName]any) bool {
	filter, params := dict["Filter"], dict["DecodeParms"]
	if list, ok := filter.([]any); ok && len(list) == 1 {
		filter = list[0]
	}
	if list, ok := params.([]any); ok && len(list) == 1 {
		params = list[0]
	}
	if filter != nil && filter != pdfName("FlateDecode") {
		return false
	}
	if params == nil {
		return true
	}
	p, ok := params.(map[pdfName]any)
	if !ok {
		return false
	}
	columns, ok := p["Columns"].(int64)
	return p["Predictor"] == nil || ok && columns > 0 && columns <= maxColumns
}
