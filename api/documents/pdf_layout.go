package documents

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What separates two pieces of text, in sizes of the font.
const (
	wordDistance      = 0.17 // along the line: a narrow blank has a quarter
	lineDistance      = 0.5  // across: an index is raised or lowered by a third
	paragraphDistance = 1.75 // across: lines have 1.2 as a rule
)

// pdfLayout puts text together that a PDF only gives places for. It keeps the
// order of the file, which is that of reading in what programs write.
type pdfLayout struct {
	out    strings.Builder
	begun  bool    // the page has text
	x, y   float64 // where the last text ends
	dx, dy float64 // its direction
	size   float64
}

// page begins a page.
func (l *pdfLayout) page() { l.begun = false }

// write adds a text that begins and ends at places. If the place where the last
// one ends is a guess, any new place on its line begins a word.
func (l *pdfLayout) write(text string, from, to matrix, size float64, guessed bool) {
	if l.out.Len()+len(text) > MaxText {
		panic(ErrTooLarge)
	}
	size *= math.Hypot(from[2], from[3])
	dx, dy := from[0], from[1]
	if length := math.Hypot(dx, dy); length > 0 {
		dx, dy = dx/length, dy/length
	}
	l.out.WriteString(l.separator(text, from, dx, dy, math.Abs(size), guessed))
	l.out.WriteString(text)
	l.begun, l.x, l.y, l.dx, l.dy, l.size = true, to[4], to[5], dx, dy, math.Abs(size)
}

// separator returns what comes between the last text and the next one.
func (l *pdfLayout) separator(text string, from matrix, dx, dy, size float64, guessed bool) string {
	if l.out.Len() == 0 {
		return ""
	}
	if !l.begun {
		return "\n\n"
	}
	x, y := from[4]-l.x, from[5]-l.y
	along, across := x*dx+y*dy, y*dx-x*dy
	unit := max(l.size, size)
	switch {
	case dx*l.dx+dy*l.dy < 0.9: // turned
		return "\n\n"
	case across > lineDistance*unit, -across > paragraphDistance*unit: // up is another column
		return "\n\n"
	case -across > lineDistance*unit:
		return "\n"
	}
	last, _ := utf8.DecodeLastRuneInString(l.out.String())
	first, _ := utf8.DecodeRuneInString(text)
	if unicode.IsSpace(last) || unicode.IsSpace(first) {
		return ""
	}
	if along > wordDistance*unit || along < -unit || guessed && math.Abs(along) > 0.01*unit {
		return " "
	}
	return ""
}

// ligatures are characters that stand for several letters. Fonts have them, and
// nobody types them.
var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st")

// String returns the text without blanks at the ends of lines, and with at most
// one empty line between others.
func (l *pdfLayout) String() string {
	var b strings.Builder
	empty := 0
	for line := range strings.Lines(ligatures.Replace(clean(l.out.String()))) {
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line == "" {
			empty++
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n"[:1+min(empty, 1)])
		}
		b.WriteString(line)
		empty = 0
	}
	return b.String()
}
