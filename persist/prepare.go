package persist

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// Reasons for which nothing of a turn is stored.
var (
	errEmpty       = errors.New("no text")
	errRedactedAll = errors.New("nothing but placeholders")
	errDeclined    = errors.New("its user does not want it kept")
)

// redactor prepares turns: it removes what is not to be kept and redacts the
// rest. The spooler's workers call it for turns, the auditor for what a model
// reads and proposes. It is safe for concurrent use.
type redactor struct {
	rules         *redact.Redactor // nil: the texts are redacted already
	maxMessage    int              // bytes
	keepOriginals bool
	local         storage.Local

	mu     sync.Mutex
	secret []byte // of the installation; it never changes
}

// prepare returns the part of a turn that may be kept: words of user and
// assistant, without recalled blocks, redacted, in valid UTF-8. The order
// matters: a block must be recognised before redaction could change it.
func (r *redactor) prepare(t Turn) (Turn, error) {
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
		text = strings.ReplaceAll(text, "\x00", "") // one that a client let through
		if m.Role == storage.RoleAssistant {
			text = extract.CutThoughts(text)
		} else if extract.Declined(text) {
			return Turn{}, errDeclined
		}
		text, originals := r.cut(cutData(text))
		if text == "" {
			continue
		}
		if r.rules != nil && r.rules.OnlyPlaceholders(text) {
			redactedAll = true
			continue
		}
		m.Text, m.Originals = text, originals
		m.Speaker = r.redact(shortName(m.Speaker))
		kept = append(kept, m)
	}
	if len(kept) == 0 {
		if redactedAll {
			return Turn{}, errRedactedAll
		}
		return Turn{}, errEmpty
	}
	t.Messages = kept
	for _, s := range [...]*string{&t.Chain, &t.Model, &t.Finish, &t.Source, &t.Project} {
		*s = shortName(*s)
	}
	return t, nil
}

func (r *redactor) redact(text string) string {
	if r.rules == nil {
		return text
	}
	text, _ = r.rules.Redact(text)
	return text
}

// hides reports whether nothing of a statement may be saved: it is all
// placeholders, or hides a secret.
func (r *redactor) hides(text string) bool {
	return r.rules != nil && (r.rules.OnlyPlaceholders(text) || r.rules.HidesSecret(text))
}

// overhang is how many bytes beyond the limit of a message are redacted with
// it, so that what the cut goes through was seen whole.
const overhang = 8 << 10

// cut redacts text, shortens it to the limit of a message and trims it. The
// originals are those of placeholders in the result, if they are to be kept.
func (r *redactor) cut(text string) (string, []redact.Original) {
	limit, mark := r.maxMessage, ""
	if len(text) > limit {
		text, mark = text[:limit+min(len(text)-limit, overhang)], extract.CutMark
	}
	var originals []redact.Original
	if r.rules != nil && r.keepOriginals {
		text, originals = r.rules.RedactWithOriginals(text)
	} else {
		text = r.redact(text)
	}
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

func shortName(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxName)], "")
}

// salt returns the key of the hashes of a turn's originals: one for each scope
// of each installation, so that hashes can't be compared across users. It is
// nil where originals are not kept, or the turn has none.
func (r *redactor) salt(ctx context.Context, t Turn) ([]byte, error) {
	if !r.keepOriginals || !slices.ContainsFunc(t.Messages, func(m Message) bool { return len(m.Originals) > 0 }) {
		return nil, nil
	}
	secret, err := r.installSecret(ctx)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte("remora redactions"))
	for _, part := range []string{t.Scope.Tenant, t.Scope.App, t.Scope.Project, t.Scope.User} {
		n := len(part)
		_, _ = mac.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		_, _ = mac.Write([]byte(part))
	}
	return mac.Sum(nil), nil
}

func (r *redactor) installSecret(ctx context.Context) (secret []byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.secret == nil {
		r.secret, err = r.local.InstallSecret(ctx)
	}
	return r.secret, err
}
