package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
)

// nameBytes is how many random bytes a name has: of a conversation, or of a block, which no text can guess.
const nameBytes = 8

// randoms keeps random bytes for the names to come: the system is asked for 32 names at a time. A byte is used once and is
// gone then.
var randoms = sync.Pool{New: func() any { return new(random) }}

type random struct {
	bytes [32 * nameBytes]byte
	left  int
}

// randomName is a name that nobody has and nobody can guess, in hex.
func randomName() string {
	r := randoms.Get().(*random)
	if r.left == 0 {
		_, _ = rand.Read(r.bytes[:]) // never fails
		r.left = len(r.bytes)
	}
	last := r.bytes[r.left-nameBytes : r.left]
	var name [2 * nameBytes]byte
	hex.Encode(name[:], last)
	clear(last)
	r.left -= nameBytes
	randoms.Put(r)
	return string(name[:])
}
