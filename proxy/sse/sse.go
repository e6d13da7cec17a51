// Package sse reads event streams (text/event-stream) by the rules of the
// WHATWG HTML standard, section 9.2.6.
//
// It works on bytes that are there already: a captured body, whole or cut
// short. Lines end in LF, CR or CRLF, one byte order mark at the start is
// ignored, and so are comments and unknown fields. An event that the blank line
// after it did not complete is not reported, so a stream that was cut never
// shows half an event.
package sse

import (
	"bytes"
	"iter"
)

// Event is one event. Its slices refer to the stream's bytes (Data of more than
// one line is a copy): do not change them.
type Event struct {
	Type []byte // empty means "message"
	ID   []byte // the last id seen in the stream up to here, as the standard has it
	Data []byte // data lines joined by LF; may be empty
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// Events reads b in one pass. It allocates only for events with several data
// lines, at most their size.
func Events(b []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var (
			lines = linesOf(bytes.TrimPrefix(b, byteOrderMark))
			event Event
			data  int // data lines of event so far
		)
		for {
			line, ok := lines.next()
			if !ok {
				return
			}
			if len(line) == 0 {
				if data > 0 && !yield(event) {
					return
				}
				event, data = Event{ID: event.ID}, 0
				continue
			}
			name, value, _ := bytes.Cut(line, []byte{':'})
			if len(value) > 0 && value[0] == ' ' {
				value = value[1:]
			}
			switch string(name) {
			case "data":
				event.Data = appendLine(event.Data, value, data)
				data++
			case "event":
				event.Type = value
			case "id":
				if bytes.IndexByte(value, 0) < 0 {
					event.ID = value
				}
			}
		}
	}
}

// appendLine joins a data line to those before it. The first one is not copied;
// the second one moves both into memory of their own, which is why its capacity
// is cut: an append must never write into the stream.
func appendLine(data, line []byte, before int) []byte {
	if before == 0 {
		return line[:len(line):len(line)]
	}
	data = append(data, '\n')
	return append(data, line...)
}

// lines cuts a stream into lines.
type lines struct {
	b    []byte
	at   int // start of the next line
	feed int // the first LF at or after at, len(b) if there is none; kept so that streams of lone CRs stay linear
}

func linesOf(b []byte) lines {
	l := lines{b: b, feed: -1}
	l.findFeed()
	return l
}

// next returns the next line without its end. ok is false where no line end
// follows: an unfinished line cannot complete an event. A CR at the very end is
// a line end, whether or not the LF of a CRLF got lost after it.
func (l *lines) next() (line []byte, ok bool) {
	if l.feed < l.at {
		l.findFeed()
	}
	line = l.b[l.at:l.feed]
	end := l.feed + 1
	if cr := bytes.IndexByte(line, '\r'); cr >= 0 {
		line = line[:cr]
		if l.at+cr+1 != l.feed {
			end = l.at + cr + 1 // a lone CR
		}
	}
	if end > len(l.b) && l.at+len(line) == len(l.b) {
		return nil, false
	}
	l.at = min(end, len(l.b))
	return line, true
}

func (l *lines) findFeed() {
	l.feed = len(l.b)
	if i := bytes.IndexByte(l.b[l.at:], '\n'); i >= 0 {
		l.feed = l.at + i
	}
}
