package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// object is a JSON object that keeps the order of its fields.
type object []field

type field struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := encodeJSON(f.key)
		if err != nil {
			return nil, err
		}
		value, err := encodeJSON(f.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// tree nests the settings by their key paths, in the order of the table.
func tree(table []setting) object {
	var root object
	for _, s := range table {
		at := &root
		key := s.key
		for {
			section, rest, nested := strings.Cut(key, ".")
			if !nested {
				break
			}
			at, key = at.section(section), rest
		}
		*at = append(*at, field{key, s.at.encode()})
	}
	return root
}

func (o *object) section(key string) *object {
	for _, f := range *o {
		if f.key == key {
			return f.value.(*object)
		}
	}
	s := &object{}
	*o = append(*o, field{key, s})
	return s
}

// writeConfig writes the settings as a configuration file, secrets hidden.
func writeConfig(w io.Writer, table []setting) error {
	data, err := encodeJSON(tree(table))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

// writeConfigDocs writes docs/configuration.md.
func writeConfigDocs(w io.Writer, table []setting) error {
	var b strings.Builder
	b.WriteString(configDocsHead)
	section := "\x00"
	for _, s := range table {
		at, _, nested := strings.Cut(s.key, ".")
		if !nested {
			at = ""
		}
		if at != section {
			section = at
			if at == "" {
				b.WriteString("\n## The door\n\n")
			} else {
				fmt.Fprintf(&b, "\n## %s\n\n", at)
				if intro := sectionDocs[at]; intro != "" {
					b.WriteString(intro + "\n\n")
				}
			}
			b.WriteString("| Key | Type | Default | Environment | Meaning |\n|---|---|---|---|---|\n")
		}
		if err := writeRow(&b, s); err != nil {
			return err
		}
		writeFields(&b, s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFields writes what each object of a list may hold.
func writeFields(b *strings.Builder, s setting) {
	list, ok := s.at.(interface{ each() []setting })
	if !ok {
		return
	}
	for _, f := range list.each() {
		f.key = s.key + "[]." + f.key
		fmt.Fprintf(b, "| `%s` | %s | | | %s |\n", f.key, f.at.kind(), f.doc)
		writeFields(b, f)
	}
}

func writeRow(b *strings.Builder, s setting) error {
	shown := s.note
	if shown == "" {
		data, err := encodeJSON(s.at.encode())
		if err != nil {
			return err
		}
		shown = "`" + strings.ReplaceAll(string(data), "|", "\\|") + "`"
	}
	if s.share > 0 {
		shown += fmt.Sprintf(", at most %.3g %% of a container's memory", 100*s.share)
	}
	env := "`" + s.env() + "`"
	if s.key == "upstreams" {
		env = "`REMORA_UPSTREAM` (one URL, for every path)"
	} else if _, ok := s.at.(interface{ each() []setting }); ok {
		env = ""
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", s.key, s.at.kind(), shown, env, s.doc)
	return nil
}
