package dialect

import "github.com/tidwall/gjson"

// maxID bounds the names and ids that a body carries, in bytes as they are written. Real ones have some dozens, or some
// hundreds where several are written as one. A longer one is none, but where it names what the server holds: guessing
// there would take one conversation for another.
const maxID = 4 << 10

// id consumes a value and returns it decoded if it is a string that can be an id, else "". The result keeps nothing of the
// body alive.
func (s *scanner) id() string {
	if s.peek() != '"' {
		s.skip()
		return ""
	}
	v := s.check()
	if s.err != nil || v.end-v.start > maxID {
		return ""
	}
	return s.decoded(v)
}

// member consumes a value, checks it, and returns its member as an id; "" where the value is no object or has none. Where
// the member stands twice the last one counts. object is false where the value is none.
func (s *scanner) member(name string) (id string, object bool) {
	v := s.check()
	if s.err != nil || s.b[v.start] != '{' {
		return "", false
	}
	inner := scanner{b: s.b, i: v.start}
	for k := range inner.members {
		if k.names(s.b, name) {
			id = inner.id()
		} else {
			inner.skip()
		}
	}
	return id, true
}

// maxObject bounds a JSON object of ids that stands in a string or a header, in bytes.
const maxObject = 64 << 10

// Member is the member of a JSON object that is a string, "" where it has none or is none. It keeps nothing of object
// alive.
func Member(object, name string) string {
	if len(object) > maxObject {
		return ""
	}
	s := scanner{b: []byte(object)}
	s.begin()
	id, _ := s.member(name)
	s.end()
	if s.err != nil {
		return ""
	}
	return id
}

// names says whether the key at k, decoded, is name.
func (k key) names(b []byte, name string) bool {
	if !k.escaped {
		return string(b[k.start:k.end]) == name
	}
	if k.end-k.start > 6*len(name) { // no escape is longer
		return false
	}
	got, _ := unquote(b[k.start-1 : k.end+1]) // keys are checked
	return got == name
}

// conversation consumes an id, or an object that has one.
func (s *scanner) conversation() string {
	if s.peek() == '"' {
		return s.id()
	}
	id, _ := s.member("id")
	return id
}

// number consumes a value and returns it as a whole number, 0 where it is none.
func (s *scanner) number() int64 {
	v := s.check()
	if s.err != nil || v.end-v.start > maxNumber {
		return 0
	}
	return gjson.ParseBytes(s.b[v.start:v.end]).Int()
}

// maxNumber is the longest value that is read as a number, in bytes; a longer one counts as none.
const maxNumber = 64
