package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// maxConfigFile bounds what is read of a configuration file or of a mounted secret, in bytes. A longer one is refused.
const maxConfigFile = 1 << 20

// setting is one row of the table that the file, the environment, the documentation and the output of check share.
type setting struct {
	key  string // path in the file, lowerCamelCase
	doc  string // one or two sentences of Markdown
	at   value
	note string // what the documentation says instead of the default, where the default depends on the machine

	share float64 // of a container's memory, that the default is at most; 0 = whatever
	holds string  // key of what must fit into it, "" = nothing
	least int64   // but no less than this

	most int64 // of an integer or a size; 0 = what its kind has

	from, to int64 // what its package allows of a number, told in the documentation and kept by the package; to 0 = what its kind has
}

// env is the environment variable of a key: "recall.firstDeadline" is REMORA_RECALL_FIRST_DEADLINE.
func (s setting) env() string {
	var b strings.Builder
	b.WriteString("REMORA_")
	for _, r := range s.key {
		switch {
		case r == '.':
			b.WriteByte('_')
		case unicode.IsUpper(r):
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ToUpper(r))
		}
	}
	return b.String()
}

// overrides are what the command line says; "" means not given.
type overrides struct {
	file     string
	listen   string
	upstream string
	data     string
	forward  string

	serves bool // it is a command that reaches for upstreams
}

// loader builds a config: defaults, then the file, then the environment, then the flags; each later one wins.
type loader struct {
	getenv  func(string) string
	place   place
	found   problems
	origins map[string]string // key path to where its value came from
}

// loadConfig returns the effective configuration. On an error, which holds every problem at once, the configuration is
// what could be read, for the reader of check.
func loadConfig(flags overrides, getenv func(string) string, where place) (config, error) {
	l := loader{getenv: getenv, place: where, origins: map[string]string{}}
	c := defaultConfig()
	table := c.settings()
	l.file(&c, table, flags.file)
	l.environment(table)
	l.flags(&c, flags)
	l.tooLarge(table)
	l.fit(table)
	c.settle(where)
	c.validate(&l.found, l.origins)
	if flags.serves {
		c.authorities(&l.found, l.origins)
	}
	return c, l.found.err()
}

func (l *loader) file(c *config, table []setting, path string) {
	explicit := path != "" || l.getenv(configVariable) != ""
	if path == "" {
		path = l.getenv(configVariable)
	}
	if path == "" {
		path = l.place.configFile()
	}
	data, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		return
	}
	if err != nil {
		l.found.add("", "", "read configuration: "+err.Error())
		return
	}
	c.source = path
	root, err := parseJSON(filepath.Base(path), data, &l.found)
	if err != nil {
		l.found.add("", "", err.Error())
		return
	}
	if root.kind != tokenObject {
		l.found.add("", root.origin(), "the configuration must be a JSON object")
		return
	}
	l.object(root, "", table)
}

// object hands each member to its setting. A key that no setting has is a problem, with the nearest one that exists.
func (l *loader) object(n *node, at string, table []setting) {
	for _, m := range n.members {
		key := join(at, m.key)
		i := slices.IndexFunc(table, func(s setting) bool { return s.key == key })
		section := slices.ContainsFunc(table, func(s setting) bool { return strings.HasPrefix(s.key, key+".") })
		switch {
		case i >= 0 && m.node.kind == tokenNull:
			l.found.add(key, m.node.origin(), "must not be null; leave the key out for its default")
		case i >= 0:
			table[i].at.decode(m.node, key, &l.found)
			l.note(m.node, key)
		case section && m.node.kind == tokenObject:
			l.object(m.node, key, table)
		case section:
			l.found.add(key, m.node.origin(), "must be an object")
		default:
			l.found.add(key, m.node.origin(), unknownKey(m.key, at, table))
		}
	}
}

// note remembers where a value and the values in it were written.
func (l *loader) note(n *node, at string) {
	l.origins[at] = n.origin()
	for i, item := range n.items {
		l.note(item, fmt.Sprintf("%s[%d]", at, i))
	}
	for _, m := range n.members {
		l.note(m.node, join(at, m.key))
	}
}

func unknownKey(key, at string, table []setting) string {
	var siblings []string
	for _, s := range table {
		rest, ok := strings.CutPrefix(s.key, at)
		if rest = strings.TrimPrefix(rest, "."); ok && rest != "" {
			name, _, _ := strings.Cut(rest, ".")
			siblings = append(siblings, name)
		}
	}
	if near := nearest(key, siblings); near != "" {
		return fmt.Sprintf("unknown key; did you mean %q?", near)
	}
	return "unknown key"
}

func (l *loader) flags(c *config, f overrides) {
	if url, origin := l.oneUpstream(f); url != "" {
		c.oneUpstream(url)
		l.origins["upstreams"], l.origins["upstreams[0].url"] = origin, origin
	}
	if f.listen != "" {
		c.server.Listen, l.origins["listen"] = f.listen, "--listen"
	}
	if f.data != "" {
		c.storage.Dir, l.origins["storage.dir"] = f.data, "--data"
	}
	if f.forward != "" {
		c.forward.Listen, l.origins["forward.listen"] = f.forward, "--forward"
	}
}

// oneUpstream is the upstream of every path, if the flags or the environment name one.
func (l *loader) oneUpstream(f overrides) (url, origin string) {
	if f.upstream != "" {
		return f.upstream, "--upstream"
	}
	url, origin, _ = l.variable("upstreams", upstreamVariable, true)
	return url, origin
}

// readBounded reads what may be a pipe that the shell has made, but not without end.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err == nil && len(data) > maxConfigFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxConfigFile)
	}
	return data, err
}
