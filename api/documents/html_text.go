package documents

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// text writes a text, its white space collapsed.
func (w *htmlWriter) text(s string) {
	switch {
	case w.skipping != "":
		return
	case w.inTitle:
		if w.title == "" {
			w.title = oneLine(s)
		}
		return
	case w.head && strings.TrimSpace(s) == "":
		return
	case w.code != nil:
		w.code.WriteString(s)
		return
	}
	s, w.head = clean(s), false
	if first, _ := utf8.DecodeRuneInString(s); unicode.IsSpace(first) {
		w.gap = max(w.gap, spaceGap)
	}
	for word := range strings.FieldsSeq(s) {
		w.separate()
		w.out.WriteString(word)
		w.gap = spaceGap
	}
	if last, _ := utf8.DecodeLastRuneInString(s); s != "" && !unicode.IsSpace(last) {
		w.gap = noGap
	}
}

// separate writes the gap and the marker before a word.
func (w *htmlWriter) separate() {
	if w.out.Len() > 0 {
		w.out.WriteString([...]string{noGap: "", spaceGap: " ", lineGap: "\n", blankGap: "\n\n", columnGap: " | "}[w.gap])
	}
	w.out.WriteString(w.marker)
	w.marker, w.gap, w.row, w.cell = "", noGap, true, false
}

// endCode writes the code of a pre element between fences that are longer than
// any in it.
func (w *htmlWriter) endCode() {
	if w.code == nil {
		return
	}
	code := strings.Trim(clean(w.code.String()), "\n")
	w.code = nil
	if strings.TrimSpace(code) != "" {
		marks := "```"
		for strings.Contains(code, marks) && len(marks) < maxFence {
			marks += "`"
		}
		w.gap, w.marker = blankGap, "" // a fence only counts at the start of a line
		w.separate()
		w.out.WriteString(marks + "\n" + code + "\n" + marks)
	}
	w.block(blankGap)
}

// maxFence bounds the marks around code. Code with more of them ends early.
const maxFence = 16

// isMetadata reports whether an element belongs to the head of a document.
func isMetadata(name string) bool {
	switch name {
	case "head", "title", "meta", "link", "base", "style", "script", "noscript", "template":
		return true
	}
	return false
}

// isSkipped reports whether an element holds what no reader sees.
func isSkipped(name string) bool {
	switch name {
	case "script", "style", "noscript", "template", "iframe", "noembed", "noframes", "svg":
		return true
	}
	return false
}

// gapOf returns the gap around an element; inline elements have none.
func gapOf(name string) gap {
	switch name {
	case "p", "blockquote", "section", "article", "table", "dl", "figure", "form", "fieldset", "header", "footer",
		"main", "nav", "aside", "body", "html", "hr", "details", "dialog", "search", "center":
		return blankGap
	case "div", "dt", "dd", "br", "address", "caption", "figcaption", "hgroup", "legend", "option", "optgroup",
		"select", "textarea", "button", "summary", "thead", "tbody", "tfoot":
		return lineGap
	}
	return noGap
}
