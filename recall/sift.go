package recall

import "encoding/binary"

// filterPostings appends to out, as turn<<8 | frequency, the postings of turns
// that are in the set.
func filterPostings(out []uint32, buf []byte, set bitset) []uint32 {
	n := ^uint32(0) // one before the first turn
	for i := 0; i+1 < len(buf); {
		d, tf := uint32(buf[i]), buf[i+1]
		i += 2
		if d >= 0x80 {
			v, size := binary.Uvarint(buf[i-2:])
			d = uint32(v)
			i += size - 1
			tf = buf[i-1]
		}
		if n += d; set.has(int32(n)) {
			out = append(out, n<<8|uint32(tf))
		}
	}
	return out
}
