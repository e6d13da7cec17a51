package documents

import (
	"bytes"
	"errors"
	"io"
	"runtime"
)

const (
	// maxPDFWork bounds what is read of a PDF, in bytes before and after they are
	// inflated: objects may refer to each other in circles, and one that is
	// stored in a stream is inflated again whenever it is needed. A small file has
	// less, workPerByte for each byte above minPDFWork. 2,000 pages take 100 MiB.
	maxPDFWork  = 512 << 20
	minPDFWork  = 128 << 20
	workPerByte = 64
	// maxPDFStack bounds the calls that are active when a PDF is read. A stack
	// that overflows ends the process, whatever is recovered.
	maxPDFStack = 8_000
	// minReadWork is what the shortest read counts as, in bytes: the library makes
	// a buffer of that size for it.
	minReadWork = 4096
)

// errPDFWork is what a guardedFile panics with.
var errPDFWork = errors.New("documents: too much work")

// guardedFile is what ledongthuc/pdf reads a PDF from. The library has no bounds
// for circles of references, but it reads the file at each step: so the file
// stops it.
type guardedFile struct {
	data     []byte
	left     int64
	inflated map[int64]int64 // the sizes of streams by where their data begins
}

func newGuardedFile(data []byte, inflated map[int64]int64) *guardedFile {
	return &guardedFile{data: data, left: min(maxPDFWork, minPDFWork+workPerByte*int64(len(data))), inflated: inflated}
}

// pdfHeader is what a PDF seems to begin with: the library refuses versions that
// it doesn't know, and they differ in nothing that matters here.
const pdfHeader = "%PDF-1.7\n"

// ReadAt implements [io.ReaderAt]. It panics once the work is used up.
func (f *guardedFile) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at > int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.data[at:])
	if at < int64(len(pdfHeader)) {
		copy(p[:n], pdfHeader[at:])
	}
	f.left -= int64(max(n, minReadWork)) + f.inflated[at]
	var deep [1]uintptr
	if f.left < 0 || runtime.Callers(maxPDFStack, deep[:]) > 0 {
		panic(errPDFWork)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// pdfExtent returns a PDF without what surrounds it: some begin with the headers
// of a download, or end in what a transfer appended.
func pdfExtent(body []byte) ([]byte, bool) {
	from := bytes.Index(body[:min(len(body), maxSniff)], []byte("%PDF-"))
	to := bytes.LastIndex(body, []byte("%%EOF"))
	if from < 0 || to < from+len(pdfHeader) {
		return nil, false
	}
	return body[from : to+len("%%EOF")], true
}
