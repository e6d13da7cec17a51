package documents

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// helloPDF is a PDF as a person would write it.
var helloPDF = []byte(`%PDF-1.4
1 0 obj
<< /Type /Catalog /Pages 2 0 R >>
endobj
2 0 obj
<< /Type /Pages /Kids [3 0 R] /Count 1 >>
endobj
3 0 obj
<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>
endobj
4 0 obj
<< /Length 42 >>
stream
BT /F1 24 Tf 72 720 Td (Hello world) Tj ET
endstream
endobj
5 0 obj
<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>
endobj
6 0 obj
<< /Title (Greeting) >>
endobj
xref
0 7
0000000000 65535 f 
0000000009 00000 n 
0000000058 00000 n 
0000000115 00000 n 
0000000241 00000 n 
0000000333 00000 n 
0000000403 00000 n 
trailer
<< /Size 7 /Root 1 0 R /Info 6 0 R >>
startxref
442
%%EOF
`)

// plainPDF returns a PDF with a table in plain text: objects[0] is number 1, the
// root. The trailer gets more entries.
func plainPDF(trailer string, objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	at := make([]int, len(objects))
	for i, o := range objects {
		at[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, trailer, table)
	return b.Bytes()
}

// pagePDF returns a PDF of one page with a content, and with what its resources
// hold besides the font F1.
func pagePDF(content, font, resources string, more ...string) []byte {
	return plainPDF("", append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> " + resources + " >> >>",
		stream("", content),
		font,
	}, more...)...)
}

const helvetica = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"

func stream(dict, data string) string {
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(data), dict, data)
}

func deflate(data string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write([]byte(data))
	z.Close()
	return b.String()
}

// structure is what a test changes of a PDF whose table and objects are in
// streams.
type structure struct {
	table     string // what its dictionary has besides
	size      string // its Size
	container string // what the dictionary of the container has besides
	count     string // its N
	length    string // its Length
	inner     string // its data, before it is deflated
	entries   []byte // of the table
}

// structuredPDF returns a PDF whose table and objects are in streams. Objects 1
// to 4 are in container 5, 6 is its length, 7 the content, 8 the table.
func structuredPDF(change func(*structure)) []byte {
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Contents 7 0 R /Resources << /Font << /F1 4 0 R >> >> >>", helvetica,
	}
	numbers, at := "", 0
	for i, o := range objects {
		numbers += fmt.Sprintf("%d %d ", i+1, at)
		at += len(o) + 1
	}
	s := structure{inner: numbers + strings.Join(objects, " "), size: "9", count: "4", length: "6 0 R"}
	if change != nil {
		change(&s)
	}
	data := deflate(s.inner)
	var b bytes.Buffer
	b.WriteString("%PDF-1.5\n")
	container := b.Len()
	fmt.Fprintf(&b, "5 0 obj\n<< /Type /ObjStm /N %s /First %d /Length %s /Filter /FlateDecode %s >>\nstream\n%s\nendstream\nendobj\n",
		s.count, len(numbers), s.length, s.container, data)
	length := b.Len()
	fmt.Fprintf(&b, "6 0 obj\n%d\nendobj\n", len(data))
	content := b.Len()
	fmt.Fprintf(&b, "7 0 obj\n%s\nendobj\n", stream("/Filter [/FlateDecode]", deflate("BT /F1 12 Tf (Structured words) Tj ET")))
	table := b.Len()
	entries := []byte{0, 0, 0, 0}
	for i := range objects {
		entries = append(entries, 2, 0, 5, byte(i))
	}
	for _, offset := range []int{container, length, content, table} {
		entries = append(entries, 1, byte(offset>>8), byte(offset), 0)
	}
	if s.entries != nil {
		entries = s.entries
	}
	fmt.Fprintf(&b, "8 0 obj\n%s\nendobj\n", stream("/Type /XRef /Filter /FlateDecode /W [1 2 1] /Root 1 0 R /Size "+s.size+" "+s.table, deflate(string(entries))))
	fmt.Fprintf(&b, "%% %0100d\nstartxref\n%d\n%%%%EOF\n", 0, table)
	return b.Bytes()
}
