package extract

import "strings"

// needles are strings in lower case, of which a text may hold one. They are
// cheap necessary conditions of what word patterns find.
type needles []string

// in reports whether a text in lower case holds any of them.
func (n needles) in(lower string) bool {
	for _, s := range n {
		if strings.Contains(lower, s) {
			return true
		}
	}
	return false
}
