package recall

import (
	"bytes"
	"encoding/hex"
	"hash/fnv"
	"io"
	"strings"

	"github.com/remora-proxy/remora/storage"
)

// turnHash is the hash of a turn's key: of its id, or of that of the memory which is a turn by itself.
func (ix *hasher) turnHash(m *storage.Memory) uint64 {
	key := turnKey(m)
	if key.sole {
		return ix.soleHash(key.id)
	}
	return ix.hash(key.id)
}

func (ix *hasher) soleHash(id string) uint64 { return ix.hash(id) * soleFactor }

// soleFactor tells the key of a memory that is a turn by itself from that of a turn of the same name.
const soleFactor = 0x9e3779b97f4a7c15

func (ix *index) turnByKey(key uint64) (int32, bool) {
	n, ok := ix.byTurn.find(key, func(n uint32) bool { return ix.turns[n].key == key })
	return int32(n), ok
}

func (ix *index) keyOf(n uint32) uint64 { return ix.turns[n].key }

// memoryOf finds a memory by its id.
func (ix *index) memoryOf(id string) (int32, bool) {
	var space [storage.MaxID]byte
	i, ok := ix.byID.find(ix.hash(id), func(i uint32) bool { return string(ix.appendID(space[:0], int32(i))) == id })
	return int32(i), ok
}

// memoryOfBytes is memoryOf for an id that is no string.
func (ix *index) memoryOfBytes(id []byte) (int32, bool) {
	var space [storage.MaxID]byte
	i, ok := ix.byID.find(hashID(ix.seed, id), func(i uint32) bool { return bytes.Equal(ix.appendID(space[:0], int32(i)), id) })
	return int32(i), ok
}

// memoryByHash finds a memory by the hash of its id.
func (ix *index) memoryByHash(hash uint64) (int32, bool) {
	i, ok := ix.byID.find(hash, func(i uint32) bool { return ix.idHash(i) == hash })
	return int32(i), ok
}

func (ix *index) idHash(i uint32) uint64 {
	if int(i) < len(ix.ids) {
		return ix.ids[i]
	}
	u := ix.head(int32(i)).rest
	d := ix.identity(&u, ix.mems[i].turn)
	return ix.hashOf(&d)
}

func (ix *index) conversation(id string) int32 {
	if id == "" {
		return -1
	}
	last := &ix.space().conversation
	if last.id != id {
		c, fresh := ix.convs.names.number(packName(id))
		if fresh {
			ix.convs.list = append(ix.convs.list, conv{last: -1})
		}
		last.id, last.number = id, int32(c)
	}
	return last.number
}

// isConversation reports whether a turn's conversation is the one of this id.
func (c *conversations) is(id string, number int32) bool {
	if id == "" {
		return number < 0
	}
	n, ok := c.find(id)
	return ok && n == number
}

// projectOf is the hash of the project that tags name, 0 where they name none.
func projectOf(tags []string) uint32 {
	for _, t := range tags {
		if name, ok := strings.CutPrefix(t, storage.ProjectTag); ok {
			return projectHash(name)
		}
	}
	return 0
}

func projectHash(name string) uint32 {
	if name == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, name)
	return max(h.Sum32(), 1)
}

// conversationOf is the number of a conversation that is known.
func (c *conversations) find(id string) (int32, bool) {
	n, ok := c.names.find(packName(id))
	return int32(n), ok
}

// packName is a conversation's name as it is kept: a 1 and the bytes of hex, or a 0 and the name.
func packName(id string) string {
	if !isHex(id) {
		return "\x00" + id
	}
	b, _ := hex.AppendDecode([]byte{1}, []byte(id))
	return string(b)
}
