package client

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/term"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy/identity"
)

// Console is where a verb reads and writes.
type Console struct {
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Getenv func(string) string

	width int  // columns of the terminal that Out is, 0 = it is none
	live  bool // Err is a terminal
}

// NewConsole returns a Console. What is written for people depends on whether
// the files are terminals.
func NewConsole(in io.Reader, out, errs io.Writer, getenv func(string) string) *Console {
	c := &Console{In: in, Out: out, Err: errs, Getenv: getenv}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if c.width, _, _ = term.GetSize(int(f.Fd())); c.width <= 0 {
			c.width = defaultWidth
		}
		c.width = max(c.width, minWidth)
	}
	if f, ok := errs.(*os.File); ok {
		c.live = term.IsTerminal(int(f.Fd()))
	}
	return c
}

// Widths of a terminal, in columns: one that does not say, and the least that
// lines are cut to.
const (
	defaultWidth = 80
	minWidth     = 40
)

// IsTerminal reports whether somebody can be asked there.
func IsTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// table writes rows of cells. On a terminal they are aligned below headings, and
// the last cell is cut to the width. Elsewhere there are two spaces between
// them.
type table struct {
	c      *Console
	w      *bufio.Writer
	heads  []string
	indent string
	rows   []row
	headed bool
	widths []int
}

// row is a row with a line below it, "" = none.
type row struct {
	cells []string
	note  string
	tail  string // follows the last cell, which is cut rather than this
}

func (c *Console) table(w *bufio.Writer, heads ...string) *table {
	return &table{c: c, w: w, heads: heads, indent: "  ", widths: make([]int, len(heads))}
}

// add adds a row. Its cells may hold anything.
func (t *table) add(cells ...string) { t.addWith("", cells...) }

// addWith adds a row with a line below it.
func (t *table) addWith(note string, cells ...string) { t.addRow(row{cells: cells, note: note}) }

func (t *table) addRow(r row) {
	for i := range r.cells {
		r.cells[i] = OneLine(r.cells[i])
	}
	r.note = OneLine(r.note)
	if r.tail = OneLine(r.tail); r.tail != "" {
		r.tail = " " + r.tail
	}
	t.rows = append(t.rows, r)
	if t.c.width == 0 {
		t.flush()
	}
}

// flush writes the rows that were added. Later ones may be wider.
func (t *table) flush() {
	rows := t.rows
	t.rows = nil
	if t.c.width > 0 && len(rows) > 0 && !t.headed {
		rows = append([]row{{cells: t.heads}}, rows...)
		t.headed = true
	}
	for _, r := range rows {
		for i, cell := range r.cells {
			t.widths[i] = max(t.widths[i], uniseg.StringWidth(cell))
		}
	}
	for _, r := range rows {
		fmt.Fprintln(t.w, t.indent+t.line(r.cells, r.tail))
		if r.note != "" {
			fmt.Fprintf(t.w, "%s%s%s\n", t.indent, t.indent, r.note)
		}
	}
}

func (t *table) line(cells []string, tail string) string {
	if t.c.width == 0 {
		return strings.Join(cells, "  ") + tail
	}
	var b strings.Builder
	at, last := len(t.indent), len(cells)-1
	for i, cell := range cells[:last] {
		b.WriteString(cell + strings.Repeat(" ", t.widths[i]-uniseg.StringWidth(cell)+2))
		at += t.widths[i] + 2
	}
	b.WriteString(cut(cells[last], max(t.c.width-at-uniseg.StringWidth(tail), minText)) + tail)
	return strings.TrimRight(b.String(), " ")
}

// minText is the least number of columns that a text is cut to.
const minText = 20

// cut returns a text that is at most so many columns wide.
func cut(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	var b strings.Builder
	used := 1 // of the ellipsis
	for rest, state := text, -1; rest != ""; {
		var cluster string
		var n int
		cluster, rest, n, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used += n; used > width {
			break
		}
		b.WriteString(cluster)
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// OneLine keeps a text from ending its line and from controlling a terminal.
func OneLine(text string) string {
	return strings.Join(strings.Fields(printable(text)), " ")
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

// block writes a text of several lines, each behind a bar.
func block(w io.Writer, indent, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "%s| %s\n", indent, strings.TrimRight(printable(strings.TrimRight(line, "\r\n")), " "))
	}
}

// raw writes what the control plane answered, on one line.
func (c *Console) raw(raw json.RawMessage) error {
	_, err := fmt.Fprintf(c.Out, "%s\n", strings.TrimSpace(string(raw)))
	return err
}

// day returns the day of a time as answers have it.
func day(at string) string { return at[:min(len(at), len("2006-01-02"))] }

// minute returns a time as answers have it, to the minute.
func minute(at string) string {
	if len(at) < len("2006-01-02T15:04") {
		return at
	}
	return at[:10] + " " + at[11:16] + " UTC"
}

// clockTime returns a time as answers have it, to the minute, for a column whose
// heading says that it is UTC.
func clockTime(at string) string { return strings.TrimSuffix(minute(at), " UTC") }

// kindOf returns in a word or two what a memory is.
func kindOf(m *api.Memory) string {
	what := m.Kind
	if m.Kind == "episode" && m.Role != "" {
		what = m.Role
	}
	if m.State != api.StateCurrent {
		what += " (" + m.State + ")"
	}
	return what
}

// scopeOf returns whose a memory is, for people.
func scopeOf(t api.Target) string {
	return fmt.Sprintf("tenant %s, app %s, project %s, user %s", OneLine(t.Tenant), OneLine(t.App), OneLine(t.Project), OneLine(t.User))
}

// whoseOf returns whose something is, from its names in an answer.
func whoseOf(tenant, app, project, user string) api.Target {
	return api.Target{Tenant: tenant, App: identity.Show(app), Project: identity.Show(project), User: user}
}
