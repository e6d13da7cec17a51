package recall

// decodeMost decodes codes up to some place behind the first limit bytes, or near their end: what it leaves is less than eight bytes.
// There is room for limit codes and decodedAtOnce.
func (c *coder) decodeMost(space, codes []byte, limit int) (read, wrote int, ok bool) {
	n := min(len(codes)-7, limit) // where eight bytes may begin
	if n <= 0 || len(c.symbols) == 0 {
		return 0, 0, true
	}
	space = space[:(n+decodedAtOnce)*maxSymbol]
	return decodeEights(&space[0], &codes[0], n, &c.symbols[0], &c.lengths[0], len(c.symbols))
}

// decodeEights decodes what stands in eight bytes of codes at once, as long as these begin in the first n. It is not ok if one of them
// is none of the encoder's. Which codes take two bytes can't be foretold, so there is no branch for it; and where the next
// one begins is known before this one is looked up.
//
//go:noescape
func decodeEights(space, codes *byte, n int, symbols *uint64, lengths *uint8, known int) (read, wrote int, ok bool)
