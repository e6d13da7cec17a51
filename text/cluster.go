package text

import (
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// maxCluster is how many bytes before and after a place are read to find where
// its cluster begins. The longest flag has 28.
const maxCluster = 128

// ClusterStart returns where a text can be cut at byte i or a little before it
// without cutting what a reader takes for one character: a letter with its
// accents, a flag, a family of joined emoji (the grapheme clusters of UAX #29).
// That is where the cluster begins that holds byte i, unless it begins before
// least or is longer than anybody writes; then it is where the code point
// begins, or else i.
func ClusterStart(text []byte, i, least int) int {
	if i >= len(text) {
		return len(text)
	}
	from := max(i-maxCluster, 0)
	for from < i && !utf8.RuneStart(text[from]) {
		from++
	}
	for from >= flagHalf && flagLetter(text[from:]) && flagLetter(text[from-flagHalf:]) { // flags pair from the first of them
		from -= flagHalf
	}
	clusters := graphemes.FromBytes(text[from:min(i+maxCluster, len(text))])
	for at := from; clusters.Next(); {
		next := from + clusters.End()
		if next > i {
			if at >= least && (at > from || from == 0) {
				return at
			}
			break
		}
		at = next
	}
	for at := i; at >= max(least, i-utf8.UTFMax); at-- {
		if utf8.RuneStart(text[at]) {
			return at
		}
	}
	return i
}

// flagHalf is the length of each of a flag's two letters, in bytes.
const flagHalf = 4

func flagLetter(b []byte) bool {
	return len(b) >= flagHalf && b[0] == 0xf0 && b[1] == 0x9f && b[2] == 0x87 && b[3] >= 0xa6 && b[3] <= 0xbf
}

// ClusterEnd returns where the first cluster at or after byte i begins, or end
// if none begins before that.
func ClusterEnd(text []byte, i, end int) int {
	at := ClusterStart(text, i, 0)
	clusters := graphemes.FromBytes(text[at:end])
	for at < i && clusters.Next() {
		at += len(clusters.Value())
	}
	return min(at, end)
}
