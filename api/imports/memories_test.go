package imports

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

func TestRemora(t *testing.T) {
	runCases(t, "remora", []importCase{
		{
			name: "every member",
			files: map[string]string{"a.jsonl": `{"id":"1","kind":"fact","text":"Likes tea","tags":["a","b"],"user":"u","conversation":"c","app":"x","project":"p",` +
				`"createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-03T03:04:05+01:00","metadata":{"k":1},"eventTime":"2026"}`},
			want: `
			memory 1 fact "Likes tea" tags=a,b 2026-01-02T03:04:05Z 2026-01-03T03:04:05+01:00 user=u conversation=c app=x project=p {"k":1}
			`,
		},
		{
			name: "blank lines, a byte order mark, line ends of Windows, an unknown kind, no text",
			files: map[string]string{"a.jsonl": "\xef\xbb\xbf\n\r\n" + `{"id":"1","text":"a","kind":"episode"}` + "\r\n\n" +
				`{"id":"2","text":"b","kind":"entry"}` + "\n" + `{"id":"3","text":" ","kind":"fact"}`},
			want: `
			memory 1 episode "a" tags= - - user= conversation= app= project= null
			`,
			rejected: "empty 1, unknownType 1",
		},
		{
			name:   "several files, in their order, of another name for the type",
			format: "remora",
			files:  map[string]string{"b.ndjson": `{"id":"2","text":"b"}`, "a.jsonl": `{"id":"1","text":"a"}`, "c.txt": "x"},
			want: `
			memory 1  "a" tags= - - user= conversation= app= project= null
			memory 2  "b" tags= - - user= conversation= app= project= null
			`,
		},
	})
}

func TestRemoraKeepsTheLine(t *testing.T) {
	const line = `{"id":"1", "text":"a","eventTime":"2026-01-02T03:04:05Z","other":[1]}`
	var raw []string
	_, err := Read(files(map[string]string{"a.jsonl": line + "\n" + line}), "remora", func(i Item) error {
		raw = append(raw, string(i.Memory.Raw))
		return nil
	})
	if err != nil || len(raw) != 2 || raw[0] != line || raw[1] != line {
		t.Errorf("raw %q, %v", raw, err)
	}
}

func TestRemoraBadLine(t *testing.T) {
	for _, bad := range []string{
		`nonsense`, `{"text":"SECRET"`, `[1]`, `"SECRET"`, `{}`, `{"text":3}`, `{"text":"a","createdAt":"SECRET"}`, `{"text":"a","tags":"SECRET"}`,
	} {
		_, err := Read(files(map[string]string{"f/a.jsonl": `{"text":"a"}` + "\n\n" + bad + "\n" + `{"text":"b"}`}), "remora", nothing)
		if err == nil || !strings.Contains(err.Error(), `"f/a.jsonl", line 3: `) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: error %v, want line 3", bad, err)
		}
	}
}

func TestMem0(t *testing.T) {
	const record = `{"id":"1","memory":"Likes tea","user_id":"u","agent_id":"a","run_id":"r","categories":["food"],"hash":"h",` +
		`"metadata":{"k":"v"},"created_at":"2024-07-20T01:27:10.312345-07:00","updated_at":"2024-07-21T00:00:00"}`
	const want = `
	memory 1  "Likes tea" tags=food 2024-07-20T08:27:10.312345Z 2024-07-21T00:00:00Z user=u conversation=r app=a project= {"k":"v"}
	`
	runCases(t, "mem0", []importCase{
		{name: "array", files: map[string]string{"a.json": "[" + record + "]"}, want: want},
		{name: "results", files: map[string]string{"a.json": `{"results":[` + record + `],"relations":[{"deep":[1]}]}`}, want: want},
		{name: "page", files: map[string]string{"a.json": `{"count":1,"next":null,"previous":null,"results":[` + record + `]}`}, want: want},
		{name: "memories", files: map[string]string{"a.json": `{"memories":[` + record + `]}`}, want: want},
		{name: "lines", files: map[string]string{"a.jsonl": record + "\n\n"}, want: want},
		{name: "one record", files: map[string]string{"a.json": record}, want: want},
		{
			name: "pages in files and lines",
			files: map[string]string{
				"1.json": `{"count":3,"results":[{"id":"1","memory":"a"}]}`, "2.json": `{"count":3,"results":[{"id":"2","text":"b"}]}`,
				"3.jsonl": `{"results":[{"id":"3","data":"c"}]}` + "\n" + `[{"id":"4","memory":"d"}]`,
			},
			want: `
			memory 1  "a" tags= - - user= conversation= app= project= null
			memory 2  "b" tags= - - user= conversation= app= project= null
			memory 3  "c" tags= - - user= conversation= app= project= null
			memory 4  "d" tags= - - user= conversation= app= project= null
			`,
		},
		{
			name: "other shapes and types",
			files: map[string]string{"a.json": `{"results":[{"id":"1","memory":"a","app_id":"app","agent_id":"agent","metadata":[1],"categories":"x","created_at":1721439000},` +
				`{"id":2,"memory":"b","created_at":"soon","user_id":null},{"id":"3"},{"id":"4","memory":" "},7]}`},
			want: `
			memory 1  "a" tags= 2024-07-20T01:30:00Z - user= conversation= app=app project= null
			memory   "b" tags= - - user= conversation= app= project= null
			`,
			rejected: "empty 1, unknownType 2",
		},
		{name: "results that are no array", files: map[string]string{"a.json": `{"results":{"a":[1,{"b":2}]}}`}, want: ""},
	})
}

const openMemoryJSON = `{
	"user": {"id":"x","user_id":"ann","name":"Ann"},
	"memories": [
		{"id":"1","user_id":"x","app_id":"a1","content":"Likes tea","metadata":{"k":1},"state":"active",
			"created_at":"2025-05-01T10:00:00+00:00","updated_at":"2025-05-02T10:00:00+00:00","archived_at":null,"category_ids":["c1","c9"]},
		{"id":"2","content":"Old","state":"archived"},
		{"id":"3","content":"Waits","state":"paused"},
		{"id":"4","content":"Gone","state":"deleted"},
		{"id":"5","content":"","state":"active"},
		{"id":"6"},
		{"id":"7","content":"Has a cat","app":"cli","categories":[{"name":"pets"},"home"]}
	],
	"apps": [{"id":"a1","name":"cursor"}],
	"categories": [{"id":"c1","name":"food"}],
	"status_history": [{"deep":[[{}]]}]
}`

const openMemoryWant = `
memory 1  "Likes tea" tags=food 2025-05-01T10:00:00Z 2025-05-02T10:00:00Z user=ann conversation= app=cursor project= {"k":1}
memory 7  "Has a cat" tags=pets,home - - user=ann conversation= app=cli project= null
`

func TestOpenMemory(t *testing.T) {
	lines := gzipped(`{"id":"1","content":"Likes tea","app":"cursor"}
{"id":"2","content":"Old"}
{"id":"8","content":"New","metadata":{},"created_at":"2025-05-03T10:00:00Z","updated_at":null,"state":"active","app":"web","categories":["x"]}
{"id":"9","content":"Archived","state":"archived"}
`)
	runCases(t, "openmemory", []importCase{
		{
			name:  "memories.json",
			files: map[string]string{"memories.json": openMemoryJSON}, want: openMemoryWant,
			rejected: "empty 1, notActive 3, unknownType 1",
		},
		{
			// The lines of an old version have no state: what was archived stays out.
			name:  "both files",
			files: map[string]string{"b/memories.json": openMemoryJSON, "b/memories.jsonl.gz": lines},
			want: openMemoryWant + `memory 8  "New" tags=x 2025-05-03T10:00:00Z - user=ann conversation= app=web project= {}
			`,
			rejected: "duplicate 2, empty 1, notActive 4, unknownType 1",
		},
		{
			name:  "lines alone",
			files: map[string]string{"memories.jsonl.gz": gzipped(`{"id":"8","content":"New"}`)},
			want: `
			memory 8  "New" tags= - - user= conversation= app= project= null
			`,
		},
		{
			name:  "a user that is a name, an array",
			files: map[string]string{"a/memories.json": `{"user":"bob","memories":[{"content":"a"}],"apps":null}`, "b/memories.json": `[{"id":"1","content":"b"}]`},
			want: `
			memory   "a" tags= - - user=bob conversation= app= project= null
			memory 1  "b" tags= - - user=bob conversation= app= project= null
			`,
		},
	})
}

func TestOpenMemoryCutCompression(t *testing.T) {
	whole := gzipped(strings.Repeat(`{"id":"8","content":"New"}`+"\n", 100))
	for _, n := range []int{0, 5, len(whole) / 2, len(whole) - 1} {
		_, err := Read(files(map[string]string{"memories.jsonl.gz": whole[:n]}), "openmemory", nothing)
		if err == nil || !strings.Contains(err.Error(), "memories.jsonl.gz") || !strings.Contains(err.Error(), "ends too early") {
			t.Errorf("cut at %d: error %v", n, err)
		}
	}
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}
