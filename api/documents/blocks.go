package documents

import (
	"iter"
	"strings"
)

// block is a heading, a paragraph or a piece of code. It has no blank lines
// around it.
type block struct {
	level int // of a heading; 0 is none
	code  bool
	text  string // of a heading without its marks
}

// readBlocks returns the blocks of a text. Only Markdown has headings and code;
// other texts have paragraphs alone.
func readBlocks(text string, markdown bool) iter.Seq[block] {
	return func(yield func(block) bool) {
		r := blockReader{text: text, yield: yield}
		if markdown {
			matter, rest := frontMatter(text)
			if matter = strings.TrimSpace(matter); matter != "" && !yield(block{text: matter}) {
				return
			}
			r.text = rest
		}
		for r.at < len(r.text) && !r.stopped {
			r.line(markdown)
		}
		r.flush(r.at)
	}
}

// blockReader collects the lines of a paragraph: text[start:at], if open.
type blockReader struct {
	text      string
	at, start int
	lines     int // of the paragraph; 0 is none open
	yield     func(block) bool
	stopped   bool
}

// line reads the line at r.at, and all lines of the code that it opens.
func (r *blockReader) line(markdown bool) {
	from := r.at
	r.at = lineEnd(r.text, from)
	line := strings.TrimRight(r.text[from:r.at], "\n")
	if strings.TrimSpace(line) == "" {
		r.flush(from)
		return
	}
	if markdown && r.mark(line, from) {
		return
	}
	if r.lines == 0 {
		r.start = from
	}
	r.lines++
}

// mark reads a line that is more than text in Markdown, and reports whether this
// one was.
func (r *blockReader) mark(line string, from int) bool {
	if level, title := atxHeading(line); level > 0 {
		r.flush(from)
		r.emit(block{level: level, text: title})
		return true
	}
	if level := underline(line); level > 0 && r.lines == 1 && !isItem(r.text[r.start:from]) {
		r.lines = 0
		r.emit(block{level: level, text: strings.TrimSpace(r.text[r.start:from])})
		return true
	}
	if isRule(line) {
		r.flush(from)
		return true
	}
	marks := fence(line)
	if marks == "" {
		return false
	}
	r.flush(from)
	for r.at < len(r.text) {
		begin := r.at
		r.at = lineEnd(r.text, begin)
		if closes(r.text[begin:r.at], marks) {
			break
		}
	}
	r.emit(block{code: true, text: strings.Trim(r.text[from:r.at], "\n")})
	return true
}

// flush gives out the paragraph that ends at a line.
func (r *blockReader) flush(end int) {
	if r.lines > 0 {
		r.lines = 0
		r.emit(block{text: strings.TrimSpace(r.text[r.start:end])})
	}
}

func (r *blockReader) emit(b block) {
	if !r.stopped && b.text != "" {
		r.stopped = !r.yield(b)
	}
}
