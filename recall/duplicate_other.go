//go:build !amd64

package recall

// takeAll takes the hashes of terms.
func (m *minhash) takeAll(hashes []minhash, ids []uint32) { m.takeEach(hashes, ids) }
