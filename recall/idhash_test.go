package recall

import (
	"encoding/hex"
	"testing"
)

// An id of 32 hex digits is hashed as 16 bytes. An id of that length with any
// other character is hashed as text.
func TestHashUsualID(t *testing.T) {
	const seed = 7
	const id = "00112233445566778899aabbccddeeff"
	raw, err := hex.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	if hashID(seed, id) != hashRaw(seed, raw, true) || hashID(seed, []byte(id)) != hashRaw(seed, raw, true) {
		t.Error("hex is not hashed as its bytes")
	}
	for at := range id {
		for _, c := range []byte{'A', 'F', 'g', '/', ':', '`', ' ', 0, 0xff} {
			odd := id[:at] + string([]byte{c}) + id[at+1:]
			if hashID(seed, odd) != hashRaw(seed, []byte(odd), false) {
				t.Fatalf("%q is not hashed as it stands", odd)
			}
		}
	}
}
