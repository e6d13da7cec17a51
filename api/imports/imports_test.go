package imports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// files makes a folder of these files.
func files(content map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range content {
		m[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o600}
	}
	return m
}

// importCase is an export of one format, and what is found in it.
type importCase struct {
	name     string
	format   string // "" is detected
	files    map[string]string
	want     string // see show
	rejected string // reasons and numbers
}

// run reads the export with its format given, and detected.
func (c importCase) run(t *testing.T, format string) {
	t.Run(c.name, func(t *testing.T) {
		var got strings.Builder
		report, err := Read(files(c.files), c.format, func(i Item) error { show(&got, i); return nil })
		if c.want == "" {
			if !errors.Is(err, ErrNothing) {
				t.Errorf("error %v, want ErrNothing", err)
			}
		} else if err != nil {
			t.Error(err)
		}
		if report.Format != format {
			t.Errorf("format %q, want %q", report.Format, format)
		}
		if diff := cmp.Diff(unindent(c.want), got.String()); diff != "" {
			t.Errorf("items (-want +got):\n%s", diff)
		}
		if got := reasons(report); got != c.rejected {
			t.Errorf("rejected %q, want %q", got, c.rejected)
		}
		checkCounts(t, report, got.String())
	})
}

func runCases(t *testing.T, format string, cases []importCase) {
	t.Helper()
	for _, c := range cases {
		c.run(t, format)
	}
}

// checkCounts compares the report with what was found.
func checkCounts(t *testing.T, r Report, shown string) {
	t.Helper()
	conversations := strings.Count("\n"+shown, "\nconversation ")
	memories := strings.Count("\n"+shown, "\nmemory ")
	messages := strings.Count(shown, "\n  ")
	if r.Conversations != conversations || r.Memories != memories || r.Messages != messages {
		t.Errorf("report %+v, but found %d conversations, %d messages, %d memories", r, conversations, messages, memories)
	}
	if r.Files == 0 {
		t.Error("the report counts no files")
	}
}

// show writes an item in lines.
func show(w *strings.Builder, i Item) {
	when := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Format(time.RFC3339Nano)
	}
	if c := i.Conversation; c != nil {
		fmt.Fprintf(w, "conversation %s title=%s project=%s\n", c.ID, c.Title, c.Project)
		for _, m := range c.Messages {
			fmt.Fprintf(w, "  %s %s %s %s: %q\n", m.ID, m.Role, when(m.Time), m.Model, m.Text)
		}
	}
	if m := i.Memory; m != nil {
		meta, _ := json.Marshal(m.Metadata)
		fmt.Fprintf(w, "memory %s %s %q tags=%s %s %s user=%s conversation=%s app=%s project=%s %s\n",
			m.ID, m.Kind, m.Text, strings.Join(m.Tags, ","), when(m.CreatedAt), when(m.UpdatedAt),
			m.User, m.Conversation, m.App, m.Project, meta)
	}
}

// unindent removes the tabs in front of lines, and the first line's end.
func unindent(s string) string {
	s = strings.TrimPrefix(s, "\n")
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimLeft(l, "\t")
	}
	return strings.Join(lines, "\n")
}

// reasons writes what was left out.
func reasons(r Report) string {
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(r.Rejected)) {
		all = append(all, fmt.Sprint(reason, " ", r.Rejected[reason]))
	}
	return strings.Join(all, ", ")
}

func nothing(Item) error { return nil }

func TestFormats(t *testing.T) {
	want := []string{"remora", "mem0", "openmemory", "chatgpt", "claude", "claude-code", "codex", "gemini-cli", "opencode"}
	if diff := cmp.Diff(want, Formats()); diff != "" {
		t.Error(diff)
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		name, file, text, want string
	}{
		{"rollouts by name", "2026/rollout-1.jsonl", "", "codex"},
		{"sessions of Gemini by name", "tmp/h/chats/session-1.json", "", "gemini-cli"},
		{"logs of Gemini by name", "tmp/h/chats/session-1.jsonl", "", "gemini-cli"},
		{"backup of OpenMemory by name", "memories.jsonl.gz", "", "openmemory"},
		{"ChatGPT", "conversations-000.json", `[{"title":"t","mapping":{}}]`, "chatgpt"},
		{"ChatGPT in a folder", "a/b/conversations.json", `[{"title":"t","mapping":{}}]`, "chatgpt"},
		{"ChatGPT, cut", "conversations.json", `[{"title":"t","mapping":{"a":{"id":"a`, "chatgpt"},
		{"Claude", "conversations.json", `[{"uuid":"u","chat_messages":[]}]`, "claude"},
		{"projects of Claude", "projects.json", `[{"uuid":"u","docs":[]}]`, "claude"},
		{"memories of Claude", "memories.json", `[{"conversations_memory":""}]`, "claude"},
		{"memories of OpenMemory", "memories.json", `{"user":{},"apps":[],"memories":[]}`, "openmemory"},
		{"lines of OpenMemory", "m.jsonl", `{"id":"1","content":"c","state":"active"}`, "openmemory"},
		{"page of mem0", "x.json", `{"count":0,"next":null,"previous":null,"results":[]}`, "mem0"},
		{"array of mem0", "x.json", `[{"id":"1","memory":"m"}]`, "mem0"},
		{"lines of mem0", "x.jsonl", `{"id":"1","memory":"m"}`, "mem0"},
		{"Remora", "x.jsonl", `{"id":"1","kind":"fact","text":"t"}`, "remora"},
		{"Claude Code after bookkeeping", "x.jsonl", `{"type":"summary","summary":"s"}` + "\n" +
			`{"type":"user","sessionId":"s","message":{"content":"c"}}`, "claude-code"},
		{"Codex of another name", "x.jsonl", `{"type":"session_meta","payload":{}}`, "codex"},
		{"Gemini of another name", "x.json", `{"sessionId":"s","messages":[]}`, "gemini-cli"},
		{"checkpoint of Gemini", "checkpoint-a.json", `[{"role":"user","parts":[]}]`, "gemini-cli"},
		{"opencode", "x.json", `{"info":{},"messages":[]}`, "opencode"},
		{"byte order mark and blanks", "x.json", "\xef\xbb\xbf \r\n\t" + `{"info":{},"messages":[]}`, "opencode"},
		{"one file without a type", "body", `{"info":{},"messages":[]}`, "opencode"},
		{"array without objects", "x.json", `[1,[2],"a"]`, ""},
		{"text", "x.txt", "hello", ""},
		{"nothing", "x.json", "", ""},
		{"other JSON", "x.json", `{"name":"n"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			report, err := Read(files(map[string]string{c.file: c.text}), "", nothing)
			if report.Format != c.want {
				t.Errorf("format %q, want %q (%v)", report.Format, c.want, err)
			}
			if errors.Is(err, ErrFormat) != (c.want == "") {
				t.Errorf("error %v", err)
			}
			if c.want == "" {
				for _, f := range Formats() {
					if !strings.Contains(err.Error(), f) {
						t.Errorf("error %q does not name %s", err, f)
					}
				}
			}
		})
	}
}

func TestDetectPrefersNames(t *testing.T) {
	fsys := files(map[string]string{
		"a.json":             `[{"id":"1","memory":"m"}]`,
		"conversations.json": `[{"uuid":"u","chat_messages":[]}]`,
		"__MACOSX/x.json":    `{"info":{},"messages":[]}`,
		"._b.json":           "\x00",
	})
	if report, err := Read(fsys, "", nothing); report.Format != "claude" {
		t.Errorf("format %q, want claude (%v)", report.Format, err)
	}
}

// What the archiver of macOS puts next to files has their names, and no JSON.
func TestFilesOfMacOS(t *testing.T) {
	fsys := files(map[string]string{
		"e/a.jsonl": `{"text":"a"}`, "e/._a.jsonl": "\x00", "__MACOSX/e/a.jsonl": "\x00", "__MACOSX/e/._a.jsonl": "\x00",
	})
	if report, err := Read(fsys, "remora", nothing); err != nil || report.Files != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestNothingIsAnErrorWithItsReason(t *testing.T) {
	for _, c := range []struct {
		name, format string
		files        map[string]string
		want         []string
	}{
		{"no file", "codex", map[string]string{"a.txt": "", "b.txt": ""}, []string{"codex", "rollout-*.jsonl"}},
		{"empty file", "mem0", map[string]string{"a.json": ""}, []string{"mem0", "read files: 1"}},
		{"empty array", "chatgpt", map[string]string{"conversations.json": "[]"}, []string{"chatgpt", "read files: 1"}},
		{"all left out", "chatgpt", map[string]string{"conversations.json": `[{"mapping":{},"is_do_not_remember":true},{"mapping":{}}]`},
			[]string{"doNotRemember 1", "empty 1"}},
		{"another format", "claude", map[string]string{"conversations.json": `[{"mapping":{}}]`}, []string{"unknownType 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(files(c.files), c.format, nothing)
			if !errors.Is(err, ErrNothing) {
				t.Fatalf("error %v, want ErrNothing", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q lacks %q", err, w)
				}
			}
		})
	}
	if _, err := Read(files(nil), "", nothing); !errors.Is(err, ErrFormat) {
		t.Errorf("empty folder: %v, want ErrFormat", err)
	}
	if _, err := Read(files(nil), "obsidian", nothing); !errors.Is(err, ErrFormat) {
		t.Errorf("no such format: %v, want ErrFormat", err)
	}
}

// The caller's error ends the import, and is its own.
func TestErrorOfTheCaller(t *testing.T) {
	stop := errors.New("stop")
	for format, fsys := range samples() {
		t.Run(format, func(t *testing.T) {
			n := 0
			report, err := Read(fsys, format, func(Item) error { n++; return stop })
			if err != stop || n != 1 {
				t.Errorf("error %v after %d items, want the caller's after 1", err, n)
			}
			if report.Conversations+report.Memories != 0 {
				t.Errorf("report %+v counts what the caller refused", report)
			}
		})
	}
}

// samples are small exports, one of each format.
func samples() map[string]fs.FS {
	return map[string]fs.FS{
		"remora":     files(map[string]string{"a.jsonl": `{"id":"1","kind":"fact","text":"SECRET"}`}),
		"mem0":       files(map[string]string{"a.json": `{"results":[{"id":"1","memory":"SECRET"}]}`}),
		"openmemory": files(map[string]string{"memories.json": `{"user":"u","apps":[],"memories":[{"id":"1","content":"SECRET"}]}`}),
		"chatgpt": files(map[string]string{"conversations.json": `[{"id":"1","current_node":"a","mapping":{"a":{"message":` +
			`{"author":{"role":"user"},"content":{"content_type":"text","parts":["SECRET"]}}}}}]`}),
		"claude": files(map[string]string{"conversations.json": `[{"uuid":"1","chat_messages":[{"sender":"human","text":"SECRET"}]}]`}),
		"claude-code": files(map[string]string{"a.jsonl": `{"type":"user","sessionId":"s","message":{"content":"SECRET"}}
			{"type":"assistant","sessionId":"s","message":{"content":"SECRET"}}`}),
		"codex":      files(map[string]string{"rollout-a.jsonl": `{"type":"event_msg","payload":{"type":"user_message","message":"SECRET"}}`}),
		"gemini-cli": files(map[string]string{"chats/session-a.json": `{"sessionId":"1","messages":[{"type":"user","content":"SECRET"}]}`}),
		"opencode":   files(map[string]string{"a.json": `{"info":{"id":"1"},"messages":[{"info":{"role":"user"},"parts":[{"type":"text","text":"SECRET"}]}]}`}),
	}
}

// Wherever an export is cut, the error names the file and quotes nothing.
func TestCut(t *testing.T) {
	for format, fsys := range samples() {
		t.Run(format, func(t *testing.T) {
			for name, file := range fsys.(fstest.MapFS) {
				text := strings.TrimSpace(string(file.Data))
				for n := 1; n < len(text); n++ {
					if strings.HasPrefix(text[len(strings.TrimSpace(text[:n])):], "\n") {
						continue // after a whole line
					}
					_, err := Read(files(map[string]string{name: text[:n]}), format, nothing)
					if err == nil {
						t.Fatalf("cut at %d: no error", n)
					}
					if !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "SECRET") {
						t.Fatalf("cut at %d: %v", n, err)
					}
				}
			}
		})
	}
}

// Malformed JSON gives an error with the file and the place, and no content.
func TestMalformed(t *testing.T) {
	for format, fsys := range samples() {
		t.Run(format, func(t *testing.T) {
			for name, file := range fsys.(fstest.MapFS) {
				text := strings.ReplaceAll(string(file.Data), `"SECRET"`, `"a" SECRET`)
				_, err := Read(files(map[string]string{name: text}), format, nothing)
				if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "malformed JSON") {
					t.Fatalf("error %v", err)
				}
				if !strings.Contains(err.Error(), "line ") && !strings.Contains(err.Error(), "byte ") {
					t.Errorf("error %q has no place", err)
				}
				for _, quote := range []string{"SECRET", "'S'", "invalid character"} {
					if strings.Contains(err.Error(), quote) {
						t.Errorf("error %q quotes content", err)
					}
				}
			}
		})
	}
}

// What follows the array or object of a file is an error.
func TestMoreAfterTheEnd(t *testing.T) {
	for _, format := range []string{"mem0", "openmemory", "chatgpt", "claude", "gemini-cli", "opencode"} {
		for name, file := range samples()[format].(fstest.MapFS) {
			_, err := Read(files(map[string]string{name: string(file.Data) + "]"}), format, nothing)
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: error %v", format, err)
			}
		}
	}
}

func TestUnreadable(t *testing.T) {
	_, err := Read(broken{files(map[string]string{"a.jsonl": ""})}, "remora", nothing)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "a.jsonl") {
		t.Errorf("error %v", err)
	}
}

// broken lists files that it does not open.
type broken struct{ fstest.MapFS }

func (b broken) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, ".jsonl") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return b.MapFS.Open(name)
}
