package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// Hash identifies a position in a conversation: it covers the scope and every
// message up to there.
type Hash = xxh3.Uint128

// HexHash returns h in hexadecimal.
func HexHash(h Hash) string {
	var text [hexHashLen]byte
	return string(appendHexHash(text[:0], h))
}

const hexHashLen = 2 * 16

func appendHexHash(dst []byte, h Hash) []byte {
	b := h.Bytes()
	return hex.AppendEncode(dst, b[:])
}

// chainSeed returns the start of a scope's chains. Without the secret it can't
// be computed, nor can any hash that follows.
func chainSeed(of Seed) Hash {
	m := hmac.New(sha256.New, of.Secret)
	parts := []string{"remora chain", of.Scope.Tenant, of.Scope.App, of.Scope.Project, of.Scope.User}
	if of.Class != "" {
		parts = append(parts, of.Class)
	}
	_, _ = m.Write(appendParts(nil, parts...))
	return xxh3.Hash128(m.Sum(nil))
}

// chain returns the hash after each message of req, in room if that is large
// enough. Leading system messages are not part of the chain: agents change
// theirs between turns, which would drop every entry. See docs/protocols.md.
func chain(seed Hash, req *dialect.Request, room []Hash) []Hash {
	out := slices.Grow(room[:0], len(req.Messages))[:len(req.Messages)]
	h, began := seed, false
	for i := range req.Messages {
		if began = began || req.Messages[i].Role != dialect.RoleSystem; began {
			h = extend(h, req.Messages[i].Hash)
		}
		out[i] = h
	}
	return out
}

// outline returns the hash after each message of req over those of its messages
// that the client wrote, from start. A client that sends a conversation again
// from the beginning, after the server kept it for a while, may spell the
// answers otherwise.
func outline(start Hash, req *dialect.Request) []Hash {
	out, h := make([]Hash, len(req.Messages)), start
	for i, m := range req.Messages {
		if m.Role == dialect.RoleUser || m.Role == dialect.RoleTool {
			h = extend(h, m.Hash)
		}
		out[i] = h
	}
	return out
}

// outlineKey is where a turn of a thread is found by its outline.
func outlineKey(h Hash) Hash {
	return xxh3.Hash128(append(appendHash(make([]byte, 0, 17), h), 't'))
}

// SystemHash returns a hash over the leading system messages, zero if there are
// none. Requests that differ in these alone are different turns although they
// share a position: one may ask for a title of what the other answers.
func SystemHash(req *dialect.Request) (h Hash) {
	for i := range req.Messages {
		if req.Messages[i].Role != dialect.RoleSystem {
			break
		}
		h = extend(h, req.Messages[i].Hash)
	}
	return h
}

// extend returns the chain hash after message m, h being the hash before it.
func extend(h, m Hash) Hash {
	var b [32]byte
	binary.BigEndian.PutUint64(b[0:], h.Hi)
	binary.BigEndian.PutUint64(b[8:], h.Lo)
	binary.BigEndian.PutUint64(b[16:], m.Hi)
	binary.BigEndian.PutUint64(b[24:], m.Lo)
	return xxh3.Hash128(b[:])
}

// The ids of conversations that no request has named begin with one of these:
// ids derived from the first turn, and random ids of new conversations.
const (
	chainPrefix = "chain:"
	newPrefix   = "new:"
)

// unnamed reports whether no request has named the conversation.
func unnamed(conversation string) bool {
	return strings.HasPrefix(conversation, newPrefix) || strings.HasPrefix(conversation, chainPrefix)
}

func chainID(h Hash) string {
	var text [len(chainPrefix) + hexHashLen]byte
	return string(appendHexHash(append(text[:0], chainPrefix...), h))
}

// appendParts joins parts for hashing so that no two lists of parts hash alike.
func appendParts(b []byte, parts ...string) []byte {
	for _, p := range parts {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(p))), p...)
	}
	return b
}
