// Package manual writes the manual pages of the program from its command line: one page for the
// program and one for each command. What a page says is what "remora help" says; nothing is
// written twice. The same commands give the same bytes.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Program is what the pages say about the program as a whole.
type Program struct {
	Root     *cobra.Command
	Version  string
	Date     time.Time // of the version; zero if it is not known
	Overview string    // plain text, paragraphs separated by empty lines
}

// Write writes the pages of section 1 into a directory, which it creates: remora.1, and
// remora-COMMAND.1 for each command that is not hidden.
func (p Program) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create directory for manual pages: %w", err)
	}
	pages := map[string]string{p.Root.Name(): p.program()}
	for _, c := range p.Root.Commands() {
		if !c.Hidden {
			pages[p.name(c)] = p.command(c)
		}
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(page), 0o644); err != nil {
			return fmt.Errorf("write manual page: %w", err)
		}
	}
	return nil
}

// name returns the name of a command's page.
func (p Program) name(c *cobra.Command) string { return p.Root.Name() + "-" + c.Name() }

// program returns the page of the program.
func (p Program) program() string {
	var b page
	b.title(p, p.Root.Name(), "a proxy that gives LLM agents a long-term memory")
	b.section("SYNOPSIS")
	b.line(`.B %s`, escape(p.Root.Name()))
	b.line(`.I command`)
	b.line(`[\fIflags\fR]`)
	b.section("DESCRIPTION")
	b.paragraphs(p.Overview)
	b.section("COMMANDS")
	for _, c := range p.Root.Commands() {
		if !c.Hidden {
			b.item(`\fB`+escape(p.name(c))+`\fR(1)`, c.Short)
		}
	}
	b.section("EXIT STATUS")
	b.item("0", "The command is done.")
	b.item("1", "The command failed.")
	b.item("2", "The command was called wrongly.")
	return b.String()
}

// command returns the page of a command.
func (p Program) command(c *cobra.Command) string {
	var b page
	b.title(p, p.name(c), c.Short)
	b.section("SYNOPSIS")
	b.verbatim(c.UseLine())
	if c.HasAvailableFlags() {
		b.section("OPTIONS")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				b.item(flag(f), f.Usage)
			}
		})
	}
	b.section("SEE ALSO")
	b.line(`.BR %s (1)`, escape(p.Root.Name()))
	return b.String()
}

// flag returns how a flag is given, and its default if it has one.
func flag(f *pflag.Flag) string {
	s := `\fB` + escape("--"+f.Name) + `\fR`
	if f.Shorthand != "" {
		s = `\fB` + escape("-"+f.Shorthand) + `\fR, ` + s
	}
	if kind := f.Value.Type(); kind != "bool" {
		s += ` \fI` + escape(kind) + `\fR`
	}
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
		return s
	}
	return s + " (default " + escape(f.DefValue) + ")"
}

// page is a manual page in the macros of man(7).
type page struct{ strings.Builder }

func (b *page) line(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }

// title writes the heading and the section NAME, which whatis(1) reads.
func (b *page) title(p Program, name, summary string) {
	date := ""
	if !p.Date.IsZero() {
		date = p.Date.UTC().Format(time.DateOnly)
	}
	b.line(`.TH %s 1 "%s" "%s" "Remora manual"`, strings.ToUpper(escape(name)), date, escape(p.Version))
	b.section("NAME")
	b.line(`%s \- %s`, escape(name), escape(summary))
}

func (b *page) section(name string) { b.line(".SH %s", name) }

// item writes a term, which is escaped already, and its explanation.
func (b *page) item(term, text string) {
	b.line(".TP\n%s", term)
	b.line("%s", escape(text))
}

// paragraphs writes plain text. Lines that begin with spaces keep their layout.
func (b *page) paragraphs(text string) {
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if strings.HasPrefix(paragraph, " ") {
			b.verbatim(paragraph)
			continue
		}
		if i > 0 {
			b.line(".PP")
		}
		b.line("%s", escape(paragraph))
	}
}

// verbatim writes text whose line breaks and spaces stay.
func (b *page) verbatim(text string) { b.line(".nf\n%s\n.fi", escape(text)) }

// escape makes plain text of roff's: no backslash begins an escape, no line begins a request, and
// a hyphen can be copied and searched.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
