package dialect

import (
	"github.com/tidwall/gjson"
)

// maxID limits the names and ids in a body, in bytes as they are written. Real
// ones have some dozens, or some hundreds if several are joined. A longer one
// counts as absent, except where it names a conversation at the server: there,
// guessing would mix up conversations.
const maxID = 4 << 10

// maxNumber is the longest value that is read as a number, in bytes.
const maxNumber = 64

// maxObject limits a JSON object of ids in a string or a header, in bytes.
const maxObject = 64 << 10

// id consumes a value and returns it decoded if it is a string within maxID,
// else "". The result does not keep the body alive.
func (s *scanner) id() string {
	if s.peek() != '"' {
		s.skip()
		return ""
	}
	v := s.check()
	if s.err != nil || v.end-v.start > maxID {
		return ""
	}
	return s.decode(v)
}

// member consumes and checks a value and returns its member name as an id, ""
// if it has none. If the member is duplicated the last one counts. object
// reports whether the value is an object.
func (s *scanner) member(name string) (id string, object bool) {
	v := s.check()
	if s.err != nil || s.b[v.start] != '{' {
		return "", false
	}
	inner := scanner{b: s.b, i: v.start}
	for k := range inner.members {
		if k.is(s.b, name) {
			id = inner.id()
		} else {
			inner.skip()
		}
	}
	return id, true
}

// Member returns the string member name of a JSON object, "" if it has none or
// is not an object. The result does not keep object alive.
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

// idOrMember consumes an id, or an object with a member "id".
func (s *scanner) idOrMember() string {
	if s.peek() == '"' {
		return s.id()
	}
	id, _ := s.member("id")
	return id
}

// number consumes a value and returns it as an integer, 0 if it is not a
// number.
func (s *scanner) number() int64 {
	v := s.check()
	if s.err != nil || v.end-v.start > maxNumber {
		return 0
	}
	return gjson.ParseBytes(s.b[v.start:v.end]).Int()
}

// is consumes a value and reports whether it is literal.
func (s *scanner) is(literal string) bool {
	v := s.skip()
	return string(s.b[v.start:v.end]) == literal
}

// nonEmpty consumes a value and reports whether it is an array with elements or
// an object with members.
func (s *scanner) nonEmpty() bool {
	v := s.skip()
	return s.err == nil && nonEmpty(s.b[v.start:v.end])
}

func nonEmpty(raw []byte) bool {
	s := scanner{b: raw, unchecked: true}
	switch s.peek() {
	case '[':
		for range s.elements {
			return true
		}
	case '{':
		for range s.members {
			return true
		}
	}
	return false
}

// gjson consumes a value and parses it with gjson. The scanner has checked it
// and its depth.
func (s *scanner) gjson() gjson.Result {
	v := s.check()
	if s.err != nil {
		return gjson.Result{}
	}
	return gjson.ParseBytes(s.b[v.start:v.end])
}
