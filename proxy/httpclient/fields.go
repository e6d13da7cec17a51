package httpclient

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// headField is one name of a head with its values.
type headField struct {
	name   string
	values []string
}

// appendFields appends h without the fields that newRequest writes itself. It
// does what h.WriteSubset does at half the cost: the same order, and what no
// head can contain is left out or blanked likewise. room is cleared after use.
func appendFields(b []byte, h http.Header, room []headField) []byte {
	fields := room[:0]
	for name, values := range h {
		switch name {
		case "Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer":
		default:
			fields = append(fields, headField{name, values})
		}
	}
	sortFields(fields)
	b = appendSorted(b, fields)
	clear(room[:min(len(fields), len(room))])
	return b
}

// appendSorted appends fields in the form of a head.
func appendSorted(b []byte, fields []headField) []byte {
	for _, f := range fields {
		if !isToken(f.name) {
			continue
		}
		for _, v := range f.values {
			if strings.IndexByte(v, '\r') >= 0 || strings.IndexByte(v, '\n') >= 0 {
				v = oneLine.Replace(v)
			}
			b = append(append(b, f.name...), ": "...)
			b = append(append(b, textproto.TrimString(v)...), "\r\n"...)
		}
	}
	return b
}

// sortFields sorts by name. Few fields are sorted without calls.
func sortFields(fields []headField) {
	if len(fields) > 20 {
		slices.SortFunc(fields, func(a, b headField) int { return strings.Compare(a.name, b.name) })
		return
	}
	for i := 1; i < len(fields); i++ {
		for j := i; j > 0 && fields[j].name < fields[j-1].name; j-- {
			fields[j], fields[j-1] = fields[j-1], fields[j]
		}
	}
}
