package imports

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"time"
)

// small has bounds that tests can reach.
var small = bounds{
	maxFile: 4000, maxConversation: 2000, maxRecord: 1000, maxTotal: 6000,
	maxEntries: 5, maxFiles: 8, maxMessages: 4, maxKnown: 3,
}

func TestBounds(t *testing.T) {
	line := func(n int) string { return `{"text":"` + strings.Repeat("a", n) + `"}` }
	many := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	numbered := func(n int, text string) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("f%d.jsonl", i)] = text
		}
		return m
	}
	claude := func(n int) string {
		return `{"uuid":"u","chat_messages":[{"sender":"human","text":"` + strings.Repeat("a", n) + `"}]}`
	}
	for _, c := range []struct {
		name, format string
		files        map[string]string
		want         string // of the error, "" is none
	}{
		{"a line that fits", "remora", map[string]string{"a.jsonl": line(1000 - 11)}, ""},
		{"a line without an end that is too long", "remora", map[string]string{"a.jsonl": line(1001 - 9)}, `"a.jsonl", line 1: the line is longer than 1000 bytes`},
		{"a file that is too large", "remora", map[string]string{"a.jsonl": strings.Repeat(line(100)+"\n", 40)}, `"a.jsonl": the file is larger than 4000 bytes`},
		{"blanks that are too many", "claude", map[string]string{"conversations.json": "[" + strings.Repeat(" ", 2500) + "]"}, `"conversations.json", after byte 1: a value is larger than 2000 bytes`},
		{"a conversation that fits", "claude", map[string]string{"conversations.json": "[" + claude(1500) + "," + claude(1500) + "]"}, ""},
		{"a conversation that is too large", "claude", map[string]string{"conversations.json": "[" + claude(1500) + "," + claude(2000) + "]"}, "a value is larger than 2000 bytes"},
		{"a conversation of many lines", "claude-code", map[string]string{"a.jsonl": strings.Repeat(`{"type":"user","message":{"content":"`+strings.Repeat("a", 900)+`"}}`+"\n", 3)}, `"a.jsonl", line 2: a conversation is larger than 2000 bytes`},
		{"a conversation of many messages", "codex", map[string]string{"rollout-1.jsonl": strings.Repeat(`{"type":"event_msg","payload":{"type":"user_message","message":"a"}}`+"\n", 5)}, `"rollout-1.jsonl", line 5: a conversation has more than 4 messages`},
		{"answers that replace each other", "codex", map[string]string{"rollout-1.jsonl": strings.Repeat(`{"type":"event_msg","payload":{"type":"agent_message","message":"a"}}`+"\n", 50)}, ""},
		{"a session of Gemini that is too large", "gemini-cli", map[string]string{"a.json": `{"sessionId":"s","messages":[` + many(14, `{"id":"","type":"user","content":"a"}`) + `]}`}, `a conversation is larger than 2000 bytes`},
		{"a session of Gemini with many messages", "gemini-cli", map[string]string{"a.json": `{"sessionId":"s","messages":[` + many(5, `{"type":"user","content":"a"}`) + `]}`}, `"a.json": a conversation has more than 4 messages`},
		{"a session of Gemini that is written again", "gemini-cli", map[string]string{"a.jsonl": strings.Repeat(`{"id":"1","type":"user","content":"a"}`+"\n", 80)}, ""},
		{"a session of Gemini that is rewound", "gemini-cli", map[string]string{"a.jsonl": strings.Repeat(`{"id":"1","type":"user","content":"a"}`+"\n"+`{"$rewindTo":"1"}`+"\n", 60) + `{"id":"1","type":"user","content":"a"}`}, ""},
		{"a session of opencode that is too large", "opencode", map[string]string{"a.json": `{"messages":[` + many(20, `{"info":{"role":"user"},"parts":["`+strings.Repeat("a", 120)+`"]}`) + `]}`}, "than"},
		{"a record that is too large", "mem0", map[string]string{"a.json": `[{"memory":"` + strings.Repeat("a", 1000) + `"}]`}, "a value is larger than 1000 bytes"},
		{"a lone record that is too large", "mem0", map[string]string{"a.json": `{"memory":"` + strings.Repeat("a", 600) + `","x":"` + strings.Repeat("a", 600) + `"}`}, "a value is larger than 1000 bytes"},
		{"a skipped list may be larger than a value", "openmemory", map[string]string{"memories.json": `{"history":[` + many(300, `{"a":1}`) + `],"memories":[{"content":"a"}]}`}, ""},
		{"more saved memories than are told apart", "openmemory", map[string]string{"memories.json": `[` + many(1, `{"id":"1","content":"a"},{"id":"2","content":"a"},{"id":"3","content":"a"},{"id":"4","content":"a"}`) + `]`}, "more than 3 different memories"},
		{"JSON that is too deep", "openmemory", map[string]string{"memories.json": `{"x":` + strings.Repeat("[", 1500)}, "nested deeper than 1000"},
		{"as many files as there may be", "remora", numbered(7, line(1)), ""},
		{"too many files", "remora", numbered(9, line(1)), "the folder has more than 8 files and folders"},
		{"compressed lines that fit", "openmemory", map[string]string{"memories.jsonl.gz": gzipped(`{"content":"a"}` + strings.Repeat("\n", 4000-15))}, ""},
		{"compressed lines that are a byte too large", "openmemory", map[string]string{"memories.jsonl.gz": gzipped(`{"content":"a"}` + strings.Repeat("\n", 4001-15))}, `: the file is larger than 4000 bytes`},
		{"compressed lines that are too large", "openmemory", map[string]string{"memories.jsonl.gz": gzipped(strings.Repeat(`{"content":"a"}`+"\n", 1000))}, `: the file is larger than 4000 bytes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(files(c.files), c.format, nothing, small)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if errors.Is(err, ErrNothing) {
				t.Errorf("a bound poses as nothing: %v", err)
			}
		})
	}
}

func TestBoundsOfAZip(t *testing.T) {
	line := `{"text":"` + strings.Repeat("a", 900) + `"}` + "\n"
	for _, c := range []struct {
		name, format string
		files        map[string]string
		want         string
	}{
		{"fits", "remora", map[string]string{"a.jsonl": strings.Repeat(line, 4), "b.jsonl": strings.Repeat(line, 2)}, ""},
		{"all files together are too large", "remora", map[string]string{"a.jsonl": strings.Repeat(line, 4), "b.jsonl": strings.Repeat(line, 4)}, "what is to be read of the zip is larger than 6000 bytes"},
		{"one file is too large", "remora", map[string]string{"a.jsonl": strings.Repeat(line, 5)}, "the file is larger than 4000 bytes"},
		{"too many files", "remora", map[string]string{"1.jsonl": line, "2": "", "3": "", "4": "", "5": "", "6": ""}, "the zip has more than 5 files and folders"},
		{"too many folders", "remora", map[string]string{"1.jsonl": line, "2/3/4/5/6/7.jsonl": line}, "the zip has more than 5 files and folders"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys, err := OpenBytes("a.zip", zipped(t, c.files))
			if err != nil {
				t.Fatal(err)
			}
			_, err = read(fsys, c.format, nothing, small)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// A zip that was opened by another package has the bounds of a zip.
func TestBoundsOfAZipReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.zip")
	text := strings.Repeat(oneRemora+"\n", 50)
	if err := os.WriteFile(path, zipped(t, map[string]string{"1.jsonl": text, "2.jsonl": text, "3.jsonl": text, "4.jsonl": text}), 0o600); err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if _, err := read(z, "remora", nothing, small); err == nil || !strings.Contains(err.Error(), "of the zip is larger than 6000 bytes") {
		t.Errorf("error %v", err)
	}
	if _, err := Read(z, "remora", nothing); err != nil {
		t.Error(err)
	}
}

// The bounds that users meet are those of the documentation.
func TestStandardBounds(t *testing.T) {
	want := bounds{256 << 20, 32 << 20, 4 << 20, 4 << 30, 10_000, 100_000, 100_000, 1_000_000}
	if standard != want {
		t.Errorf("bounds %+v, want %+v", standard, want)
	}
	for n, want := range map[int64]string{256 << 20: "256 MiB", 4 << 30: "4096 MiB", 1000: "1000 bytes"} {
		if got := size(n); got != want {
			t.Errorf("size of %d: %q, want %q", n, got, want)
		}
	}
}

// A list that is decoded whole ends at its bound. Three bytes of JSON would
// become a hundred in memory.
func TestManyElements(t *testing.T) {
	for format, text := range map[string]string{
		"claude":  `[{"uuid":"u","chat_messages":[` + strings.Repeat("{},", maxElements) + `{}]}]`,
		"chatgpt": `[{"mapping":{` + nodes(maxElements+1) + `}}]`,
	} {
		_, err := Read(files(map[string]string{"conversations.json": text}), format, nothing)
		if err == nil || !strings.Contains(err.Error(), "more than 100000 elements") || !strings.Contains(err.Error(), "conversations.json") {
			t.Errorf("%s: error %v", format, err)
		}
	}
}

func nodes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":{},`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// The memory of an import is bounded by its largest conversation, not by the
// file.
func TestMemoryOfALargeFile(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 32 MiB")
	}
	one := `{"uuid":"u","chat_messages":[{"sender":"human","text":"` + strings.Repeat("a", 1<<20) + `"}]},`
	const n = 32
	most, start := uint64(0), heap()
	fsys := repeated{"conversations.json", "[" + one, one, strings.TrimSuffix(one, ",") + "]", n - 2}
	report, err := Read(fsys, "claude", func(Item) error {
		most = max(most, heap())
		return nil
	})
	if err != nil || report.Conversations != n {
		t.Fatalf("%+v, %v", report, err)
	}
	if got := most - min(start, most); got > 12<<20 {
		t.Errorf("%d MiB in memory, want at most 12", got>>20)
	}
}

// heap returns the bytes that are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// repeated is a folder with one file that is made as it is read.
type repeated struct {
	name, head, middle, tail string
	n                        int
}

func (r repeated) Open(name string) (fs.File, error) {
	if name != r.name {
		return files(map[string]string{r.name: ""}).Open(name)
	}
	info := &repeatedFile{left: r}
	info.rest = r.head
	return info, nil
}

type repeatedFile struct {
	left repeated
	rest string
	end  bool
}

func (f *repeatedFile) Read(p []byte) (int, error) {
	if f.rest == "" {
		switch {
		case f.left.n > 0:
			f.left.n, f.rest = f.left.n-1, f.left.middle
		case !f.end:
			f.end, f.rest = true, f.left.tail
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *repeatedFile) Stat() (fs.FileInfo, error) { return fileInfo{f.left.name, 0}, nil }
func (f *repeatedFile) Close() error               { return nil }

// A meter fills what it is given, however little its file returns at a time.
func TestMeterFills(t *testing.T) {
	m := &meter{from: iotest.OneByteReader(strings.NewReader("abcdefgh")), maxFile: 100}
	p := make([]byte, 5)
	for _, want := range []string{"abcde", "fgh"} {
		if n, err := m.Read(p); err != nil || string(p[:n]) != want {
			t.Errorf("read %q, %v, want %q", p[:n], err, want)
		}
	}
	if n, err := m.Read(p); n != 0 || err != io.EOF {
		t.Errorf("read %d, %v, want the end", n, err)
	}
	m = &meter{from: io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(fs.ErrClosed)), maxFile: 100}
	n, err := m.Read(p)
	if n == 3 && err == nil {
		_, err = m.Read(p)
	}
	if n != 3 || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("read %d, %v, want 3 and the error of the file", n, err)
	}
}

// Blanks, which a reader of JSON scans again and again, take no time.
func TestBlanksTakeNoTime(t *testing.T) {
	text := "[" + strings.Repeat(" ", 30<<20) + `{"uuid":"u","chat_messages":[{"sender":"human","text":"a"}]}]`
	fsys, err := OpenBytes("a.zip", zipped(t, map[string]string{"conversations.json": text}))
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err := Read(fsys, "claude", nothing); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	_, err = Read(files(map[string]string{"conversations.json": strings.Repeat(" ", maxBlank+1)}), "claude", nothing)
	if err == nil || !strings.Contains(err.Error(), "blanks") {
		t.Errorf("error %v", err)
	}
}

// zipped makes a zip.
func zipped(t testing.TB, content map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range content {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
