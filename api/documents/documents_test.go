package documents

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		name, body, mediaType, file string
		want                        Document
	}{
		{"plain", "One\r\ntwo\rthree\x00\x07\n", "text/plain; charset=utf-8", "", Document{"", "One\ntwo\nthree\n", Plain}},
		{"plain is the fallback", "just words", "", "notes", Document{"", "just words", Plain}},
		{"plain, though it has a mark of Markdown", "# words", "TEXT/PLAIN", "a.md", Document{"", "# words", Plain}},
		{"invalid UTF-8", "caf\xe9 au lait", "text/plain", "", Document{"", "caf\ufffd au lait", Plain}},
		{"byte order mark", "\ufeffwords", "", "", Document{"", "words", Plain}},
		{"UTF-16, little end first", "\xff\xfeh\x00i\x00", "", "", Document{"", "hi", Plain}},
		{"UTF-16, big end first", "\xfe\xff\x00h\x00\xe9", "text/plain", "", Document{"", "hé", Plain}},
		{"Markdown by its name", "intro\n\n# The *title* #\n", "", "dir/README.MD", Document{"The *title*", "intro\n\n# The *title* #\n", Markdown}},
		{"Markdown without a title", "## Second\ntext", "text/markdown", "", Document{"", "## Second\ntext", Markdown}},
		{"Markdown, underlined", "Title\n=====\ntext", "text/markdown", "", Document{"Title", "Title\n=====\ntext", Markdown}},
		{"Markdown with front matter", "---\ntitle: \"From matter\"\n---\n# Heading", "text/markdown", "",
			Document{"From matter", "---\ntitle: \"From matter\"\n---\n# Heading", Markdown}},
		{"HTML by its content", " <!DOCTYPE html><title>T</title><p>x", "", "a.txt", Document{"T", "x", HTML}},
		{"HTML by its name", "<p>x</p>", "", "a.htm", Document{"", "x", HTML}},
		{"PDF by its content", string(helloPDF), "", "a.txt", Document{"Greeting", "Hello world", PDF}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Text([]byte(c.body), c.mediaType, c.file)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestTextFails(t *testing.T) {
	large := bytes.Repeat([]byte("word "), MaxText/5+1)
	for _, c := range []struct {
		name, mediaType, file string
		body                  []byte
		want                  error
	}{
		{"another media type", "image/png", "", []byte("words"), ErrUnsupported},
		{"an archive, unknown to detect", "", "report.docx", []byte("PK\x03\x04\x14\x00\x06\x00"), ErrUnsupported},
		{"empty", "", "", nil, ErrNoText},
		{"only white space", "text/plain", "", []byte(" \n\t\x00"), ErrNoText},
		{"only tags", "text/html", "", []byte("<p><script>x</script>"), ErrNoText},
		{"bytes", "text/plain", "", make([]byte, MaxBytes+1), ErrTooLarge},
		{"text", "text/plain", "", large, ErrTooLarge},
		{"text of HTML", "text/html", "", append([]byte("<p>"), large...), ErrTooLarge},
		{"text that grows", "text/plain", "", bytes.Repeat([]byte{0xff, ' '}, MaxText/2), ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Text(c.body, c.mediaType, c.file)
			if !errors.Is(err, c.want) || d != (Document{}) {
				t.Errorf("%v, %d bytes of text, want %v", err, len(d.Text), c.want)
			}
		})
	}
}

func TestLongTitleIsCutBetweenCharacters(t *testing.T) {
	d, err := Text([]byte("# "+strings.Repeat("é", maxTitle)), "text/markdown", "")
	if want := strings.Repeat("é", maxTitle/2); err != nil || d.Title != want {
		t.Errorf("%v, %q, want %q", err, d.Title, want)
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range [][]byte{
		[]byte("# Setup\n\nText.\n\n## Keys\n```sh\nrun\n```\n- a\n- b\n"),
		[]byte("<title>T</title><h1>A</h1><table><tr><td>1<td>2</table><pre>x</pre><ul><li>y"),
		helloPDF, structuredPDF(nil), []byte("\xff\xfeh\x00i\x00"),
	} {
		for kind := range byte(5) {
			f.Add(seed, kind, uint16(64))
		}
	}
	kinds := []string{"", Plain, Markdown, HTML, PDF}
	f.Fuzz(func(t *testing.T, body []byte, kind byte, limit uint16) {
		d, err := Text(body, kinds[int(kind)%len(kinds)], "")
		if err != nil {
			return
		}
		checkPassages(t, d, int(limit))
	})
}
