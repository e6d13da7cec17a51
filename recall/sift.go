package recall

import (
	"encoding/binary"
	"slices"
)

// siftAtOnce is for how many bytes of postings sift makes room at a time: of thousands of them mostly a few are in the set.
const siftAtOnce = 4 << 10

// sift appends to out, as turn<<8 | frequency, the postings that are of turns in the set.
func sift(out []uint32, buf []byte, set bitset) []uint32 {
	n := ^uint32(0) // one before the first turn
	for len(buf) > 1 {
		some := min(len(buf), siftAtOnce)
		at := len(out)
		out = slices.Grow(out, some/2+7)
		space := out[at:cap(out)]
		i, k, now := siftMost(space, buf[:some], set, n)
		for n = now; i+1 < some; {
			d, tf := uint32(buf[i]), buf[i+1]
			i += 2
			if d >= 0x80 {
				v, size := binary.Uvarint(buf[i-2:])
				d = uint32(v)
				i += size - 1
				tf = buf[i-1]
			}
			if n += d; set.has(int32(n)) {
				space[k] = n<<8 | uint32(tf)
				k++
			}
		}
		buf, out = buf[i:], out[:at+k]
	}
	return out
}
