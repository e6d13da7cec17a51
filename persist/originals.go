package persist

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"slices"

	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// keeping redacts text and returns the originals of personal data where they are to be kept.
func (p *Pipeline) keeping(text string) (string, []redact.Original) {
	if p.redact == nil || !p.cfg.KeepOriginals {
		return p.redacted(text), nil
	}
	return p.redact.RedactWithOriginals(text)
}

// salt keys the hashes of originals: one of its own for each scope of each installation, so that they can't be compared
// across users. It is nil where originals are not kept, or a turn has none.
func (p *Pipeline) salt(ctx context.Context, t Turn) ([]byte, error) {
	if !p.cfg.KeepOriginals || !slices.ContainsFunc(t.Messages, func(m Message) bool { return len(m.Originals) > 0 }) {
		return nil, nil
	}
	scope := t.Scope
	secret, err := p.installSecret(ctx)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte("remora redactions"))
	for _, part := range []string{scope.Tenant, scope.App, scope.Project, scope.User} {
		n := len(part)
		_, _ = mac.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		_, _ = mac.Write([]byte(part))
	}
	return mac.Sum(nil), nil
}

// installSecret asks for the secret once: it never changes.
func (p *Pipeline) installSecret(ctx context.Context) ([]byte, error) {
	if known := p.secret.Load(); known != nil {
		return *known, nil
	}
	secret, err := p.local.InstallSecret(ctx)
	if err != nil {
		return nil, err
	}
	p.secret.Store(&secret)
	return secret, nil
}

// redactionsSize is what a map adds to the size of a write.
func redactionsSize(kept map[string]string) int {
	return storage.Write{Memories: []storage.Memory{{Redactions: kept}}}.Size() - storage.Write{Memories: []storage.Memory{{}}}.Size()
}

// withoutOriginals is what an index may have of memories: it lies in memory in the clear.
func withoutOriginals(ms []storage.Memory) []storage.Memory {
	if !slices.ContainsFunc(ms, func(m storage.Memory) bool { return m.Redactions != nil }) {
		return ms
	}
	ms = slices.Clone(ms)
	for i := range ms {
		ms[i].Redactions = nil
	}
	return ms
}
