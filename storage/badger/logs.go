package badger

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
)

// A write-ahead log of Badger is a head of 20 bytes and records: meta, user
// meta, then as uvarints the lengths of key and value and the expiry; then key,
// value and the CRC-32C of all that.
const (
	logHeadSize   = 20
	maxLogKey     = 1 << 10 // longer than any key of layout.go
	inTransaction = 1 << 6  // in meta: the transaction of the record ends in a later one
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fullLog is the size at which Badger creates a log.
func (s sizes) fullLog() int64 { return 2 * s.memTable }

func isFullLog(n int64) bool { return n == smallSizes().fullLog() || n >= largeSizes().fullLog() }

// checkLog tells a log that a crash has cut off from a damaged one, in which
// readable records follow what cannot be read. An empty file is one that Badger
// was creating.
func checkLog(path string) error {
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return err
	}
	if len(b) < logHeadSize {
		return damagedFile(path, "is cut off in its head")
	}
	at := logHeadSize
	for {
		n := logRecord(b[at:])
		if n == 0 {
			break
		}
		at += n
	}
	rest := bytes.TrimRight(b[at:], "\x00")
	if !isFullLog(int64(len(b))) && len(b) > at {
		return damagedFile(path, "is cut off") // Badger truncates logs at the end of a record only
	}
	for i := 1; i < len(rest); i++ {
		if n := logRecord(b[at+i:]); n > 0 {
			return damagedFile(path, "holds records behind a part that cannot be read")
		}
	}
	return nil
}

// logRecord returns the length of the record at the front of b, 0 if there is
// none.
func logRecord(b []byte) int {
	if len(b) < 2+3+crc32.Size {
		return 0
	}
	at := 2
	var lengths [3]uint64
	for i := range lengths {
		v, n := binary.Uvarint(b[at:])
		if n <= 0 {
			return 0
		}
		lengths[i], at = v, at+n
	}
	key, value := lengths[0], lengths[1]
	if key == 0 || key > maxLogKey || value > uint64(len(b)) || uint64(at)+key+value+crc32.Size > uint64(len(b)) {
		return 0
	}
	end := at + int(key+value)
	if crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return 0
	}
	return end + crc32.Size
}

// holdsTransaction reports whether a log holds a complete transaction. Badger
// deletes one that holds none when it opens, and the manifest does not mention
// it.
func holdsTransaction(path string) (bool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	for at := min(logHeadSize, len(b)); ; {
		n := logRecord(b[at:])
		if n == 0 {
			return false, nil
		}
		if b[at]&inTransaction == 0 {
			return true, nil
		}
		at += n
	}
}

// holdsRecord reports whether anything was written to a log.
func holdsRecord(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // it has become a table
	}
	defer f.Close()
	var first [8]byte
	n, _ := f.ReadAt(first[:], logHeadSize)
	return len(bytes.Trim(first[:n], "\x00")) > 0
}
