package api

import "strings"

// shortID is how many characters of an id people are shown. Of a hundred
// thousand memories two may have these in common; then more of them are given.
const shortID = 9

// ShortID returns what people are shown of an id. An id of something said is
// that of its turn, a dot and a number, and keeps the latter.
func ShortID(id string) string {
	head, tail, dotted := strings.Cut(id, ".")
	head = head[:min(len(head), shortID)]
	if dotted {
		return head + "." + tail
	}
	return head
}

// beginsID reports whether an id is meant by the beginning of one: what follows
// a dot must be equal.
func beginsID(id, short string) bool {
	head, tail, dotted := strings.Cut(short, ".")
	if !dotted {
		return strings.HasPrefix(id, head)
	}
	own, number, ok := strings.Cut(id, ".")
	return ok && number == tail && strings.HasPrefix(own, head)
}
