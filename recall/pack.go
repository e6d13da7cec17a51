package recall

import (
	"encoding/binary"
	"encoding/hex"
	"math"
)

// packer writes a record. Text that is hex goes as bytes, which halves the ids and hashes.
type packer struct{ b []byte }

func (p *packer) uint(v uint64) { p.b = binary.AppendUvarint(p.b, v) }
func (p *packer) int(v int64)   { p.b = binary.AppendVarint(p.b, v) }

func (p *packer) float(v float64) { p.b = binary.LittleEndian.AppendUint64(p.b, math.Float64bits(v)) }

func (p *packer) string(s string) {
	if isHex(s) {
		p.uint(uint64(len(s)/2)<<1 | 1)
		p.b, _ = hex.AppendDecode(p.b, []byte(s))
		return
	}
	p.uint(uint64(len(s)) << 1)
	p.b = append(p.b, s...)
}

func (p *packer) strings(list []string) {
	p.uint(uint64(len(list)))
	for _, s := range list {
		p.string(s)
	}
}

func isHex(s string) bool { return isHexText(s) }

func isHexText[T string | []byte](s T) bool {
	if len(s) < 8 || len(s)%2 != 0 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// unpacker reads what a packer wrote. Where the bytes end too early or make no sense it fails, and everything it reads
// from then on is zero.
type unpacker struct {
	b      []byte
	failed bool
}

func (u *unpacker) fail() {
	u.b, u.failed = nil, true
}

func (u *unpacker) uint() uint64 {
	if len(u.b) > 0 && u.b[0] < 0x80 {
		v := u.b[0]
		u.b = u.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(u.b)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return v
}

// cutUint reads what packer.uint wrote at the front of b: 0, and nothing is left, where there is none.
func cutUint(b []byte) (v uint64, rest []byte) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), b[1:]
	}
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil
	}
	return v, b[n:]
}

func (u *unpacker) int() int64 {
	v := u.uint()
	return int64(v>>1) ^ -int64(v&1)
}

func (u *unpacker) float() float64 {
	if len(u.b) < 8 {
		u.fail()
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(u.b))
	u.b = u.b[8:]
	return v
}

func (u *unpacker) byte() byte {
	if len(u.b) == 0 {
		u.fail()
		return 0
	}
	v := u.b[0]
	u.b = u.b[1:]
	return v
}

// bytes reads n bytes, which it does not copy.
func (u *unpacker) bytes(n uint64) []byte {
	if n > uint64(len(u.b)) {
		u.fail()
		return nil
	}
	v := u.b[:n:n]
	u.b = u.b[n:]
	return v
}

// raw reads a string as it is packed.
func (u *unpacker) raw() (s []byte, isHex bool) {
	v := u.uint()
	return u.bytes(v >> 1), v&1 != 0
}

func (u *unpacker) string() string {
	s, h := u.raw()
	if h {
		return hex.EncodeToString(s)
	}
	return string(s)
}

// skipStrings reads past what strings reads, and says whether one of them is what is sought, which is no hexadecimal number.
func (u *unpacker) skipStrings(sought string) (found bool) {
	for n := u.uint(); n > 0 && !u.failed; n-- {
		s, h := u.raw()
		found = found || !h && string(s) == sought
	}
	return found
}

func (u *unpacker) strings() []string {
	n := u.uint()
	if n == 0 || n > uint64(len(u.b)) { // a string takes at least a byte
		if n > 0 {
			u.fail()
		}
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = u.string()
	}
	return list
}
