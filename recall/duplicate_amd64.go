package recall

import "golang.org/x/sys/cpu"

// takeAll takes the hashes of terms, of all of which there are some.
func (m *minhash) takeAll(hashes []minhash, ids []uint32) {
	if len(hashes) == 0 || len(ids) == 0 || !cpu.X86.HasSSE41 || !leastHashes(m, &hashes[0], len(hashes), &ids[0], len(ids)) {
		m.takeEach(hashes, ids)
	}
}

// leastHashes is takeEach; not ok at an id that has no hash.
//
//go:noescape
func leastHashes(m, hashes *minhash, known int, ids *uint32, n int) (ok bool)
