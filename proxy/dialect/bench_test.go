package dialect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/zeebo/xxh3"
)

const (
	prose = `The quick brown fox jumps over the lazy dog, and then it rests for a while under the old oak tree.\n`
	code  = `func main() {\n\tfmt.Println(\"hello, world\")\n\tif err != nil {\n\t\treturn fmt.Errorf(\"open: %w\", err)\n\t}\n}\n`
)

// conversation returns a body of about size bytes and n messages like an
// agent's: questions and answers, with tool calls and results between them, and
// tools at the end.
func conversation(size, n int, paragraphs string) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"gpt-4o","stream":true,"messages":[{"role":"system","content":"You help."}`)
	for i := range n {
		// Calls are short, so the other three of four messages carry the size.
		text := strings.Repeat(paragraphs, 1+size*4/3/n/len(paragraphs))[:max(8, size*4/3/n-100)]
		text = strings.TrimRight(text, `\`)
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, `,{"role":"user","content":"%s"}`, text)
		case 1:
			fmt.Fprintf(&b, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.go\"}"}}]}`, i)
		case 2:
			fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"call_%d","content":"%s"}`, i-1, text)
		default:
			fmt.Fprintf(&b, `,{"role":"assistant","content":"%s"}`, text)
		}
	}
	b.WriteString(`],"tools":[{"type":"function","function":{"name":"read","description":"reads a file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]}`)
	return []byte(b.String())
}

// conversations are conversation in every dialect.
var conversations = []struct {
	d    Dialect
	body func(size, n int, paragraphs string) []byte
}{{Chat{}, conversation}, {Messages{}, messagesConversation}, {Responses{}, responsesConversation}}

func messagesConversation(size, n int, paragraphs string) []byte {
	return likeConversation(size, n, paragraphs, `{"model":"m","stream":true,"max_tokens":9,"system":[{"type":"text","text":"You help.","cache_control":{"type":"ephemeral"}}],"messages":[`,
		`{"role":"user","content":[{"type":"text","text":"%s","cache_control":{"type":"ephemeral"}}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"call_%d","name":"read","input":{"path":"a.go"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_%d","content":[{"type":"text","text":"%s"}]}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"%s"}]}`)
}

func responsesConversation(size, n int, paragraphs string) []byte {
	return likeConversation(size, n, paragraphs, `{"model":"m","stream":true,"store":false,"instructions":"You help.","input":[`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"%s"}]}`,
		`{"type":"function_call","call_id":"call_%d","name":"read","arguments":"{\"path\":\"a.go\"}"}`,
		`{"type":"function_call_output","call_id":"call_%d","output":"%s"}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"%s","annotations":[]}]}`)
}

func likeConversation(size, n int, paragraphs, head, user, call, result, assistant string) []byte {
	var b strings.Builder
	b.WriteString(head)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		text := strings.Repeat(paragraphs, 1+size*4/3/n/len(paragraphs))[:max(8, size*4/3/n-100)]
		text = strings.TrimRight(text, `\`)
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, user, text)
		case 1:
			fmt.Fprintf(&b, call, i)
		case 2:
			fmt.Fprintf(&b, result, i-1, text)
		default:
			fmt.Fprintf(&b, assistant, text)
		}
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func BenchmarkParse(b *testing.B) {
	for _, like := range conversations {
		for _, size := range benchBodies[2:] {
			body := like.body(size.size, size.count, size.paragraphs)
			b.Run(like.d.Name()+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := like.d.Parse(body); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

var benchBodies = []struct {
	name        string
	size, count int
	paragraphs  string
}{
	{"1KiB", 1 << 10, 3, prose},
	{"16KiB", 16 << 10, 12, prose},
	{"256KiB", 256 << 10, 40, prose},
	{"256KiB_code", 256 << 10, 40, prose + code},
}

func BenchmarkChatParse(b *testing.B) {
	for _, size := range benchBodies {
		body := conversation(size.size, size.count, size.paragraphs)
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (Chat{}).Parse(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(size.name+"/skip", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				s := scanner{b: body}
				if s.skip(); s.err != nil {
					b.Fatal(s.err)
				}
			}
		})
		b.Run(size.name+"/xxh3", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				xxh3.Hash128(body)
			}
		})
		// What a walk over the messages alone costs with gjson: nothing
		// checked, hashed or looked at.
		b.Run(size.name+"/gjson", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				gjson.GetBytes(body, "messages").ForEach(func(_, m gjson.Result) bool {
					n += len(m.Raw)
					return true
				})
			}
		})
	}
}

func BenchmarkInsert(b *testing.B) {
	block := strings.Repeat("- 2026-01-01 the user likes \"tea\"\n", 30)
	for _, like := range conversations {
		body := like.body(256<<10, 40, prose)
		req, err := like.d.Parse(body)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(like.d.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				insertions, err := like.d.Insert(req, req.Turn, BeforeUser, block)
				if err != nil {
					b.Fatal(err)
				}
				Splice(body, insertions)
			}
		})
	}
}

func BenchmarkChatReplyStream(b *testing.B) {
	chunk := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	body := []byte(strings.Repeat(chunk, 1000))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Chat{}).ReplyStream(body); err != nil {
			b.Fatal(err)
		}
	}
}
