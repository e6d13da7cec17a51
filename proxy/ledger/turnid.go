package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"

	"github.com/remora-proxy/remora/storage"
)

// TurnIDs makes the ids of turns. It keeps its HMACs: setting one up costs more
// than hashing the few hundred bytes of an id.
type TurnIDs struct{ macs sync.Pool }

// NewTurnIDs returns the ids that derive from secret.
func NewTurnIDs(secret []byte) *TurnIDs {
	t := &TurnIDs{}
	t.macs.New = func() any { return hmac.New(sha256.New, secret) }
	return t
}

// ID returns the idempotent id of a turn: the same messages in the same
// conversation are the same turn. Stores hold these ids, so they must not
// change.
func (t *TurnIDs) ID(scope storage.Scope, conversation, chain string) string {
	m := t.macs.Get().(hash.Hash)
	defer t.macs.Put(m)
	m.Reset()
	var space [512]byte
	b := appendParts(space[:0], "remora turn", scope.Tenant, scope.App, scope.Project, scope.User, conversation, chain)
	_, _ = m.Write(b)
	return hex.EncodeToString(m.Sum(b[:0])[:16])
}
