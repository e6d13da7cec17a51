package fence

import (
	"slices"

	"github.com/remora-proxy/remora/storage"
)

// outdatedMark precedes a memory of which a later statement supersedes a part.
const outdatedMark = "(in part outdated) "

// LineOf returns a memory as it is shown. It is redacted again, since rules may
// have been added after it was stored; redact may be nil.
func LineOf(m *storage.Memory, redact func(string) string) Line {
	text, who := m.Text, m.Provenance.Speaker
	if redact != nil {
		if text = redact(text); who != "" {
			who = redact(who)
		}
	}
	if who == "" {
		who = string(m.Provenance.Role)
	}
	if who == "" {
		who = string(m.Kind)
	}
	if slices.Contains(m.Tags, storage.OutdatedTag) {
		text = outdatedMark + text
	}
	return Line{ID: m.ID, Time: m.EventTime, Who: who, Text: text}
}
