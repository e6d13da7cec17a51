package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// Original is the personal data that a placeholder replaced.
type Original struct {
	Rule        string
	Placeholder string
	Text        string
	At          int // byte offset of the placeholder in the redacted text
}

// Limits of what RedactWithOriginals returns for one text. Originals beyond
// them are redacted but not kept.
const (
	MaxOriginals     = 1000
	MaxOriginalBytes = 64 << 10 // of all of them together
)

// assigned matches text up to where the value of a secret begins, or continues
// in quotation marks: a phone number may be a password, too.
var assigned = regexp.MustCompile(`(?i)(?:pass(?:word|wd|phrase|code)?|passwort|kennwort|pwd|pin|secret|token|api[ _-]?key|access[ _-]?key|credentials?|auth)[\w-]*["'` + "`" + `]?\s*(?:[:=]+>?|\b(?:is|was|ist|lautet|est|es)\b)\s*(?:["'` + "`" + `][^"'` + "`" + `\n]*)?$`)

// assignedBefore is how much text before a finding is matched, in bytes.
const assignedBefore = 96

// RedactWithOriginals is Redact that also returns the originals of personal
// data, in order. It never returns those of secrets and custom rules, text that
// was part of a secret, or the value of a password, key or token, whatever it
// looks like. The caller must protect them like the text itself.
func (r *Redactor) RedactWithOriginals(text string) (string, []Original) {
	out, matches := r.redact(text)
	var originals []Original
	shift, size := 0, 0 // offset in out = offset in text - shift
	for _, s := range matches {
		rule := r.rule(s.rule)
		original := text[s.start:s.end]
		if s.rule.family() == familyPersonal && !assigned.MatchString(text[max(0, s.start-assignedBefore):s.start]) && len(originals) < MaxOriginals && size+len(original) <= MaxOriginalBytes {
			size += len(original)
			originals = append(originals, Original{Rule: rule.ID, Placeholder: rule.Placeholder, Text: strings.Clone(original), At: s.start - shift})
		}
		shift += s.end - s.start - len(rule.Placeholder)
	}
	return out, originals
}

// storedOriginal is the JSON value of a reversible map.
type storedOriginal struct {
	Original    string `json:"original"`
	Placeholder string `json:"placeholder"`
	Type        string `json:"type"` // id of the rule
	At          []int  `json:"at"`   // byte offsets in the redacted text
}

// EncodeOriginals returns the reversible map of a redacted text: {salted hash
// of type and original: original, placeholder, type and positions, as JSON}.
// The hash shows whether two texts hold the same original, without revealing it
// to those who do not know the salt. Without originals the map is nil. It must
// be stored encrypted.
func EncodeOriginals(salt []byte, originals []Original) map[string]string {
	if len(originals) == 0 {
		return nil
	}
	entries := map[string]*storedOriginal{}
	for _, o := range originals {
		mac := hmac.New(sha256.New, salt)
		_, _ = mac.Write([]byte(o.Rule + "\x00" + o.Text))
		key := hex.EncodeToString(mac.Sum(nil)[:16])
		if entries[key] == nil {
			entries[key] = &storedOriginal{Original: o.Text, Placeholder: o.Placeholder, Type: o.Rule}
		}
		entries[key].At = append(entries[key].At, o.At)
	}
	out := make(map[string]string, len(entries))
	for key, e := range entries {
		value, err := json.Marshal(e)
		if err != nil {
			panic(err) // strings and numbers always encode
		}
		out[key] = string(value)
	}
	return out
}

// errMismatch means that a map does not belong to a text.
var errMismatch = errors.New("redactions do not belong to the text")

// Restore replaces the placeholders in a redacted text by the originals of the
// map that EncodeOriginals made for it.
func Restore(text string, redactions map[string]string) (string, error) {
	type place struct {
		at   int
		what storedOriginal
	}
	var places []place
	for _, value := range redactions {
		var e storedOriginal
		if err := json.Unmarshal([]byte(value), &e); err != nil {
			return "", errMismatch
		}
		for _, at := range e.At {
			places = append(places, place{at, e})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return a.at - b.at })
	var b strings.Builder
	from := 0
	for _, p := range places {
		if p.at < from || p.at > len(text) || !strings.HasPrefix(text[p.at:], p.what.Placeholder) {
			return "", errMismatch
		}
		b.WriteString(text[from:p.at])
		b.WriteString(p.what.Original)
		from = p.at + len(p.what.Placeholder)
	}
	b.WriteString(text[from:])
	return b.String(), nil
}

// OriginalsIn returns the originals whose placeholders are in bytes [from, to)
// of the text, with positions for that part at offset at of another text.
func OriginalsIn(originals []Original, from, to, at int) []Original {
	var out []Original
	for _, o := range originals {
		if o.At >= from && o.At+len(o.Placeholder) <= to {
			o.At += at - from
			out = append(out, o)
		}
	}
	return out
}

// DecodeOriginals returns the originals of a map that EncodeOriginals made, in
// the order of their places. Entries that can't be read are left out.
func DecodeOriginals(redactions map[string]string) (out []Original) {
	for _, value := range redactions {
		var e storedOriginal
		if json.Unmarshal([]byte(value), &e) != nil {
			continue
		}
		for _, at := range e.At {
			out = append(out, Original{Rule: e.Type, Placeholder: e.Placeholder, Text: e.Original, At: at})
		}
	}
	slices.SortFunc(out, func(a, b Original) int { return a.At - b.At })
	return out
}

// CarryOriginals returns the originals of a text that was edited: the new ones,
// and of the old ones those whose placeholders are still there, as often as
// before, in the same order. Where their number has changed, it is not known
// which is which, and they are dropped.
func CarryOriginals(old map[string]string, text string, added []Original) []Original {
	taken := map[int]bool{}
	for _, o := range added {
		taken[o.At] = true
	}
	byPlaceholder := map[string][]Original{}
	for _, o := range DecodeOriginals(old) {
		byPlaceholder[o.Placeholder] = append(byPlaceholder[o.Placeholder], o)
	}
	out := slices.Clone(added)
	for placeholder, before := range byPlaceholder {
		var places []int
		for from := 0; placeholder != ""; {
			i := strings.Index(text[from:], placeholder)
			if i < 0 {
				break
			}
			if !taken[from+i] {
				places = append(places, from+i)
			}
			from += i + len(placeholder)
		}
		if len(places) != len(before) {
			continue
		}
		for i, o := range before {
			o.At = places[i]
			out = append(out, o)
		}
	}
	return out
}
