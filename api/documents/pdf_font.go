package documents

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/ledongthuc/pdf"
)

const (
	maxFonts       = 512     // that are kept; then all are read again
	maxCodes       = 1 << 20 // of all that are kept
	maxFontCodes   = 1 << 16 // of one font
	maxDifferences = 1024    // names of characters in an encoding
	codeWork       = 32      // what a code counts as, in bytes that are read
	guessedWidth   = 0.5     // of a character, in sizes of the font
)

// fontCache keeps fonts by their references, which pages share.
type fontCache struct {
	fonts map[string]*pdfFont
	codes int       // of all of them
	spend func(int) // takes from the work that reading may be; it panics at the end
}

// fontSource is the dictionary that a page calls its fonts by.
type fontSource struct {
	fonts pdf.Value
	text  string // tells it from other dictionaries
	names any    // the same as values
}

// source returns the fonts of resources.
func (c *fontCache) source(resources pdf.Value) fontSource {
	fonts := resources.Key("Font")
	s := fontSource{fonts: fonts, text: fonts.String()}
	c.spend(len(s.text))
	l := pdfLexer{data: []byte(s.text)}
	s.names, _ = l.value(0) // the library doesn't give references, but writes them
	return s
}

// get returns the font of a name. One that is missing is read as Latin text.
func (c *fontCache) get(source fontSource, name string) *pdfFont {
	names, _ := source.names.(map[pdfName]any)
	ref, shared := names[pdfName(name)].(pdfRef)
	key := fmt.Sprint(ref)
	if !shared {
		key = name + " " + source.text
	}
	f, ok := c.fonts[key]
	if !ok {
		f = readFont(source.fonts.Key(name), c.spend)
		n := len(f.widths) + len(f.codes.text)
		c.spend(n * codeWork)
		if c.codes += n; c.codes > maxCodes || len(c.fonts) >= maxFonts {
			clear(c.fonts)
			c.codes = n
		}
		c.fonts[key] = f
	}
	return f
}

// pdfFont turns the codes of a font into text.
type pdfFont struct {
	codes    charMap         // from the font's own map to Unicode
	simple   bool            // codes are bytes, and bytes has those that codes lacks
	bytes    *[256]rune      // of a simple font
	utf16    bool            // codes are UTF-16
	widths   map[int]float64 // in sizes of the font
	width    float64         // of all other codes
	measured bool            // the font gives widths
}

// readFont reads the dictionary of a font.
func readFont(font pdf.Value, spend func(int)) *pdfFont {
	f := &pdfFont{widths: map[int]float64{}, width: guessedWidth, simple: font.Key("Subtype").Name() != "Type0"}
	if m := font.Key("ToUnicode"); m.Kind() == pdf.Stream {
		f.codes = readCharMap(m, spend)
	}
	if f.simple {
		f.bytes = encoding(font, spend)
		f.simpleWidths(font)
		return f
	}
	name := font.Key("Encoding").Name()
	f.utf16 = strings.Contains(name, "UCS2") || strings.Contains(name, "UTF16")
	f.compositeWidths(font.Key("DescendantFonts").Index(0))
	return f
}

// simpleWidths reads the widths of a font whose codes are bytes.
func (f *pdfFont) simpleWidths(font pdf.Value) {
	unit := 0.001
	if m := font.Key("FontMatrix"); m.Len() == 6 && font.Key("Subtype").Name() == "Type3" {
		unit = m.Index(0).Float64()
	}
	widths, first := font.Key("Widths"), int(font.Key("FirstChar").Int64())
	f.measured = widths.Len() > 0
	for i := range min(widths.Len(), 256) {
		f.widths[first+i] = widths.Index(i).Float64() * unit
	}
	if f.measured {
		f.width = font.Key("FontDescriptor").Key("MissingWidth").Float64() * unit
	}
}

// compositeWidths reads the widths of a font whose codes are longer: a code and
// a list of widths, or two codes and the width of all between.
func (f *pdfFont) compositeWidths(font pdf.Value) {
	f.width, f.measured = 1, true
	if w := font.Key("DW"); !w.IsNull() {
		f.width = w.Float64() / 1000
	}
	list, left := font.Key("W"), maxFontCodes
	for i := 0; i+1 < list.Len() && left > 0; {
		first, second := int(list.Index(i).Int64()), list.Index(i+1)
		if second.Kind() == pdf.Array {
			for j := 0; j < second.Len() && left > 0; j, left = j+1, left-1 {
				f.widths[first+j] = second.Index(j).Float64() / 1000
			}
			i += 2
			continue
		}
		width := list.Index(i+2).Float64() / 1000
		for code := first; code <= int(second.Int64()) && left > 0; code, left = code+1, left-1 {
			f.widths[code] = width
		}
		i += 3
	}
}

// decode yields the characters of a string, their widths, and whether each is
// the blank that word spacing widens. What has no known character yields "".
func (f *pdfFont) decode(raw string, yield func(s string, width float64, blank bool)) {
	for raw != "" {
		n := f.codes.length(raw, f.simple)
		code := bigEndian(raw[:n])
		s, known := f.codes.text[raw[:n]]
		switch {
		case known:
		case f.simple:
			if r := f.bytes[byte(code)]; r != 0 {
				s = string(r)
			}
		case f.utf16:
			s = string(utf16.Decode([]uint16{uint16(code)}))
		}
		width, ok := f.widths[code]
		if !ok {
			width = f.width
		}
		yield(s, width, n == 1 && code == ' ')
		raw = raw[n:]
	}
}
