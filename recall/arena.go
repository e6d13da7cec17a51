package recall

// arena keeps the packed memories of one index in chunks, so that growing never copies them. It is append-only; an index
// with too much waste is rebuilt.
type arena struct {
	chunks [][]byte
	size   int64
}

const (
	minChunk = 4 << 10
	maxChunk = 1 << chunkBits
	// chunkBits of a place are the offset in its chunk, the others the chunk's number.
	chunkBits = 20
	maxChunks = 1 << (32 - chunkBits)
)

// place is where a record starts. One that is larger than a chunk is alone in a chunk of its own.
type place uint32

func (a *arena) add(rec []byte) place {
	n := len(a.chunks)
	if n == 0 || cap(a.chunks[n-1])-len(a.chunks[n-1]) < len(rec) {
		size := max(min(minChunk<<min(n, 8), maxChunk), len(rec))
		a.chunks = append(a.chunks, make([]byte, 0, size))
		a.size += int64(size)
		n++
	}
	c := &a.chunks[n-1]
	p := place(n-1)<<chunkBits | place(len(*c))
	*c = append(*c, rec...)
	return p
}

func (a *arena) from(p place) []byte { return a.chunks[p>>chunkBits][p&(maxChunk-1):] }
