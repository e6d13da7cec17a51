package persist

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// Bounds of a turn, in bytes. Ids get a suffix in spool and store, for which storage.MaxID must leave room.
const (
	MaxTurnID       = storage.MaxID - 32
	maxConversation = 512
	maxName         = 256 // speaker, model, chain, source, finish reason; longer ones are cut
	maxMessages     = 1000
)

// validate checks what Enqueue can check in no time.
func (t *Turn) validate() error {
	if err := t.Scope.Validate(); err != nil {
		return err
	}
	switch {
	case t.ID == "" || len(t.ID) > MaxTurnID:
		return fmt.Errorf("turn: id is empty or longer than %d bytes: %w", MaxTurnID, storage.ErrInvalid)
	case len(t.Conversation) > maxConversation:
		return fmt.Errorf("turn: conversation is longer than %d bytes: %w", maxConversation, storage.ErrInvalid)
	case len(t.Messages) == 0 || len(t.Messages) > maxMessages:
		return fmt.Errorf("turn: not 1 to %d messages: %w", maxMessages, storage.ErrInvalid)
	}
	return nil
}

// Reasons for which nothing of a turn is stored.
var (
	errEmpty       = errors.New("no text")
	errRedactedAll = errors.New("nothing but placeholders")
	errDeclined    = errors.New("its user does not want it kept")
)

// prepare returns what of a turn may be kept: words of user and assistant, without recalled blocks, redacted, valid
// UTF-8. The order matters: a block must be recognised before redaction could change it.
func (p *Pipeline) prepare(t Turn) (Turn, error) {
	kept := make([]Message, 0, len(t.Messages))
	redactedAll := false
	for _, m := range t.Messages {
		if m.Role != storage.RoleUser && m.Role != storage.RoleAssistant {
			continue
		}
		text := fence.Strip(strings.ToValidUTF8(m.Text, string(utf8.RuneError)))
		if isBinary(text) {
			continue
		}
		if m.Role == storage.RoleAssistant {
			text = cutThoughts(text)
		} else if declined(text) {
			return Turn{}, errDeclined
		}
		text, originals := p.cut(cutData(text))
		if text == "" {
			continue
		}
		if p.redact != nil && p.redact.OnlyPlaceholders(text) {
			redactedAll = true
			continue
		}
		m.Text, m.Originals = text, originals
		m.Speaker = p.redacted(name(m.Speaker))
		kept = append(kept, m)
	}
	if len(kept) == 0 {
		if redactedAll {
			return Turn{}, errRedactedAll
		}
		return Turn{}, errEmpty
	}
	t.Messages = kept
	t.Chain, t.Model, t.Finish, t.Source, t.Project = name(t.Chain), name(t.Model), name(t.Finish), name(t.Source), name(t.Project)
	return t, nil
}

func (p *Pipeline) redacted(text string) string {
	if p.redact == nil {
		return text
	}
	text, _ = p.redact.Redact(text)
	return text
}

// overhang is how much beyond the bound of a message is redacted with it, so that what a cut goes through was seen whole.
const overhang = 8 << 10

// cut redacts text, shortens it to Config.MaxMessageBytes and trims it. The originals are those of placeholders in it.
func (p *Pipeline) cut(text string) (string, []redact.Original) {
	limit := p.cfg.MaxMessageBytes
	mark := ""
	if len(text) > limit {
		text, mark = text[:limit+min(len(text)-limit, overhang)], cutMark
	}
	text, originals := p.keeping(text)
	if mark != "" {
		text = text[:min(len(text), limit)]
		if space := strings.LastIndexAny(text, " \t\r\n"); space > limit/2 {
			text = text[:space]
		}
		text = strings.ToValidUTF8(text, "")
	}
	from := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	originals = redact.OriginalsIn(originals, from, len(text), 0)
	return strings.TrimSpace(text + mark), originals
}

func name(s string) string {
	if len(s) > maxName {
		s = s[:maxName]
	}
	return strings.ToValidUTF8(s, "")
}
