package dialect

import (
	"bytes"
	"strconv"
)

var _ Binder = Messages{}

// Binds implements Binder.
func (Messages) Binds(body []byte) bool {
	return bytes.Contains(body, []byte(`thinking"`)) && (bytes.Contains(body, []byte(`"signature"`)) || bytes.Contains(body, []byte(`"redacted_thinking"`)))
}

// boundPhrases occur in refusals of thinking that is bound to another prefix,
// in lower case.
var boundPhrases = [...]string{
	"invalid `signature` in `thinking`",          // the first sentence
	"invalid `signature` in `redacted_thinking`", //
	"bound to a different conversation",          // the second
	"blocks in the latest assistant message cannot be modified",
}

// missingPhrases occur in refusals of an open tool loop without its thinking.
var missingPhrases = [...]string{
	"expected `thinking` or `redacted_thinking`, but found",
	"must start with a thinking block",
}

// BoundRefusal implements Binder.
func (Messages) BoundRefusal(status int, body []byte) BoundRefusal {
	switch {
	case status != 400 && status != 422:
		return BoundRefusal{}
	case errorContains(body, missingPhrases[:]):
		return BoundRefusal{Missing: true, Message: -1}
	case errorContains(body, boundPhrases[:]):
		return BoundRefusal{Changed: true, Message: indexAfter(body, "messages.")}
	}
	return BoundRefusal{}
}

// indexAfter returns the number that follows the first name in text, -1 if
// there is none.
func indexAfter(text []byte, name string) int {
	for {
		i := bytes.Index(text, []byte(name))
		if i < 0 {
			return -1
		}
		text = text[i+len(name):]
		digits := len(text) - len(bytes.TrimLeft(text, "0123456789"))
		if n, err := strconv.Atoi(string(text[:digits])); err == nil {
			return n
		}
	}
}

// emptied replaces the content of a message that had nothing but thinking: the
// server refuses an empty one.
const emptied = `{"type":"text","text":"(no text)"}`

// Unbind implements Binder. It cuts the thinking blocks.
func (Messages) Unbind(req *Request, first, last int) (cuts []Insertion, through int) {
	through = -1
	for i := max(first, 0); i <= min(last, len(req.Messages)-1); i++ {
		if m := &req.Messages[i]; m.Thinking {
			cuts = append(cuts, req.cutElements(m, isThinkingType)...)
			through = i
		}
	}
	return cuts, through
}

func isThinkingType(typ []byte) bool {
	return string(typ) == `"thinking"` || string(typ) == `"redacted_thinking"`
}

// cutElements returns what takes the blocks whose type is one of those out of
// m's content.
func (r *Request) cutElements(m *Message, cut func(typ []byte) bool) (cuts []Insertion) {
	s := scanner{b: r.Body, i: m.contentStart, unchecked: true}
	var run span  // of blocks to cut in a row
	kept := -1    // end of the last block that stays
	open := false // run holds a block
	for range s.elements {
		start := s.i
		typ := s.blockType()
		if cut(s.b[typ.start:typ.end]) {
			if !open {
				run.start, open = start, true
			}
			run.end = s.i
			continue
		}
		if open {
			cuts = append(cuts, Insertion{At: run.start, Cut: start - run.start})
			open = false
		}
		kept = s.i
	}
	switch {
	case open && kept >= 0:
		cuts = append(cuts, Insertion{At: kept, Cut: run.end - kept})
	case open:
		cuts = append(cuts, Insertion{At: run.start, Cut: run.end - run.start, Text: []byte(emptied)})
	}
	return cuts
}

// StopThinking implements Binder.
func (Messages) StopThinking(req *Request) []Insertion {
	if !req.Thinks {
		return nil
	}
	return []Insertion{{At: req.thinkingStart, Cut: req.thinkingEnd - req.thinkingStart, Text: []byte(`{"type":"disabled"}`)}}
}

// DropBound implements Binder.
func (Messages) DropBound(req *Request) (ask []Insertion, header, value string) {
	raw := req.Body[req.thinkingStart:req.thinkingEnd]
	if !req.Thinks || bytes.Contains(raw, []byte(`block_binding`)) || !nonEmpty(raw) {
		return nil, "", ""
	}
	return []Insertion{{At: req.thinkingStart + 1, Text: []byte(`"block_binding":{"prefix_mismatch_behavior":"drop_block"},`)}},
		"Anthropic-Beta", "thinking-binding-controls-2026-08-01"
}
