package persist

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// episodesOf returns the passages of a redacted turn: each message cut at the
// ends of sentences, or else of words. EventTime rises from passage to passage,
// so order of speech is order of time. What exceeds maxWrite is left out. With
// a salt, passages have the originals of their placeholders, if there is room.
//
// The result depends on the arguments alone, and its ids are those that
// storage.Write wants of a turn.
func episodesOf(t Turn, retention time.Duration, salt []byte, maxWrite int) (out []storage.Memory) {
	var originals []map[string]string // by memory
	var last storage.Time
	size := 0
	quoted := slices.ContainsFunc(t.Messages, func(m Message) bool { return m.Role == storage.RoleUser && extract.Quotes(m.Text) })
	defer func() {
		for i, kept := range originals {
			if size += redactionsSize(kept); size > maxWrite {
				return
			}
			out[i].Redactions = kept
		}
	}()
	for _, m := range t.Messages {
		user := m.Role == storage.RoleUser
		// Of a message in pieces, since a quotation may be cut.
		pasted := user && len(m.Text) > PassageRunes && extract.PastedOrders(m.Text)
		whole := strings.TrimRightFunc(m.Text, unicode.IsSpace)
		rest := strings.TrimSpace(whole)
		continues := false
		for rest != "" {
			text, after := extract.NextPassage(rest, continues)
			from, lead := len(whole)-len(rest), 0
			if continues {
				lead = len(extract.CutMark)
			}
			at := max(m.Time, last+1)
			e := storage.Memory{
				ID: storage.TurnMemoryID(t.ID, len(out)), Scope: t.Scope, Conversation: t.Conversation,
				Kind: storage.KindEpisode, Text: text, Trust: extract.Trust(user, text), Source: t.Source,
				Provenance: storage.Provenance{Turn: t.ID, Chain: t.Chain, Role: m.Role, Speaker: m.Speaker, Seq: len(out), Model: t.Model},
				EventTime:  at, ValidFrom: at, ExpiresAt: max(at, t.KeptFrom) + storage.Time(retention.Milliseconds()),
			}
			if pasted && extract.Orders(text) {
				e.Trust = extract.Quarantined
			}
			if t.Project != "" {
				e.Tags = []string{storage.ProjectTag + t.Project}
			}
			if t.Private {
				e.Tags = append(e.Tags, storage.PrivateTag)
			}
			if quoted {
				e.Tags = append(e.Tags, storage.QuotedTag)
			}
			if t.RolePlay {
				e.Tags = append(e.Tags, storage.RolePlayTag)
			}
			size += storage.Write{Memories: []storage.Memory{e}}.Size()
			if size > maxWrite || len(out) == storage.MaxWriteMemories {
				return out
			}
			out = append(out, e)
			if salt != nil {
				originals = append(originals, redact.EncodeOriginals(salt, redact.OriginalsIn(m.Originals, from, len(whole)-len(after), lead)))
			}
			last, rest, continues = at, after, true
		}
	}
	return out
}

// redactionsSize is what a map adds to the size of a write.
func redactionsSize(kept map[string]string) int {
	return storage.Write{Memories: []storage.Memory{{Redactions: kept}}}.Size() - storage.Write{Memories: []storage.Memory{{}}}.Size()
}
