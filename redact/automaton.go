package redact

import (
	"slices"
)

// automaton finds all keywords in one pass (Aho and Corasick, 1975), ignoring
// the case of ASCII letters. It is a dense table over byte classes: one load
// per byte, about 300 KiB for all keywords.
type automaton struct {
	class [256]uint8 // column of a byte; 0 = in no keyword
	width int
	next  []uint16 // state*width + class
	// first[s] is the head of the list of keywords that end in state s.
	first []int16
	links []link
}

type link struct {
	keyword int
	length  int
	next    int16 // -1 ends the list
}

func newAutomaton(words []string) *automaton {
	a := &automaton{width: 1}
	for _, w := range words {
		for i := range len(w) {
			if c := column(w[i]); a.class[c] == 0 {
				a.class[c] = uint8(a.width)
				a.width++
			}
		}
	}
	for c := 0x80; c <= 0xff; c++ {
		a.class[c] = a.class[column(byte(c))]
	}
	for c := 'A'; c <= 'Z'; c++ {
		a.class[c] = a.class[lower(byte(c))]
	}
	states := 1 // at most
	for _, w := range words {
		states += len(w)
	}
	a.next = make([]uint16, a.width, states*a.width)
	a.first = append(make([]int16, 0, states), -1)
	empty := make([]uint16, a.width)
	for k, w := range words {
		state := 0
		for i := range len(w) {
			cell := state*a.width + int(a.class[column(w[i])])
			if a.next[cell] == 0 {
				a.next[cell] = uint16(len(a.first))
				a.first = append(a.first, -1)
				a.next = append(a.next, empty...)
			}
			state = int(a.next[cell])
		}
		a.links = append(a.links, link{keyword: k, length: len(w), next: a.first[state]})
		a.first[state] = int16(len(a.links) - 1)
	}
	a.addFailureEdges()
	a.next, a.first = slices.Clone(a.next), slices.Clone(a.first) // prefixes are shared: often half is enough
	return a
}

// column maps the bytes that share a column to one of them: letters of both
// cases, and bytes outside ASCII by their last three bits, which keeps the
// table narrow. Keywords with such bytes are therefore also reported where they
// do not occur; see exactKeyword.
func column(c byte) byte {
	if c >= 0x80 {
		return 0x80 | c&7
	}
	return lower(c)
}

// addFailureEdges turns the trie into an automaton, breadth first: a missing
// edge goes where that of the longest proper suffix goes, and a state also ends
// the keywords that its suffix ends.
func (a *automaton) addFailureEdges() {
	suffix := make([]uint16, len(a.first))
	queue := make([]int, 0, len(a.first))
	for c := range a.width {
		if s := a.next[c]; s != 0 {
			queue = append(queue, int(s))
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		fall := int(suffix[state])
		a.first[state] = a.appendList(a.first[state], a.first[fall])
		for c := range a.width {
			cell := state*a.width + c
			if child := a.next[cell]; child != 0 {
				suffix[child] = a.next[fall*a.width+c]
				queue = append(queue, int(child))
			} else {
				a.next[cell] = a.next[fall*a.width+c]
			}
		}
	}
}

// appendList appends tail to the list head. The lists of a state are not shared
// before addFailureEdges reaches it, so their end is free.
func (a *automaton) appendList(head, tail int16) int16 {
	if head < 0 {
		return tail
	}
	end := head
	for a.links[end].next >= 0 {
		end = a.links[end].next
	}
	a.links[end].next = tail
	return head
}

// each calls found for every occurrence of every keyword, ordered by its last
// byte.
func (a *automaton) each(text string, found func(keyword, start, end int)) {
	state := 0
	for i := range len(text) {
		state = int(a.next[state*a.width+int(a.class[text[i]])])
		for l := a.first[state]; l >= 0; l = a.links[l].next {
			found(a.links[l].keyword, i+1-a.links[l].length, i+1)
		}
	}
}
