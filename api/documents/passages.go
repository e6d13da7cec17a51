package documents

import (
	"strings"
	"unicode/utf8"
)

// maxRepeated bounds how often the bytes of headings are repeated, as a multiple
// of the text. Beyond it a heading is only given once, so that a long heading
// above very many short sections can't fill the memory.
const maxRepeated = 4

// Passages splits a document into passages of at most limit bytes, preferably at
// headings, then paragraphs, then sentences, then words, and never inside a
// character. A limit of under four bytes counts as four, the longest character.
//
// A passage begins with the headings it is under, "Setup > Keys: ", as far as
// they take at most half of it. Neighbouring paragraphs under one heading are
// joined, and a block of code is split only if it doesn't fit. No passage is
// empty, and together they have every word of the text in order.
func Passages(d Document, limit int) []string {
	text := clean(d.Text)
	p := packer{limit: max(limit, utf8.UTFMax), room: maxRepeated*len(text) + 4096}
	markdown := d.MediaType == Markdown || d.MediaType == HTML
	for b := range readBlocks(text, markdown) {
		if b.level > 0 {
			p.heading(b)
		} else {
			p.add(b)
		}
	}
	p.flush()
	p.closeTo(1)
	return p.passages
}

// heading is one that is open: its section is being read.
type heading struct {
	level int
	title string
	said  bool // some passage has it
}

// packer joins the blocks of a section until a passage is full.
type packer struct {
	limit    int
	room     int // bytes of headings that may still be repeated
	open     []heading
	prefix   string // of the passages of the open section
	ready    bool   // prefix is that of the open section
	current  string // of the passage that is being filled, without its prefix
	passages []string
}

// heading ends the section that is open, and begins that of a heading.
func (p *packer) heading(b block) {
	p.flush()
	p.closeTo(b.level)
	p.open = append(p.open, heading{level: b.level, title: b.text})
	p.ready = false
}

// closeTo closes the sections of a level and deeper. Headings that stand above
// no text become passages themselves.
func (p *packer) closeTo(level int) {
	keep := len(p.open)
	for keep > 0 && p.open[keep-1].level >= level {
		keep--
	}
	if n := len(p.open); n > keep && !p.open[n-1].said {
		if path := join(p.open); len(path) <= p.limit && p.repeat(path) {
			p.passages = append(p.passages, path)
		} else {
			p.say(p.unsaid())
		}
		for i := range p.open {
			p.open[i].said = true
		}
	}
	p.open, p.ready = p.open[:keep], false
}

// begin decides on the prefix of a section, before its first block. Headings
// that don't fit in it become passages of their own, once.
func (p *packer) begin() {
	if p.ready {
		return
	}
	from, half := 0, p.limit/2
	for from < len(p.open) && (half < utf8.UTFMax || len(join(p.open[from:]))+len(": ") > half) {
		from++
	}
	if said := len(p.open) - len(p.unsaid()); said < from {
		p.say(p.open[said:from])
	}
	p.prefix, p.ready = "", true
	if from < len(p.open) {
		p.prefix = join(p.open[from:]) + ": "
	}
}

// add puts a block into the passage that is being filled, or into new ones.
func (p *packer) add(b block) {
	p.begin()
	if b.code && p.prefix != "" && p.current == "" {
		b.text = "\n" + b.text // marks of code only count at the start of a line
	}
	budget := p.limit - len(p.prefix)
	if p.current != "" {
		if len(p.current)+len("\n\n")+len(b.text) <= budget {
			p.current += "\n\n" + b.text
			return
		}
		p.flush()
	}
	for len(b.text) > budget {
		p.current, b.text = cut(b.text, budget, b.code)
		p.flush()
		budget = p.limit - len(p.prefix)
	}
	p.current = b.text
}

// flush ends the passage that is being filled.
func (p *packer) flush() {
	if strings.TrimSpace(p.current) == "" {
		p.current = ""
		return
	}
	prefix := p.prefix
	if prefix != "" && !p.repeat(prefix) {
		prefix = ""
		if unsaid := p.unsaid(); len(unsaid) > 0 {
			prefix = join(unsaid) + ": "
		}
	}
	if prefix == "" {
		p.current = strings.TrimLeft(p.current, "\n")
	}
	p.passages = append(p.passages, prefix+p.current)
	p.current = ""
	for i := range p.open {
		p.open[i].said = true
	}
}

// unsaid returns the open headings that no passage has: the last ones.
func (p *packer) unsaid() []heading {
	from := len(p.open)
	for from > 0 && !p.open[from-1].said {
		from--
	}
	return p.open[from:]
}

// say makes passages of headings alone.
func (p *packer) say(headings []heading) {
	for i, h := range headings {
		for rest := h.title; rest != ""; {
			var piece string
			piece, rest = cut(rest, p.limit, false)
			if piece != "" {
				p.passages = append(p.passages, piece)
			}
		}
		headings[i].said = true
	}
}

// repeat reports whether there is room to repeat headings, and takes it.
func (p *packer) repeat(headings string) bool {
	if p.room < len(headings) {
		return false
	}
	p.room -= len(headings)
	return true
}

// join returns the path of headings.
func join(open []heading) string {
	titles := make([]string, len(open))
	for i, h := range open {
		titles[i] = h.title
	}
	return strings.Join(titles, " > ")
}
