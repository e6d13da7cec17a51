package main

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var (
	// docsLink is the target of a link or a picture. The text before it may
	// continue on the next line.
	docsLink   = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)
	docsHTML   = regexp.MustCompile(`(?:href|src|srcset)="([^"]+)"`)
	docsAnchor = regexp.MustCompile(`<a id="([^"]+)">`)
	docsCode   = regexp.MustCompile("`[^`]*`")
	docsText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	docsBare   = regexp.MustCompile(`https?://[^\s<>()"'|]+`)
)

// TestLinks checks every link of README.md, docs and the other pages: files and
// anchors exist, addresses elsewhere are well-formed. Nothing is fetched:
// `go test ./cmd/remora -run TestLinks -v` lists the addresses.
func TestLinks(t *testing.T) {
	pages := docsPages(t)
	anchors := map[string][]string{}
	for _, p := range pages {
		anchors[p.name] = p.anchors()
	}
	var elsewhere []string
	links := 0
	for _, p := range pages {
		for _, target := range p.links() {
			links++
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				if problem := badAddress(target); problem != "" {
					t.Errorf("%s: %s: %s", p.name, target, problem)
				}
				elsewhere = append(elsewhere, target)
				continue
			}
			file, anchor, _ := strings.Cut(target, "#")
			at := p.name
			if file != "" {
				at = path.Join(path.Dir(p.name), file)
			}
			if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(at))); err != nil || strings.HasPrefix(at, "..") {
				t.Errorf("%s: %s: there is no such file", p.name, target)
				continue
			}
			if anchor != "" && !slices.Contains(anchors[at], anchor) {
				t.Errorf("%s: %s: there is no such heading; there are %s", p.name, target, strings.Join(anchors[at], ", "))
			}
		}
	}
	if links < 200 {
		t.Errorf("found %d links: reading the wrong pages", links)
	}
	slices.Sort(elsewhere)
	for _, address := range slices.Compact(elsewhere) {
		t.Log(address)
	}
}

// badAddress returns what is wrong with an address, or "".
func badAddress(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "is not a URL"
	case u.Scheme == "mailto":
		return ""
	case u.Scheme != "https" && u.Hostname() != "127.0.0.1" && u.Hostname() != "localhost":
		return "is not https"
	case u.Host == "" || u.User != nil || !strings.Contains(u.Hostname(), ".") && u.Hostname() != "localhost":
		return "names no host"
	}
	return ""
}

// TestIndex checks that docs/README.md links to every page of docs.
func TestIndex(t *testing.T) {
	index := readDocsPage(t, "docs/README.md").links()
	for _, p := range docsPages(t) {
		name, ok := strings.CutPrefix(p.name, "docs/")
		if ok && !strings.Contains(name, "/") && name != "README.md" && !slices.Contains(index, name) {
			t.Errorf("docs/README.md does not link to %s", name)
		}
	}
}

// links returns the targets of all links of a page, in order.
func (p docsPage) links() (targets []string) {
	_, prose := p.blocks()
	text := docsCode.ReplaceAllString(strings.Join(prose, "\n"), "")
	for _, link := range []*regexp.Regexp{docsLink, docsHTML} {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			targets = append(targets, m[1])
		}
	}
	for _, m := range docsBare.FindAllString(docsText.ReplaceAllString(text, ""), -1) {
		targets = append(targets, strings.TrimRight(m, ".,;:"))
	}
	return targets
}

// anchors returns what links to a page may name behind a #, as GitHub makes it
// of headings.
func (p docsPage) anchors() (names []string) {
	_, prose := p.blocks()
	seen := map[string]int{}
	for _, line := range prose {
		for _, m := range docsAnchor.FindAllStringSubmatch(line, -1) {
			names = append(names, m[1])
		}
		if !strings.HasPrefix(line, "#") {
			continue
		}
		heading := docsText.ReplaceAllString(strings.TrimSpace(strings.TrimLeft(line, "#")), "$1")
		var name strings.Builder
		for _, r := range strings.ToLower(heading) {
			switch {
			case r == ' ':
				name.WriteByte('-')
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				name.WriteRune(r)
			}
		}
		anchor := name.String()
		if n := seen[anchor]; n > 0 {
			names = append(names, anchor+"-"+strconv.Itoa(n))
		} else {
			names = append(names, anchor)
		}
		seen[anchor]++
	}
	return names
}
