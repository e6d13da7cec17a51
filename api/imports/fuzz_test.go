package imports

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// FuzzRead reads any bytes as any format, as one file and as what is in a zip.
// It must not panic, not run for ever, not pass over a silent zero, and not
// hand over what no conversation has.
func FuzzRead(f *testing.F) {
	names := []string{
		"a.json", "a.jsonl", "conversations.json", "projects.json", "memories.json", "memories.jsonl.gz",
		"rollout-1.jsonl", "session-1.json", "session-1.jsonl", "checkpoint-1.json", "body",
	}
	for _, fsys := range samples() {
		for name, file := range fsys.(fstest.MapFS) {
			for i, n := range names {
				if strings.HasSuffix(name, n) {
					f.Add(uint8(i), uint8(0), file.Data)
				}
			}
		}
	}
	for i := range len(formats) + 1 {
		f.Add(uint8(i), uint8(i), []byte("["+gptConversation("b", gptNode("a", "b", gptText("a", "user", "a", "")), gptNode("b", "a", gptContext("model_editable_context", "1. [2024-05-01]. x")))+"]"))
		f.Add(uint8(i), uint8(i), []byte(openMemoryJSON))
		f.Add(uint8(i), uint8(i), []byte(gzipped(`{"id":"8","content":"New"}`)))
		f.Add(uint8(i), uint8(i), zipped(f, map[string]string{"conversations.json": `[{"uuid":"1","chat_messages":[{"sender":"human","text":"a"}]}]`}))
		f.Add(uint8(i), uint8(i), []byte(`{"$rewindTo":"1"}`+"\n"+`{"id":"1","type":"user","content":[{"text":"a"}]}`))
		f.Add(uint8(i), uint8(i), []byte(strings.Repeat("[", 20000)))
		f.Add(uint8(i), uint8(i), []byte(`{"a":`+strings.Repeat(`{"a":`, 3000)))
	}
	b := bounds{
		maxFile: 1 << 20, maxConversation: 1 << 18, maxRecord: 1 << 16, maxTotal: 1 << 20,
		maxEntries: 100, maxFiles: 100, maxMessages: 1000, maxKnown: 1000,
	}
	f.Fuzz(func(t *testing.T, name, format uint8, body []byte) {
		file := names[int(name)%len(names)]
		single, err := OpenBytes(file, body)
		if err != nil {
			return
		}
		folder := fstest.MapFS{"x/" + file: {Data: body}}
		for _, fsys := range []fs.FS{single, folder} {
			chosen := ""
			if i := int(format) % (len(formats) + 1); i < len(formats) {
				chosen = formats[i].name
			}
			begin, items, messages := time.Now(), 0, 0
			report, err := read(fsys, chosen, func(i Item) error {
				items++
				messages += checkItem(t, i)
				return nil
			}, b)
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if err == nil && items == 0 {
				t.Error("no items and no error")
			}
			if report.Conversations+report.Memories != items || report.Messages != messages {
				t.Errorf("%+v counts %d items, %d messages", report, items, messages)
			}
		}
	})
}

// checkItem checks what every item has, and returns the number of messages.
func checkItem(t *testing.T, i Item) int {
	t.Helper()
	if (i.Conversation == nil) == (i.Memory == nil) {
		t.Fatal("an item is a conversation or a memory")
	}
	if m := i.Memory; m != nil {
		if strings.TrimSpace(m.Text) == "" {
			t.Error("a memory without text")
		}
		return 0
	}
	if len(i.Conversation.Messages) == 0 {
		t.Error("a conversation without messages")
	}
	for _, m := range i.Conversation.Messages {
		if m.Role != "user" && m.Role != "assistant" || strings.TrimSpace(m.Text) == "" {
			t.Errorf("a message of %q with %d bytes", m.Role, len(m.Text))
		}
	}
	return len(i.Conversation.Messages)
}
