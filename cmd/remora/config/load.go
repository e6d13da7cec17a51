package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile is the largest configuration file or mounted secret that is read, in
// bytes.
const maxFile = 1 << 20

// Overrides are the settings of the command line; "" means not given.
type Overrides struct {
	File     string
	Listen   string
	Upstream string
	Data     string
	Forward  string
	// Sockets are the addresses of ports that are open already, by the key of
	// the setting that they take the place of.
	Sockets map[string]string

	// Serves is set for commands that reach for the upstreams, which need their
	// certificate authorities.
	Serves bool
}

// Load returns the effective configuration: defaults, then the file, then the
// environment, then flags; each later one wins. The error is a [Problems]; the
// Config then holds what could be read.
func Load(flags Overrides, getenv func(string) string, where Place) (Config, error) {
	r := &report{origins: map[string]string{}, fitted: map[string]bool{}}
	c := Default()
	table := c.settings()
	c.File = r.file(table, flags.File, getenv, where)
	r.environment(table, getenv)
	r.flags(&c, flags, getenv)
	r.fitMemory(table, where.memory)
	r.relations(table)
	c.Settle(where)
	c.validate(r)
	if flags.Serves {
		c.checkAuthorities(r)
	}
	c.loaded = &loaded{r.origins, r.fitted, where}
	return c, r.err()
}

// file reads the configuration file into the table and returns its path, "" if
// there is none. Only the default file may be missing.
func (r *report) file(table []setting, path string, getenv func(string) string, where Place) string {
	if path == "" {
		path = getenv(configVariable)
	}
	explicit := path != ""
	if path == "" {
		path = where.configFile()
	}
	data, err := readLimited(path)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		return ""
	}
	if err != nil {
		r.addFrom("", "", "read configuration: "+err.Error())
		return ""
	}
	root, err := parseJSON(filepath.Base(path), data, r)
	switch {
	case err != nil:
		r.addFrom("", "", err.Error())
	case root.kind != tokenObject:
		r.addFrom("", root.origin(), "the configuration must be a JSON object")
	default:
		r.object(root, "", "", table)
	}
	return path
}

// object hands each member of n to its setting. at is the path of n for
// messages, prefix its path in the table.
func (r *report) object(n *node, at, prefix string, table []setting) {
	for _, m := range n.members {
		key, row := join(at, m.key), join(prefix, m.key)
		i := slices.IndexFunc(table, func(s setting) bool { return s.key == row })
		section := slices.ContainsFunc(table, func(s setting) bool { return strings.HasPrefix(s.key, row+".") })
		switch {
		case i >= 0 && m.node.kind == tokenNull:
			r.addFrom(key, m.node.origin(), "must not be null; leave the key out for its default")
		case i >= 0:
			table[i].at.decode(m.node, key, r)
			r.note(m.node, key)
		case section && m.node.kind == tokenObject:
			r.object(m.node, key, row, table)
		case section:
			r.addFrom(key, m.node.origin(), "must be an object")
		default:
			r.addFrom(key, m.node.origin(), unknownKey(m.key, prefix, table))
		}
	}
}

// note records where a value and the values in it are in the file.
func (r *report) note(n *node, key string) {
	r.origins[key] = n.origin()
	for i, item := range n.items {
		r.note(item, fmt.Sprintf("%s[%d]", key, i))
	}
	for _, m := range n.members {
		r.note(m.node, join(key, m.key))
	}
}

func unknownKey(key, prefix string, table []setting) string {
	var siblings []string
	for _, s := range table {
		rest, ok := strings.CutPrefix(s.key, prefix)
		if rest = strings.TrimPrefix(rest, "."); ok && rest != "" {
			name, _, _ := strings.Cut(rest, ".")
			siblings = append(siblings, name)
		}
	}
	if near := Nearest(key, siblings); near != "" {
		return fmt.Sprintf("unknown key; did you mean %q?", near)
	}
	return "unknown key"
}

func (r *report) flags(c *Config, f Overrides, getenv func(string) string) {
	upstream, origin := f.Upstream, "--upstream"
	if upstream == "" {
		upstream, origin, _ = r.variable("upstreams", upstreamVariable, true, getenv)
	}
	if upstream != "" {
		c.SetUpstream(upstream)
		r.origins["upstreams"], r.origins["upstreams[0].url"] = origin, origin
	}
	for _, flag := range []struct {
		value, key, name string
		to               *string
	}{
		{f.Listen, "listen", "--listen", &c.Server.Listen},
		{f.Data, "storage.dir", "--data", &c.Storage.Dir},
		{f.Forward, "forward.listen", "--forward", &c.Forward.Listen},
	} {
		if flag.value != "" {
			*flag.to, r.origins[flag.key] = flag.value, flag.name
		}
		if address := f.Sockets[flag.key]; address != "" {
			*flag.to, r.origins[flag.key] = address, socketOrigin
		}
	}
	for key, to := range map[string]*string{"api.listen": &c.API.Listen, "health.listen": &c.Health} {
		if address := f.Sockets[key]; address != "" {
			*to, r.origins[key] = address, socketOrigin
		}
	}
}

// socketOrigin is where the address of a port that was open already is from.
const socketOrigin = "socket activation"

// ReadRegular reads a regular file or what a link to one leads to, as mounted
// secrets are, up to 1 MiB. It does not open anything else: a pipe might wait
// for a writer forever.
func ReadRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return readLimited(path)
}

// readLimited reads a file, which may be a pipe that a shell has made, up to
// maxFile.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return data, err
}
