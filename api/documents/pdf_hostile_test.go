package documents

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ledongthuc/pdf"
)

// Each of these would end the process, fill the memory or never return if the
// library got it unseen: a stack that overflows and memory that there isn't
// can't be recovered from.
func TestHostilePDF(t *testing.T) {
	in := func(change func(*structure)) []byte { return structuredPDF(change) }
	circle := bytes.Repeat([]byte{2, 0, 1, 0}, 9)
	prev := func(body []byte) []byte { // the table before is this one
		_, at, _ := bytes.Cut(body, []byte("startxref\n"))
		at, _, _ = bytes.Cut(at, []byte("\n"))
		return bytes.Replace(body, []byte("/Root"), []byte("/Prev "+string(at)+" /Root"), 1)
	}
	words := "BT /F1 10 Tf (x) Tj ET"
	for _, c := range []struct {
		name string
		body []byte
		want error
	}{
		{"a container within itself", in(func(s *structure) { s.entries = circle }), ErrMalformed},
		{"an encryption within that", in(func(s *structure) { s.entries, s.table = circle, "/Encrypt 1 0 R" }), ErrUnsupported},
		{"an encryption, spelled otherwise", in(func(s *structure) { s.entries, s.table = circle, "/#45ncrypt 1 0 R" }), ErrUnsupported},
		{"a length within its container", in(func(s *structure) { s.length = "1 0 R" }), ErrMalformed},
		{"a length that is the container's", in(func(s *structure) { s.length = "5 0 R" }), ErrMalformed},
		{"a large table", in(func(s *structure) { s.size = "60000000000" }), ErrMalformed},
		{"a large index", in(func(s *structure) { s.table = "/Index [0 1 50000000000 8]" }), ErrMalformed},
		{"entries without bytes", in(func(s *structure) { s.table = "/W [0 0 0] /Index [0 900000 0 900000]" }), ErrMalformed},
		{"large columns", in(func(s *structure) { s.table = "/DecodeParms << /Predictor 12 /Columns 99999999999 >>" }), ErrMalformed},
		{"large columns of a container", in(func(s *structure) { s.container = "/DecodeParms << /Predictor 12 /Columns 99999999999 >>" }), ErrMalformed},
		{"parameters elsewhere", in(func(s *structure) { s.container = "/DecodeParms 1 0 R" }), ErrMalformed},
		{"very many objects", in(func(s *structure) { s.count = "999999999999999999" }), ErrMalformed},
		{"a count elsewhere", in(func(s *structure) { s.count = "1 0 R" }), ErrMalformed},
		{"a string without its end", in(func(s *structure) { s.inner = strings.Replace(s.inner, "<<", "<41", 1)[:len(s.inner)/8] + "<41" }), ErrMalformed},
		{"a container that inflates", in(func(s *structure) { s.inner += strings.Repeat(" ", maxPDFStructure) }), ErrMalformed},
		{"a table that inflates", in(func(s *structure) { s.entries = make([]byte, maxPDFStructure+1) }), ErrMalformed},
		{"a table before itself", prev(helloPDF), ErrMalformed},
		{"a table in a stream before itself", prev(structuredPDF(nil)), ErrMalformed},
		{"a large table in plain text", bytes.Replace(helloPDF, []byte("0 7\n"), []byte("99999999999 1\n"), 1), ErrMalformed},
		{"pages within themselves", plainPDF("", "<< /Pages 2 0 R >>", "<< /Kids [2 0 R] >>"), ErrMalformed},
		{"pages twice within themselves", plainPDF("", "<< /Pages 2 0 R >>", "<< /Kids [2 0 R 2 0 R] >>"), ErrMalformed},
		{"pages of pages", plainPDF("", "<< /Pages 2 0 R >>", "<< /Kids ["+strings.Repeat("3 0 R ", 999)+"] >>", "<< /Kids ["+strings.Repeat("4 0 R ", 999)+"] >>", "<< >>"), ErrTooLarge},
		{"content that inflates", contentPDF(bomb(maxPDFStream + 1)), ErrTooLarge},
		{"content that inflates again and again", contentPDF("["+strings.Repeat("7 0 R ", 99)+"]", bomb(maxPDFStream/64)), ErrTooLarge},
		{"content that inflates twice", contentPDF(stream("/Filter [/FlateDecode /FlateDecode]", deflate(deflate(words)))), ErrMalformed},
		{"a filter that nobody knows", contentPDF(stream("/Filter /Secret", words)), ErrMalformed},
		{"a map that maps all", pagePDF("BT /F1 9 Tf <0041> Tj ET", "<< /Subtype /Type0 /ToUnicode 6 0 R >>", "",
			stream("", "1 beginbfrange "+strings.Repeat("<00000000> <FFFFFFFF> <0041> ", 1000)+"endbfrange 99999999999 beginbfchar endbfchar <")), ErrNoText},
		{"a tower of arrays", pagePDF(strings.Repeat("[", 1<<20), helvetica, ""), ErrNoText},
		{"a tower of objects", plainPDF("", strings.Repeat("<< /Pages ", 100_000)), ErrMalformed},
		{"forms of forms", pagePDF("/X Do /X Do", helvetica, "/XObject << /X 6 0 R >>",
			stream("/Subtype /Form", strings.Repeat("/X Do ", 99))), ErrTooLarge},
		{"the same word without end", pagePDF("/X Do", helvetica, "/XObject << /X 6 0 R >>",
			stream("/Subtype /Form", "BT /F1 10 Tf (x) Tj ET "+strings.Repeat("/X Do ", 99))), ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			d, err := Text(c.body, PDF, "")
			if took := time.Since(start); !errors.Is(err, c.want) || took > time.Minute {
				t.Errorf("%v after %v, %q, want %v", err, took, d.Text[:min(len(d.Text), 100)], c.want)
			}
		})
	}
}

// contentPDF returns a PDF whose page has the first of its objects as its content.
func contentPDF(objects ...string) []byte {
	return bytes.Replace(pagePDF("", helvetica, "", objects...), []byte("/Contents 4"), []byte("/Contents 6"), 1)
}

// The content of all pages together has a bound.
func TestPagesThatInflateAgainAndAgain(t *testing.T) {
	r, err := pdf.NewReader(bytes.NewReader(helloPDF), int64(len(helloPDF)))
	if err != nil {
		t.Fatal(err)
	}
	content := r.Page(1).V.Key("Contents")
	d := pdfDocument{left: 42 + 41}
	if got := d.read(content); len(got) != 42 {
		t.Errorf("%d bytes of content", len(got))
	}
	defer func() {
		if r := recover(); r != ErrTooLarge {
			t.Errorf("a panic with %v", r)
		}
	}()
	d.read(content)
}

// bomb returns a stream of blanks that inflates to a size.
func bomb(size int) string {
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	if err != nil {
		panic(err)
	}
	for range size/4096 + 1 {
		fmt.Fprintf(z, "%4096s", "")
	}
	z.Close()
	return stream("/Filter /FlateDecode", b.String())
}

// containers reads what the library doesn't export.
func TestTableOfTheLibrary(t *testing.T) {
	entry, ok := reflect.TypeFor[pdf.Reader]().FieldByName("xref")
	if !ok || entry.Type.Kind() != reflect.Slice {
		t.Fatal("pdf.Reader has no slice called xref")
	}
	for _, name := range []string{"inStream", "stream", "offset"} {
		if _, ok := entry.Type.Elem().FieldByName(name); !ok {
			t.Errorf("the entries of xref have no %s", name)
		}
	}
}
