package documents

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPDF(t *testing.T) {
	mapped := "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R /DescendantFonts [<< /DW 500 /W [1 [600 700] 3 9 250] >>] >>"
	charMap := stream("", "1 begincodespacerange <0000> <FFFF> endcodespacerange 1 beginbfchar <0001> <00480069> endbfchar "+
		"2 beginbfrange <0002> <0004> <0061> <0005> <0006> [<D83DDE00> <FB01>] endbfrange")
	for _, c := range []struct {
		name string
		body []byte
		want string
	}{
		{"lines and paragraphs", pagePDF("BT /F1 10 Tf 72 700 Td (One) Tj 0 -12 Td (two) Tj 0 -30 Td (three) Tj T* ET", helvetica, ""), "One\ntwo\n\nthree"},
		{"leading", pagePDF("BT /F1 10 Tf 12 TL 1 0 0 1 72 700 Tm (One) Tj T* (two) Tj (three) ' 0 0 (four) \" ET", helvetica, ""), "One\ntwo\nthree\nfour"},
		{"kerning is no blank", pagePDF("BT /F1 10 Tf [(W) 80 (orl) -20 (d) -300 (wide)] TJ ET", helvetica, ""), "World wide"},
		{"words that are placed", pagePDF("BT /F1 10 Tf 1 0 0 1 72 700 Tm (One) Tj 1 0 0 1 100 700 Tm (two) Tj ET", helvetica, ""), "One two"},
		{"characters that are placed, with widths", pagePDF("BT /F1 10 Tf (o) Tj 6 0 Td (n) Tj 6 0 Td (e) Tj 9 0 Td (x) Tj ET",
			"<< /Subtype /TrueType /FirstChar 97 /Widths ["+strings.Repeat("600 ", 26)+"] >>", ""), "one x"},
		{"an index stays on its line", pagePDF("BT /F1 10 Tf (E = mc) Tj 3 Ts 22 3 Td /F1 7 Tf (2) Tj ET", helvetica, ""), "E = mc 2"},
		{"escapes", pagePDF(`BT /F1 10 Tf (a\(b\)\\ \101\
c (d)) Tj <65 6 > Tj ET`, helvetica, ""), "a(b)\\ Ac (d)e`"},
		{"WinAnsi", pagePDF("BT /F1 10 Tf (\x93caf\xe9\x94 \x80) Tj ET", helvetica, ""), "“café” €"},
		{"Mac", pagePDF("BT /F1 10 Tf (caf\x8e) Tj ET", "<< /Subtype /Type1 /Encoding /MacRomanEncoding >>", ""), "café"},
		{"names of characters", pagePDF("BT /F1 10 Tf (\x01\x02 b) Tj ET", "<< /Subtype /Type1 /Encoding << /Differences [1 /Euro /ffi 98 /eacute] >> >>", ""), "€ffi é"},
		{"a map to Unicode", pagePDF("BT /F1 10 Tf <0001 0002 0003 0004 0005 0006> Tj ET", mapped, "", charMap), "Hiabc😀fi"},
		{"no map to Unicode", pagePDF("BT /F1 10 Tf <00010002> Tj /F2 9 Tf (known) Tj ET", strings.Replace(mapped, "6 0 R", "null", 1), ""), "known"},
		{"a form", pagePDF("BT /F1 10 Tf (One) Tj ET q 1 0 0 1 0 -12 cm /X Do Q", helvetica, "/XObject << /X 6 0 R >>",
			stream("/Subtype /Form", "BT /F1 10 Tf (two) Tj ET")), "One\ntwo"},
		{"a form within itself", pagePDF("/X Do", helvetica, "/XObject << /X 6 0 R >>",
			stream("/Subtype /Form", "BT /F1 10 Tf 0 50 Td (x) Tj ET /X Do")), strings.TrimSpace(strings.Repeat("x ", maxForms))},
		{"an image within the content", pagePDF("BT /F1 10 Tf (a) Tj ET BI /W 1 ID (<<[ EIx \xff EI BT /F1 10 Tf (b) Tj ET", helvetica, ""), "ab"},
		{"a string without its end", pagePDF("BT /F1 10 Tf (a) Tj <41", helvetica, ""), "a"},
		{"operators without operands", pagePDF("Tf Tj TJ ' \" Td Tm cm Q Do BT /F1 10 Tf (a) Tj ] >> ) } ET", helvetica, ""), "a"},
		{"a table in a stream", structuredPDF(nil), "Structured words"},
		{"a container that says which was before it", structuredPDF(func(s *structure) { s.container = "/Extends 5 0 R" }), "Structured words"},
		{"what surrounds it", append([]byte("HTTP/1.1 200 OK\r\n\r\n"), append(helloPDF, make([]byte, 300)...)...), "Hello world"},
		{"a newer version", bytes.Replace(helloPDF, []byte("%PDF-1.4"), []byte("%PDF-2.0"), 1), "Hello world"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Text(c.body, PDF, "")
			if err != nil || d.Text != c.want {
				t.Errorf("%v, %q, want %q", err, d.Text, c.want)
			}
		})
	}
}

func TestPDFTitles(t *testing.T) {
	for raw, want := range map[string]string{
		"(Plain)": "Plain", "<FEFF00480069>": "Hi", "(\xef\xbb\xbfh\xc3\xa9)": "hé", "(caf\xe9\n)": "café", "7": "",
	} {
		body := bytes.Replace(pagePDF("BT /F1 10 Tf (x) Tj ET", helvetica, "", "<< /Title "+raw+" >>"), []byte("/Root"), []byte("/Info 6 0 R /Root"), 1)
		if d, err := Text(body, "", ""); err != nil || d.Title != want {
			t.Errorf("%s: %v, %q, want %q", raw, err, d.Title, want)
		}
	}
}

func TestPDFWithManyPages(t *testing.T) {
	for _, c := range []struct {
		pages int
		want  error
	}{{MaxPages, nil}, {MaxPages + 1, ErrTooLarge}} {
		body := plainPDF("", "<< /Pages 2 0 R >>", "<< /Kids ["+strings.Repeat("3 0 R ", c.pages)+"] >>",
			"<< /Contents [4 0 R 4 0 R] /Resources << /Font << /F1 5 0 R >> >> >>", stream("", "BT /F1 9 Tf (x) Tj ET"), helvetica)
		d, err := Text(body, PDF, "")
		if !errors.Is(err, c.want) || err == nil && strings.Count(d.Text, "xx") != c.pages {
			t.Errorf("%d pages: %v, %d bytes of text", c.pages, err, len(d.Text))
		}
	}
}

// Whatever is broken, there is an error or a text, and no panic.
func TestBrokenPDF(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, whole := range [][]byte{helloPDF, structuredPDF(nil)} {
		end := bytes.LastIndex(whole, []byte("%%EOF"))
		for n := range whole {
			if d, err := Text(whole[:n], PDF, ""); n <= end && err == nil {
				t.Errorf("cut to %d bytes: %q", n, d.Text)
			}
		}
		for range 3_000 {
			body := bytes.Clone(whole)
			for range 1 + random.IntN(4) {
				body[random.IntN(len(body))] = byte(random.Uint32())
			}
			start := time.Now()
			if _, err := Text(body, PDF, ""); err != nil && strings.Contains(err.Error(), "Structured") || time.Since(start) > 10*time.Second {
				t.Errorf("%v after %v for %q", err, time.Since(start), body)
			}
		}
	}
	for _, n := range []int{0, 10, 1000, 100_000} {
		noise := make([]byte, n)
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		for _, body := range [][]byte{noise, append([]byte("%PDF-1.4\n"), append(slices.Clip(noise), "\nstartxref\n9\n%%EOF"...)...)} {
			if _, err := Text(body, PDF, ""); !errors.Is(err, ErrMalformed) {
				t.Errorf("%d random bytes: %v", n, err)
			}
		}
	}
}
