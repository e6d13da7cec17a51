package mcp

import (
	"errors"
	"fmt"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// lineWidth is the width of a line's number.
const lineWidth = 6

// maxNamedLines bounds the lines that an error names.
const maxNamedLines = 50

// numbered returns lines with their numbers, from first.
func numbered(lines []string, first int) string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = fmt.Sprintf("%*d\t%s", lineWidth, first+i, line)
	}
	return strings.Join(out, "\n")
}

func (c fileCall) view() (string, error) {
	given, at, err := c.path("path")
	if err != nil {
		return "", err
	}
	if at != api.FilesRoot {
		f, err := c.verbs.ReadFile(c, c.target, at)
		if err == nil {
			return c.viewFile(given, f.Content)
		}
		if !errors.Is(err, api.ErrNotFound) {
			return "", err
		}
	}
	files, err := c.verbs.Files(c, c.target)
	if err != nil {
		return "", err
	}
	listing, some := listed(files, at)
	if !some && at != api.FilesRoot {
		return "", missingValid("", given)
	}
	return "Here're the files and directories up to 2 levels deep in " + given +
		", excluding hidden items and node_modules:\n" + listing, nil
}

func (c fileCall) viewFile(given, content string) (string, error) {
	lines := strings.Split(content, "\n")
	var bounds []int
	if err := c.args.decode(&bounds, "a list of two whole numbers", "view_range"); err != nil {
		return "", err
	}
	from, to := 0, len(lines)
	if len(bounds) == 2 {
		from = min(max(1, bounds[0])-1, len(lines))
		if to = bounds[1]; to == -1 || to > len(lines) {
			to = len(lines)
		}
		to = max(to, from)
	}
	return "Here's the content of " + given + " with line numbers:\n" +
		numbered(lines[from:to], from+1), nil
}

// listed returns the lines for a directory and what is in it, two levels deep,
// and whether there is anything in it.
func listed(files []api.File, dir string) (string, bool) {
	sizes := map[string]int{} // by path; those of directories end in a slash
	some := false
	for i := range files {
		rest, ok := strings.CutPrefix(files[i].Path, dir+"/")
		if !ok {
			continue
		}
		some = true
		if parts := strings.Split(rest, "/"); slices.ContainsFunc(parts, hidden) {
			continue
		}
		sizes[dir] += files[i].Size
		for d := path.Dir(files[i].Path); len(d) > len(dir); d = path.Dir(d) {
			sizes[d+"/"] += files[i].Size
		}
		sizes[files[i].Path] = files[i].Size
	}
	var names []string
	for name := range sizes {
		if strings.Count(strings.TrimSuffix(name, "/"), "/")-strings.Count(dir, "/") <= 2 && name != dir {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { // a directory comes before what is in it
		return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
	out := humanSize(sizes[dir]) + "\t" + dir
	for _, name := range names {
		out += "\n" + humanSize(sizes[name]) + "\t" + name
	}
	return out, some
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }

// humanSize returns a number of bytes as people read it: 0B, 512B, 1.5K.
func humanSize(n int) string {
	if n == 0 {
		return "0B"
	}
	units := [...]string{"B", "K", "M", "G"}
	i := min((bits.Len(uint(n))-1)/10, len(units)-1)
	size := float64(n) / float64(int(1)<<(10*i))
	if size == float64(int(size)) {
		return strconv.Itoa(int(size)) + units[i]
	}
	return strconv.FormatFloat(size, 'f', 1, 64) + units[i]
}

func (c fileCall) strReplace() (string, error) {
	given, at, err := c.path("path")
	if err != nil {
		return "", err
	}
	old, err := c.mustContent("old_str")
	if err != nil {
		return "", err
	}
	fresh, _, err := c.content("new_str") // without one, the text is deleted
	if err != nil {
		return "", err
	}
	unlock, err := c.alone()
	if err != nil {
		return "", err
	}
	defer unlock()
	content, err := c.read(at, missingValid("Error: ", given))
	if err != nil {
		return "", err
	}
	switch n := strings.Count(content, old); {
	case n == 0 || old == "":
		return "", saying("No replacement was performed, old_str `" + old +
			"` did not appear verbatim in " + given + ".")
	case n > 1:
		return "", saying("No replacement was performed. Multiple occurrences of old_str `" + old +
			"` in lines: " + linesWith(content, old) + ". Please ensure it is unique")
	}
	changed := strings.Count(content[:strings.Index(content, old)], "\n")
	written, err := c.verbs.WriteFile(c, c.target, at, strings.Replace(content, old, fresh, 1), why)
	if err != nil {
		return "", err
	}
	lines := strings.Split(written.Content, "\n")
	from, to := min(max(0, changed-2), len(lines)), min(len(lines), changed+3)
	return "The memory file has been edited. Here is the snippet showing the change " +
		"(with line numbers):\n" + numbered(lines[from:to], from+1), nil
}

// read returns the content of a file. If there is none, it fails with missing.
func (c fileCall) read(at string, missing error) (string, error) {
	if at == api.FilesRoot {
		return "", missing
	}
	f, err := c.verbs.ReadFile(c, c.target, at)
	if errors.Is(err, api.ErrNotFound) {
		return "", missing
	}
	return f.Content, err
}

// linesWith returns the numbers of the lines in which a text begins.
func linesWith(content, text string) string {
	var out []string
	for at, line := 0, 1; ; {
		next := strings.Index(content[at:], text)
		if next < 0 {
			break
		}
		if len(out) == maxNamedLines {
			out = append(out, "...")
			break
		}
		line += strings.Count(content[at:at+next], "\n")
		out = append(out, strconv.Itoa(line))
		if content[at+next] == '\n' {
			line++
		}
		at += next + 1
	}
	return strings.Join(out, ", ")
}

func (c fileCall) insert() (string, error) {
	given, at, err := c.path("path")
	if err != nil {
		return "", err
	}
	if !c.args.has("insert_line") {
		return "", wrong("insert_line", "is required")
	}
	line, err := c.args.number(0, "insert_line")
	if err != nil {
		return "", err
	}
	insertion, err := c.mustContent("insert_text")
	if err != nil {
		return "", err
	}
	unlock, err := c.alone()
	if err != nil {
		return "", err
	}
	defer unlock()
	content, err := c.read(at, missing(given))
	if err != nil {
		return "", err
	}
	lines := strings.Split(content, "\n")
	if line < 0 || line > len(lines) {
		return "", saying(fmt.Sprintf("Error: Invalid `insert_line` parameter: %d. "+
			"It should be within the range of lines of the file: [0, %d]", line, len(lines)))
	}
	if last := len(lines) - 1; line > last && lines[last] == "" {
		line = last // behind the last line, not behind the end of it
	}
	lines = slices.Insert(lines, line, strings.TrimSuffix(insertion, "\n"))
	if _, err := c.verbs.WriteFile(c, c.target, at, strings.Join(lines, "\n"), why); err != nil {
		return "", err
	}
	return "The file " + given + " has been edited.", nil
}
