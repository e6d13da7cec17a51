package documents

import (
	"errors"
	"io"
	"strings"

	"github.com/ledongthuc/pdf"
)

const (
	maxPDFContent = 256 << 20 // bytes of pages, forms and fonts, inflated
	maxPDFStream  = 32 << 20  // of these, of one page or form
	maxPageLevels = 64        // of the tree of pages
	maxPageNodes  = 4 * MaxPages
	maxFilters    = 4       // of a stream
	maxColumns    = 1 << 16 // of rows that are stored as differences
)

// pdfText returns the title and the text of a PDF, its pages apart by an empty
// line. A PDF that can't be read to its end fails: half a document would look
// like all of it.
func pdfText(body []byte) (title, text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			title, text, err = "", "", recovered(r)
		}
	}()
	body, ok := pdfExtent(body)
	if !ok {
		return "", "", ErrMalformed
	}
	screen := pdfScreen{body: body, inflated: map[int64]int64{}, left: maxPDFScreening}
	if err := screen.tables(); err != nil {
		return "", "", err
	}
	r, err := pdf.NewReader(newGuardedFile(body, screen.inflated), int64(len(body)))
	if err != nil {
		return "", "", ErrMalformed // its own words may quote the file
	}
	if err := screen.containers(r); err != nil {
		return "", "", err
	}
	d := pdfDocument{left: maxPDFContent, fonts: fontCache{fonts: map[string]*pdfFont{}}}
	d.fonts.spend = d.spend
	root := r.Trailer().Key("Root").Key("Pages")
	if root.Kind() != pdf.Dict {
		return "", "", ErrMalformed
	}
	d.pages(root, pdf.Value{}, 0)
	return pdfTitle(r.Trailer().Key("Info").Key("Title")), d.layout.String(), nil
}

// recovered returns the error of a panic. The library's own words are left out,
// as they may quote the file.
func recovered(r any) error {
	if err, ok := r.(error); ok && (errors.Is(err, ErrTooLarge) || errors.Is(err, errPDFWork)) {
		return ErrTooLarge
	}
	return ErrMalformed
}

// pdfTitle returns a title that is in UTF-16, in UTF-8 or in the encoding of PDF.
func pdfTitle(v pdf.Value) string {
	if utf8, ok := strings.CutPrefix(v.RawString(), "\ufeff"); ok {
		return utf8
	}
	return v.Text()
}

// pdfDocument reads the pages of a PDF in order. Its methods panic with
// ErrTooLarge and ErrMalformed, as the library panics.
type pdfDocument struct {
	layout pdfLayout
	fonts  fontCache
	left   int // of maxPDFContent
	count  int // of pages
	nodes  int // of the tree of pages
}

// spend panics once the work is used up.
func (d *pdfDocument) spend(n int) {
	if d.left -= n; d.left < 0 {
		panic(ErrTooLarge)
	}
}

// pages reads the pages under a node of their tree, which inherit its resources.
func (d *pdfDocument) pages(node, resources pdf.Value, level int) {
	if d.nodes++; d.nodes > maxPageNodes {
		panic(ErrTooLarge)
	}
	if level > maxPageLevels {
		panic(ErrMalformed)
	}
	if own := node.Key("Resources"); own.Kind() == pdf.Dict {
		resources = own
	}
	kids := node.Key("Kids")
	if kids.Kind() != pdf.Array {
		d.page(node, resources)
		return
	}
	for i := range kids.Len() {
		if kid := kids.Index(i); kid.Kind() == pdf.Dict {
			d.pages(kid, resources, level+1)
		}
	}
}

// page reads a page.
func (d *pdfDocument) page(page, resources pdf.Value) {
	if d.count++; d.count > MaxPages {
		panic(ErrTooLarge)
	}
	var content []byte
	switch contents := page.Key("Contents"); contents.Kind() {
	case pdf.Stream:
		content = d.read(contents)
	case pdf.Array:
		for i := range contents.Len() {
			content = append(append(content, d.read(contents.Index(i))...), '\n')
			if len(content) > maxPDFStream {
				panic(ErrTooLarge)
			}
		}
	}
	d.layout.page()
	d.interpret(content, resources, d.fonts.source(resources), identity, 0)
}

// read returns the data of a stream of content.
func (d *pdfDocument) read(stream pdf.Value) []byte {
	if stream.Kind() != pdf.Stream {
		return nil
	}
	if !readableFilter(stream) {
		panic(ErrMalformed)
	}
	data, err := io.ReadAll(io.LimitReader(stream.Reader(), maxPDFStream+1))
	if d.spend(len(data)); len(data) > maxPDFStream {
		panic(ErrTooLarge)
	}
	if err != nil && len(data) == 0 {
		panic(ErrMalformed)
	}
	return data
}

// readableFilter reports whether a stream is compressed in a way that the
// library reads in bounded memory and time: what is inflated is the data itself,
// and not filtered on to nothing.
func readableFilter(stream pdf.Value) bool {
	filters, params := stream.Key("Filter"), stream.Key("DecodeParms")
	if filters.Len() > maxFilters || params.Len() > maxFilters {
		return false
	}
	for i := range filters.Len() - 1 {
		if filters.Index(i).Name() == "FlateDecode" {
			return false
		}
	}
	for i := -1; i < params.Len(); i++ { // what is no list is its only element
		p := params
		if i >= 0 {
			p = params.Index(i)
		}
		columns := p.Key("Columns").Int64()
		if !p.Key("Predictor").IsNull() && (columns <= 0 || columns > maxColumns) {
			return false
		}
	}
	return true
}
