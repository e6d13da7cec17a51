package persist

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

const (
	// PassageRunes is the longest passage, in characters, the marks of a cut included.
	PassageRunes = 1024
	// cutMark stands where a passage goes on in the next one, at its end and at the next one's start.
	cutMark = "..."
	// Trust of a passage by who spoke: an assistant repeats, guesses and quotes.
	trustUser      = 1.0
	trustAssistant = 0.5
)

// episodesOf returns the searchable passages of a redacted turn: each message cut at the ends of sentences, or else of
// words, into at most PassageRunes characters. EventTime rises by at least a millisecond from passage to passage, so that
// order of speech is order of time. What goes beyond maxWrite is left out, with the mark of a cut. Where there is a salt,
// and room for them beside all texts, they have the originals of their placeholders.
//
// The result depends on the arguments alone, and its ids are those that storage.Write wants of a turn.
func episodesOf(t Turn, retention time.Duration, salt []byte, maxWrite int) (out []storage.Memory) {
	var originals []map[string]string // by memory
	var last storage.Time
	size := 0
	defer func() {
		for i, kept := range originals {
			if size += redactionsSize(kept); size > maxWrite {
				return
			}
			out[i].Redactions = kept
		}
	}()
	for _, m := range t.Messages {
		planted := false // of a message in pieces, for a quotation may be cut
		if m.Role == storage.RoleUser && len(m.Text) > PassageRunes {
			planted = orders(foreignWords(m.Text))
		}
		whole := strings.TrimRightFunc(m.Text, unicode.IsSpace)
		rest := strings.TrimSpace(whole)
		continued := false
		for rest != "" {
			text, after := passage(rest, continued)
			from, lead := len(whole)-len(rest), 0
			if continued {
				lead = len(cutMark)
			}
			at := max(m.Time, last+1)
			e := storage.Memory{
				ID: storage.TurnMemoryID(t.ID, len(out)), Scope: t.Scope, Conversation: t.Conversation,
				Kind: storage.KindEpisode, Text: text, Trust: trust(m.Role, text), Source: t.Source,
				Provenance: storage.Provenance{Turn: t.ID, Chain: t.Chain, Role: m.Role, Speaker: m.Speaker, Seq: len(out), Model: t.Model},
				EventTime:  at, ValidFrom: at, ExpiresAt: at + storage.Time(retention.Milliseconds()),
			}
			if planted && orders(text) {
				e.Trust = quarantinedTrust
			}
			if t.Project != "" {
				e.Tags = []string{storage.ProjectTag + t.Project}
			}
			size += storage.Write{Memories: []storage.Memory{e}}.Size()
			if size > maxWrite || len(out) == storage.MaxWriteMemories {
				return out
			}
			out = append(out, e)
			if salt != nil {
				originals = append(originals, redact.EncodeOriginals(salt, redact.OriginalsIn(m.Originals, from, len(whole)-len(after), lead)))
			}
			last, rest, continued = at, after, true
		}
	}
	return out
}

// trust is 0 for what is shaped like an instruction to a model, and for what orders it about without being the user's own
// words: it is kept for review and never recalled.
func trust(r storage.Role, text string) float64 {
	l, short := look(text), text[:min(len(text), maxInstruct)]
	switch {
	case l.mayInstruct() && instructing(short), r != storage.RoleUser && (lures(text) || l.mayOrder() && ordering(short)),
		r == storage.RoleUser && l.foreign && orders(foreignOf(text)):
		return quarantinedTrust
	case r == storage.RoleUser:
		return trustUser
	}
	return trustAssistant
}

// passage cuts the first passage off text, which has no white space around it, and returns it and the rest.
func passage(text string, continued bool) (first, rest string) {
	lead := ""
	if continued {
		lead = cutMark
	}
	room := PassageRunes - len(lead)
	if len(text) <= room*utf8.UTFMax && utf8.RuneCountInString(text) <= room { // never counts a long text
		return lead + text, ""
	}
	at := border(text, room-len(cutMark))
	return lead + strings.TrimRightFunc(text[:at], unicode.IsSpace) + cutMark, strings.TrimLeftFunc(text[at:], unicode.IsSpace)
}

// border returns where to cut text, at most limit characters from its start: behind the last end of a paragraph or
// sentence in the second half, else behind the last word of it, else hard.
func border(text string, limit int) int {
	half, end, n := 0, 0, 0
	for i := range text {
		if n == limit/2 {
			half = i
		}
		if n == limit {
			end = i
			break
		}
		n++
	}
	sentence, word := 0, 0
	for i, r := range text[half:end] {
		at := half + i
		switch {
		case r == '\n':
			sentence = at + 1
		case strings.ContainsRune("。！？", r):
			sentence = at + utf8.RuneLen(r)
		case unicode.IsSpace(r):
			word = at
			if before := strings.TrimRight(text[:at], `"')]`); before != "" && strings.IndexByte(".!?", before[len(before)-1]) >= 0 {
				sentence = at
			}
		}
	}
	switch {
	case sentence > 0:
		return sentence
	case word > 0:
		return word
	}
	return end
}
