package recall

import (
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// What a reader takes for one character may be many: a letter with its accents, a flag, a family of joined emoji. Where a text has no blank to
// be cut at, it is cut between such clusters (UAX #29), if they are no longer than a person would write.

// maxCluster is how many bytes of a text are looked at to find where its clusters begin. The longest flag has 28.
const maxCluster = 128

// clusterBegin is where the cluster begins that byte i is of, but not before least, or where its character does, or else i.
func clusterBegin(text []byte, i, least int) int {
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

// flagHalf is how many bytes each of the two letters of a flag has.
const flagHalf = 4

func flagLetter(b []byte) bool {
	return len(b) >= flagHalf && b[0] == 0xf0 && b[1] == 0x9f && b[2] == 0x87 && b[3] >= 0xa6 && b[3] <= 0xbf
}

// clusterEnd is where the first cluster begins from byte i on, end if none does before.
func clusterEnd(text []byte, i, end int) int {
	at := clusterBegin(text, i, 0)
	clusters := graphemes.FromBytes(text[at:end])
	for at < i && clusters.Next() {
		at += len(clusters.Value())
	}
	return min(at, end)
}
