// Package documents turns documents that a user hands in into passages: short
// texts that a memory can hold, each under the headings it was found under.
//
// [Text] extracts the text of plain text, Markdown, HTML and PDF. [Passages]
// splits it. Both are pure, and take time that is bounded by the size of what
// they get. Input is untrusted: whatever the bytes are, the answer is a document
// or an error. Errors never quote content.
package documents

import (
	"errors"
	"strings"
	"unicode/utf8"
)

const (
	// MaxBytes bounds a document as it is handed in.
	MaxBytes = 16 << 20
	// MaxPages bounds the pages of a PDF.
	MaxPages = 2_000
	// MaxText bounds the text of a document, in bytes.
	MaxText = 8 << 20

	maxTitle = 256 // bytes; longer titles are cut
)

// What [Text] fails with. Callers compare with [errors.Is].
var (
	ErrUnsupported = errors.New("documents: unsupported media type")
	ErrNoText      = errors.New("documents: the document has no text")
	ErrTooLarge    = errors.New("documents: the document is too large")
	ErrMalformed   = errors.New("documents: the document is malformed")
)

// The media types that [Text] reads.
const (
	Plain    = "text/plain"
	Markdown = "text/markdown"
	HTML     = "text/html"
	PDF      = "application/pdf"
)

// Document is a text with its title, as far as the format tells. The text of an
// HTML document is Markdown.
type Document struct {
	Title     string
	Text      string
	MediaType string // one of Plain, Markdown, HTML and PDF
}

// Text extracts the text of a document. The media type is text/plain,
// text/markdown, text/html or application/pdf; its parameters are ignored. An
// empty one is detected from the content and the name of the file.
//
// It fails with [ErrUnsupported] for other media types and for encrypted PDFs,
// with [ErrNoText] if there is no text, with [ErrTooLarge] beyond [MaxBytes],
// [MaxPages] or [MaxText], and with [ErrMalformed] for a PDF that can't be read.
func Text(body []byte, mediaType, name string) (Document, error) {
	if len(body) > MaxBytes {
		return Document{}, ErrTooLarge
	}
	d := Document{MediaType: baseType(mediaType)}
	if d.MediaType == "" {
		d.MediaType = detect(body, name)
	}
	var err error
	switch d.MediaType {
	case Plain:
		d.Text = decode(body)
	case Markdown:
		d.Text = decode(body)
		d.Title = markdownTitle(d.Text)
	case HTML:
		d.Title, d.Text = htmlText(decode(body))
	case PDF:
		d.Title, d.Text, err = pdfText(body)
	default:
		err = ErrUnsupported
	}
	switch {
	case err != nil:
		return Document{}, err
	case len(d.Text) > MaxText:
		return Document{}, ErrTooLarge
	case strings.TrimSpace(d.Text) == "":
		return Document{}, ErrNoText
	}
	d.Title = oneLine(d.Title)
	return d, nil
}

// oneLine returns a title without line breaks, cut to maxTitle.
func oneLine(title string) string {
	title = strings.Join(strings.Fields(clean(title)), " ")
	if len(title) <= maxTitle {
		return title
	}
	return strings.TrimSpace(title[:runeStart(title, maxTitle)])
}

// runeStart returns the last start of a character in s that is at most at.
func runeStart(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}
