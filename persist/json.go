package persist

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/remora-proxy/remora/storage"
)

// What every turn has encoded is written out here, byte for byte as encoding/json would at several times the cost (a test holds
// the two together). What is read back is read by encoding/json.

// jsonWriter appends JSON. A member's name comes with its colon, and the comma before it.
type jsonWriter struct{ b []byte }

func (w *jsonWriter) raw(s string) { w.b = append(w.b, s...) }

func (w *jsonWriter) int(name string, n int64) {
	w.raw(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *jsonWriter) bool(name string, v bool) {
	w.raw(name)
	w.b = strconv.AppendBool(w.b, v)
}

// share appends a number between 0 and a million that is no smaller than a millionth, or 0: those of which encoding/json writes no
// exponent.
func (w *jsonWriter) share(name string, v float64) {
	w.raw(name)
	w.b = strconv.AppendFloat(w.b, v, 'f', -1, 64)
}

func (w *jsonWriter) string(name, s string) {
	w.raw(name)
	w.quote(s)
}

// jsonPlain are the bytes that stand for themselves in a string.
var jsonPlain = func() (plain [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		plain[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return plain
}()

func (w *jsonWriter) quote(s string) {
	const digits = "0123456789abcdef"
	b := append(slices.Grow(w.b, len(s)+len(s)/16+2), '"')
	kept := 0 // s[kept:i] goes as it is
	for i := 0; i < len(s); {
		c := s[i]
		if jsonPlain[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = append(b, s[kept:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\b':
				b = append(b, `\b`...)
			case '\f':
				b = append(b, `\f`...)
			case '\n':
				b = append(b, `\n`...)
			case '\r':
				b = append(b, `\r`...)
			case '\t':
				b = append(b, `\t`...)
			default:
				b = append(append(b, `\u00`...), digits[c>>4], digits[c&15])
			}
			i++
			kept = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b = append(append(b, s[kept:i]...), `\ufffd`...)
			kept = i + n
		case r == '\u2028' || r == '\u2029':
			b = append(append(b, s[kept:i]...), `\u202`...)
			b = append(b, digits[r&15])
			kept = i + n
		}
		i += n
	}
	w.b = append(append(b, s[kept:]...), '"')
}

func (s *Summary) encode() []byte {
	s.Version = summaryVersion
	w := jsonWriter{make([]byte, 0, 256+40*len(s.Keywords)+summarySentence*len(s.Sentences))}
	w.int(`{"Version":`, int64(s.Version))
	w.string(`,"Conversation":`, s.Conversation)
	w.raw(`,"Keywords":`)
	w.list(len(s.Keywords), s.Keywords == nil, func(i int) {
		w.string(`{"Word":`, s.Keywords[i].Word)
		w.int(`,"Count":`, int64(s.Keywords[i].Count))
		w.raw("}")
	})
	w.raw(`,"Sentences":`)
	w.list(len(s.Sentences), s.Sentences == nil, func(i int) { w.quote(s.Sentences[i]) })
	w.int(`,"Messages":`, int64(s.Messages))
	w.int(`,"Updated":`, int64(s.Updated))
	w.raw("}")
	return slices.Clip(w.b)
}

// list appends n elements, or null.
func (w *jsonWriter) list(n int, null bool, element func(i int)) {
	if null {
		w.raw("null")
		return
	}
	w.raw("[")
	for i := range n {
		if i > 0 {
			w.raw(",")
		}
		element(i)
	}
	w.raw("]")
}

// turn appends a turn, or fails where encoding/json would.
func (w *jsonWriter) turn(t *Turn) error {
	w.string(`{"ID":`, t.ID)
	w.scope(`,"Scope":`, t.Scope)
	w.string(`,"Conversation":`, t.Conversation)
	w.string(`,"Chain":`, t.Chain)
	w.raw(`,"Messages":`)
	var err error
	w.list(len(t.Messages), t.Messages == nil, func(i int) {
		m := &t.Messages[i]
		w.string(`{"Role":`, string(m.Role))
		w.string(`,"Speaker":`, m.Speaker)
		w.string(`,"Text":`, m.Text)
		w.int(`,"Time":`, int64(m.Time))
		if len(m.Originals) > 0 { // few have some
			originals, failed := json.Marshal(m.Originals)
			if failed != nil {
				err = failed
			}
			w.raw(`,"Originals":`)
			w.b = append(w.b, originals...)
		}
		w.raw("}")
	})
	w.string(`,"Model":`, t.Model)
	w.string(`,"Finish":`, t.Finish)
	w.string(`,"Source":`, t.Source)
	if t.Project != "" {
		w.string(`,"Project":`, t.Project)
	}
	w.raw("}")
	return err
}

func (w *jsonWriter) scope(name string, s storage.Scope) {
	w.string(name+`{"Tenant":`, s.Tenant)
	w.string(`,"App":`, s.App)
	w.string(`,"Project":`, s.Project)
	w.string(`,"User":`, s.User)
	w.raw("}")
}

func (e *spoolEntry) encode() ([]byte, error) {
	size := 512 + len(e.Turn.ID) + len(e.Turn.Conversation)
	for i := range e.Turn.Messages {
		size += 96 + len(e.Turn.Messages[i].Text) + len(e.Turn.Messages[i].Text)/16
	}
	w := jsonWriter{make([]byte, 0, size)}
	w.int(`{"Version":`, int64(e.Version))
	w.raw(`,"Seq":`)
	w.b = strconv.AppendUint(w.b, e.Seq, 10)
	w.int(`,"Tries":`, int64(e.Tries))
	w.string(`,"Problem":`, e.Problem)
	w.int(`,"Since":`, int64(e.Since))
	w.raw(`,"Turn":`)
	if err := w.turn(&e.Turn); err != nil {
		return nil, err
	}
	if e.Due != nil {
		w.string(`,"Due":{"Conversation":`, e.Due.Conversation)
		w.int(`,"Since":`, int64(e.Due.Since))
		w.raw("}")
	}
	w.raw("}")
	return w.b, nil
}

func (r *AuditRecord) appendTo(w *jsonWriter) {
	w.int(`{"Version":`, int64(r.Version))
	w.int(`,"At":`, int64(r.At))
	w.string(`,"Conversation":`, r.Conversation)
	w.int(`,"From":`, int64(r.From))
	w.int(`,"To":`, int64(r.To))
	w.int(`,"Messages":`, int64(r.Messages))
	w.int(`,"Fresh":`, int64(r.Fresh))
	w.int(`,"Tokens":`, int64(r.Tokens))
	w.int(`,"Candidates":`, int64(r.Candidates))
	w.share(`,"Mean":`, r.Mean)
	w.share(`,"Best":`, r.Best)
	w.int(`,"Saved":`, int64(r.Saved))
	w.int(`,"Superseded":`, int64(r.Superseded))
	w.int(`,"Reinforced":`, int64(r.Reinforced))
	w.int(`,"Quarantined":`, int64(r.Quarantined))
	w.raw(`,"Rejected":`)
	if r.Rejected == nil {
		w.raw("null")
	} else {
		var space [16]string
		reasons := space[:0]
		for why := range r.Rejected {
			reasons = append(reasons, why)
		}
		slices.Sort(reasons)
		w.raw("{")
		for i, why := range reasons {
			if i > 0 {
				w.raw(",")
			}
			w.quote(why)
			w.int(":", int64(r.Rejected[why]))
		}
		w.raw("}")
	}
	w.bool(`,"Soft":`, r.Soft)
	w.bool(`,"Distilled":`, r.Distilled)
	w.int(`,"TookMicros":`, r.TookMicros)
	w.raw("}")
}
