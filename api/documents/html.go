package documents

import (
	"strings"

	"golang.org/x/net/html"
)

// maxIndent bounds the lists that indent; deeper ones are not indented further.
const maxIndent = 8

// htmlText returns the title and the text of an HTML document as Markdown. It
// reads tags one by one and never builds a tree: however deeply elements nest,
// it takes no more stack, and missing end tags don't matter.
func htmlText(source string) (title, text string) {
	z := html.NewTokenizer(strings.NewReader(source))
	w := htmlWriter{}
	for w.out.Len() <= MaxText {
		switch z.Next() {
		case html.ErrorToken:
			w.endCode()
			if w.title == "" {
				w.title = markdownTitle(w.out.String())
			}
			return w.title, w.out.String()
		case html.TextToken:
			w.text(string(z.Text()))
		case html.StartTagToken:
			name, _ := z.TagName()
			w.start(string(name))
		case html.EndTagToken:
			name, _ := z.TagName()
			w.end(string(name))
		case html.SelfClosingTagToken:
			name, _ := z.TagName()
			w.start(string(name))
			if string(name) == "svg" { // the only skipped one that can close itself
				w.end(string(name))
			}
		}
	}
	return w.title, w.out.String()
}

// gap is what comes before the next word. A greater one outranks a smaller one.
type gap int

const (
	noGap     gap = iota
	spaceGap      // between words
	lineGap       // between blocks
	blankGap      // between paragraphs
	columnGap     // between cells of a row
)

// htmlWriter writes Markdown. It holds back what separates two texts until the
// second one comes, so that empty elements leave nothing behind.
type htmlWriter struct {
	title    string
	out      strings.Builder
	gap      gap
	marker   string // of the heading or the item that begins with the next text
	heading  bool   // in a heading, which is one line
	row      bool   // the row of a table has text
	cell     bool   // a cell begins, and has no text yet
	lists    int    // that are open
	head     bool
	inTitle  bool
	skipping string // the element whose text is left out
	nested   int    // elements of that name that are open within it
	code     *strings.Builder
}

// start reads a start tag.
func (w *htmlWriter) start(name string) {
	if w.skipping != "" {
		if name == w.skipping {
			w.nested++
		}
		return
	}
	if w.head && !isMetadata(name) {
		w.head = false // its end tag is optional
	}
	switch {
	case name == "head":
		w.head = true
	case name == "title":
		w.inTitle = true
	case isSkipped(name):
		w.skipping, w.nested = name, 0
	case w.code != nil:
		if name == "br" {
			w.code.WriteByte('\n')
		}
	default:
		w.open(name)
	}
}

// open begins an element that is shown.
func (w *htmlWriter) open(name string) {
	switch name {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		w.block(blankGap)
		w.marker, w.heading = strings.Repeat("#", int(name[1]-'0'))+" ", true
	case "ul", "ol", "menu", "dir":
		w.block(w.listGap())
		w.lists++
	case "li":
		w.block(lineGap)
		w.marker = strings.Repeat("  ", min(max(w.lists-1, 0), maxIndent)) + "- "
	case "pre":
		w.block(blankGap)
		w.code = &strings.Builder{}
	case "tr":
		w.gap, w.row, w.cell = max(lineGap, min(w.gap, blankGap)), false, false
	case "td", "th":
		if w.cell = true; w.row {
			w.gap = columnGap
		}
	default:
		w.block(gapOf(name))
	}
}

// end reads an end tag.
func (w *htmlWriter) end(name string) {
	if w.skipping != "" {
		if name == w.skipping {
			if w.nested--; w.nested < 0 {
				w.skipping = ""
			}
		}
		return
	}
	switch name {
	case "head":
		w.head = false
	case "title":
		w.inTitle = false
	case "pre":
		w.endCode()
	case "h1", "h2", "h3", "h4", "h5", "h6":
		w.heading, w.marker = false, ""
		w.block(blankGap)
	case "ul", "ol", "menu", "dir":
		w.lists = max(w.lists-1, 0)
		w.block(w.listGap())
	case "tr":
		w.gap, w.row, w.cell = lineGap, false, false
	case "td", "th", "br":
	default:
		w.block(gapOf(name))
	}
}

// listGap is the gap around a list: within another one it is an item.
func (w *htmlWriter) listGap() gap {
	if w.lists > 0 {
		return lineGap
	}
	return blankGap
}

// block separates what comes next from what came before, unless a cell has just
// begun. A heading stays on one line; a paragraph within one shows that its end
// tag is missing.
func (w *htmlWriter) block(g gap) {
	if g == blankGap {
		w.heading = false
	}
	if w.heading {
		g = min(g, spaceGap)
	}
	if !w.cell {
		w.gap = max(w.gap, g)
	}
}
