package documents

import (
	"bytes"
	"path"
	"strings"
)

// maxSniff bounds how far detect looks into a document.
const maxSniff = 1024

// baseType returns a media type in lower case and without its parameters.
func baseType(mediaType string) string {
	base, _, _ := strings.Cut(mediaType, ";")
	return strings.ToLower(strings.TrimSpace(base))
}

// detect returns the media type of a document, or "" if it is none that [Text]
// reads. What the first bytes prove comes before the ending of the name.
func detect(body []byte, name string) string {
	start := body[:min(len(body), maxSniff)]
	if bytes.Contains(start, []byte("%PDF-")) {
		return PDF
	}
	if byteOrder(body) == nil && bytes.IndexByte(start, 0) >= 0 {
		return "" // an image, an archive, a program
	}
	text := strings.ToLower(strings.TrimSpace(decode(start)))
	if strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html") {
		return HTML
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown":
		return Markdown
	case ".html", ".htm", ".xhtml":
		return HTML
	case ".pdf":
		return PDF
	}
	return Plain
}
