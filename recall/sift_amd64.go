package recall

import "golang.org/x/sys/cpu"

// siftMost is sift for postings from the start of buf: it reads what it can, mostly all but the last few. There is room in out for as
// many as buf may have and seven. last is the turn before the first of them, and now the last that it has read.
func siftMost(out []uint32, buf []byte, set bitset, last uint32) (read, wrote int, now uint32) {
	n := len(buf) - 16 // where a posting and what is read with it may begin
	if n <= 0 || len(set) == 0 || !cpu.X86.HasAVX2 || !cpu.X86.HasPOPCNT {
		return 0, 0, last
	}
	out = out[:len(buf)/2+7]
	return siftEights(&out[0], &buf[0], n, &set[0], uint32(len(set)*64-1), last, &siftOrder)
}

// siftOrder has for eight bits, the highest of which is the first one's, where those stand that are set.
var siftOrder = func() (order [256][8]uint8) {
	for bits := range order {
		n := 0
		for i := range uint8(8) {
			if bits<<i&0x80 != 0 {
				order[bits][n] = i
				n++
			}
		}
	}
	return order
}()

// siftEights sifts postings eight at a time, as long as they begin in the first n bytes of buf; it ends before one whose distance
// takes three bytes, or that is of a turn behind limit, which is the set's last.
//
//go:noescape
func siftEights(out *uint32, buf *byte, n int, set *uint64, limit, last uint32, order *[256][8]uint8) (read, wrote int, now uint32)
