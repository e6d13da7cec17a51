package main

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Sizes of the cast, in columns, rows and pixels.
const (
	castColumns = 96  // longer lines are wrapped
	castRows    = 32  // visible at a time; beyond, it scrolls
	castWidth   = 810 // of the columns, in a font of 14 pixels
	castLeading = 19
	castMargin  = 16
	castBar     = 28 // above the first row
)

// What a line of the cast takes until the next one appears.
const (
	castLine  = 90 * time.Millisecond
	castPause = 1100 * time.Millisecond // behind a title and behind the prompt
)

// TestDemoCast checks that docs/demo.svg shows what `remora demo` prints today.
// `make cast` makes it: REMORA_CAST names the file.
func TestDemoCast(t *testing.T) {
	var out, problems bytes.Buffer
	if err := run(t.Context(), []string{"demo"}, func(string) string { return "" }, strings.NewReader(""), &out, &problems); err != nil {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	got := cast(out.String())
	if err := wellFormed(got); err != nil {
		t.Fatalf("the cast is no XML: %v", err)
	}
	if file := os.Getenv("REMORA_CAST"); file != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(filepath.Join("..", "..", "docs", "demo.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if timeless(got) != timeless(string(want)) {
		t.Error("docs/demo.svg is not what `remora demo` prints: run `make cast`")
	}
}

// timeless replaces what differs in each run: the day, and the random part of
// the block's name.
func timeless(svg string) string {
	svg = regexp.MustCompile(`remora-memory-[0-9a-f]+`).ReplaceAllString(svg, "remora-memory")
	return regexp.MustCompile(`[A-Z][a-z]{2} \d{4}-\d\d-\d\d`).ReplaceAllString(svg, "DAY")
}

func wellFormed(text string) error {
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// castRow is a row of the terminal.
type castRow struct {
	class string // of its style; "" = plain
	text  string
	at    time.Duration // when it appears
}

// castOf returns the rows of what a command printed, and when the last one has
// been read.
func castOf(output string) (rows []castRow, end time.Duration) {
	rows, end = []castRow{{class: "p", text: "$ remora demo"}}, castPause
	lines := strings.Split(strings.Trim(output, "\n"), "\n")
	for i, line := range lines {
		if line == "" && i > 0 && lines[i-1] == "" {
			continue
		}
		class, wait := "", castLine
		switch before, after := cmp.Or(i == 0, lines[max(i-1, 0)] == ""), cmp.Or(i+1 == len(lines), lines[min(i+1, len(lines)-1)] == ""); {
		case strings.HasPrefix(line, "+ "):
			class = "a"
		case strings.HasPrefix(line, "       ("):
			class = "d"
		case line != "" && before && after:
			class, wait = "t", castPause
		}
		for _, text := range castWrapped(line, castColumns) {
			rows = append(rows, castRow{class, text, end})
		}
		end += wait
	}
	return rows, end
}

// castWrapped splits a line at blanks. Further lines are indented.
func castWrapped(line string, columns int) (lines []string) {
	const indent = "    "
	for utf8.RuneCountInString(line) > columns {
		cut := strings.LastIndexByte(line[:columns], ' ')
		if cut <= len(indent) {
			cut = columns
		}
		lines = append(lines, line[:cut])
		line = indent + strings.TrimLeft(line[cut:], " ")
	}
	return append(lines, line)
}

const castHead = `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="remora demo, in a terminal">
<title>remora demo, in a terminal</title>
<style>
svg { --back: #f6f8fa; --text: #1f2328; --dim: #59636e; --add: #116329; --edge: #d1d9e0 }
@media (prefers-color-scheme: dark) { svg { --back: #0d1117; --text: #e6edf3; --dim: #9198a1; --add: #56d364; --edge: #3d444d } }
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--text); white-space: pre; animation: show 1ms both }
.p, .t { font-weight: bold }
.d { fill: var(--dim) }
.a { fill: var(--add) }
.frame { fill: var(--back); stroke: var(--edge) }
.dot { fill: var(--edge) }
#rows { transform: translateY(-%[3]dpx); animation: scroll %[4]dms step-end both }
@keyframes show { from { visibility: hidden } to { visibility: visible } }
@keyframes scroll { %[5]s }
@media (prefers-reduced-motion: reduce) { text, #rows { animation: none } }
</style>
<rect class="frame" x=".5" y=".5" width="%[6]d" height="%[7]d" rx="8"/>
<circle class="dot" cx="20" cy="16" r="5"/><circle class="dot" cx="38" cy="16" r="5"/><circle class="dot" cx="56" cy="16" r="5"/>
<svg x="0" y="%[8]d" width="%[1]d" height="%[9]d"><g id="rows">
`

// cast returns an SVG in which a terminal prints a command's output, row by
// row. It plays once. The colours are those of the reader's scheme, and nothing
// moves for who wants less motion.
func cast(output string) string {
	rows, end := castOf(output)
	width := castWidth + 2*castMargin
	window := castRows*castLeading + castLeading/4
	height := castBar + window + castMargin/2

	var scroll strings.Builder
	shift := 0
	for i, r := range rows {
		if at := max(0, i+1-castRows) * castLeading; at != shift || i == 0 {
			shift = at
			fmt.Fprintf(&scroll, "%.2f%% { transform: translateY(-%dpx) } ", 100*float64(r.at)/float64(end), shift)
		}
	}
	fmt.Fprintf(&scroll, "100%% { transform: translateY(-%dpx) }", shift)

	var b strings.Builder
	fmt.Fprintf(&b, castHead, width, height, shift, end.Milliseconds(), scroll.String(), width-1, height-1, castBar, window)
	for i, r := range rows {
		if strings.TrimSpace(r.text) == "" {
			continue
		}
		class := ""
		if r.class != "" {
			class = fmt.Sprintf(` class="%s"`, r.class)
		}
		var text bytes.Buffer
		_ = xml.EscapeText(&text, []byte(r.text)) // a buffer takes it
		fmt.Fprintf(&b, `<text%s x="%d" y="%d" xml:space="preserve" style="animation-delay: %dms">%s</text>`+"\n",
			class, castMargin, (i+1)*castLeading-castLeading/5, r.at.Milliseconds(), text.String())
	}
	b.WriteString("</g></svg>\n</svg>\n")
	return b.String()
}
