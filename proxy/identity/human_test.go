package identity

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/proxytest"
)

// claudeBody is a Messages request with these system texts, further members,
// and user texts in one message.
func claudeBody(t *testing.T, system []string, more string, texts ...string) string {
	t.Helper()
	blocks := func(texts []string) string {
		var list []map[string]string
		for _, text := range texts {
			list = append(list, map[string]string{"type": "text", "text": text})
		}
		b, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	body := "{" + more + `"model":"m",`
	if len(system) > 0 {
		body += `"system":` + blocks(system) + ","
	}
	return body + `"messages":[{"role":"user","content":` + blocks(texts) + `}]}`
}

// A request is a side call by what only the client's own side calls have; a
// human who begins a message as one of them does keeps the memory of that turn.
func TestSideCallsAndWhoWritesLikeThem(t *testing.T) {
	const (
		billing = "x-anthropic-billing-header: cc_version=2.1.197.c6b; cc_entrypoint=cli"
		agent   = "You are Claude Code, Anthropic's official CLI for Claude."
		tools   = `"tools":[{"name":"Bash"}],`
		stream  = `"stream":true,`
	)
	claude, webui := []string{"User-Agent", "claude-cli/2.1.197"}, []string{"X-OpenWebUI-Chat-Id", "c"}
	history := "\n### Guidelines:\n- be short\n### Output:\nJSON format: {}\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"
	chatWith := func(more, text string) string {
		return strings.Replace(proxytest.ChatBody("user: "+text), "{", "{"+more, 1)
	}
	for _, tt := range []struct {
		name   string
		header []string
		body   string
		side   bool
	}{
		{"Claude Code asks for its quota", claude, claudeBody(t, nil, `"max_tokens":1,`, "quota"), true},
		{"a human asks about quota", claude, claudeBody(t, []string{billing, agent}, tools+stream+`"max_tokens":32000,`, "quota"), false},
		{"and again without tools", claude, claudeBody(t, []string{agent}, `"max_tokens":32000,`, "quota"), false},
		{"a title, behind a billing header", claude, claudeBody(t, []string{billing, agent, "Generate a concise, sentence-case title (3-7 words) that"}, stream, "hi"), true},
		{"a title's words in an agent's prompt", claude, claudeBody(t, []string{agent, "Never do this: Generate a concise, sentence-case title"}, stream, "hi"), false},
		{"a topic, behind white space", claude, claudeBody(t, []string{billing, "\n Analyze if this message indicates a new conversation topic. If"}, "", "hi"), true},
		{"compaction", claude, claudeBody(t, []string{billing, agent}, tools+stream, "Your task is to create a detailed summary of the conversation so far, paying close attention.\nYour summary should include the following sections:\n1."), true},
		{"a human asks for a summary", claude, claudeBody(t, []string{billing, agent}, tools+stream, "Your task is to create a detailed summary of the conversation so far"), false},
		{"a sub-agent warms up", claude, claudeBody(t, []string{billing, agent, "You are a file search specialist for Claude Code, Anthropic's"}, tools+stream, "Warmup"), true},
		{"a human warms up", claude, claudeBody(t, []string{billing, agent}, tools+stream, "Warmup"), false},
		{"a suggestion", claude, claudeBody(t, []string{agent}, tools+stream, "[SUGGESTION MODE: Suggest what the user might naturally type next into Claude Code.]"), true},
		{"a human's suggestion", claude, claudeBody(t, []string{agent}, tools+stream, "[SUGGESTION MODE: on] what next?"), false},

		{"Open WebUI's title", webui, chatWith(`"stream":false,`, "### Task:\nGenerate a concise, 3-5 word title"+history), true},
		{"with a template of the house", webui, chatWith(`"stream":false,`, "### Task:\nTitel finden"+history), true},
		{"a human's task", webui, chatWith(stream, "### Task:\nGenerate a concise, 3-5 word title for my novel"), false},
		{"a human's task in one piece", webui, chatWith(`"stream":false,`, "### Task:\nwrite a poem"), false},
		{"a human's question over documents", webui, chatWith(`"stream":false,`, "### Task:\nRespond to the user query using the provided context, incorporating\n### Output:\nProvide an answer\n<context>\n<source id=\"1\">x</source>\n</context>\nwho is Ines?"), false},
		{"choice of tools", webui, proxytest.ChatBody("system: Available Tools: []\n\nYour task is to choose", "user: Query: History:\nUSER: hi\nQuery: hi"), true},
		{"LibreChat's title", nil, proxytest.ChatBody("user: Provide a concise, 5-word-or-less title for the conversation, using title case"), true},
		{"later in a conversation", nil, proxytest.ChatBody("user: a", "assistant: b", "user: Provide a concise, 5-word-or-less title for the conversation"), false},

		{"OpenCode's own title", []string{"User-Agent", "opencode/1"}, proxytest.ChatBody("user: Generate a title for this conversation:\n"), true},
		{"a human of OpenCode's", []string{"User-Agent", "opencode/1"}, chatWith(`"tools":[{"type":"function"}],`, "Generate a title for this conversation:"), false},
		{"another's title generator", nil, proxytest.ChatBody("system: You are a title generator for novels", "user: hi"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d dialect.Dialect = dialect.Chat{}
			if len(tt.header) > 0 && strings.HasPrefix(tt.header[1], "claude") {
				d = dialect.Messages{}
			}
			req, err := d.Parse([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			h := http.Header{}
			for i := 0; i < len(tt.header); i += 2 {
				h.Set(tt.header[i], tt.header[i+1])
			}
			c := New(DefaultConfig(), nil).Profile(h, req)
			if got := c.IsSide(h, req, c.Human(req.Texts(req.Turn))); got != tt.side {
				t.Errorf("got %v, want %v", got, tt.side)
			}
		})
	}
}

// What a human typed, in whatever a client puts it.
func TestHumanTexts(t *testing.T) {
	for _, tt := range []struct {
		name, agent string
		texts       []string
		want        string
	}{
		{"an interruption and what follows it", "claude-cli/2", []string{"[Request interrupted by user]", "take the other file"}, "take the other file"},
		{"a continued session", "claude-cli/2", []string{"This session is being continued from a previous conversation that ran out of context. The", "<system-reminder>x</system-reminder>", "go on with the tests"}, "go on with the tests"},
		{"only the harness", "claude-cli/2", []string{"[Request interrupted by user for tool use]"}, ""},
		{"reminders", "claude-cli/2", []string{"<system-reminder>a</system-reminder>", "LISTFILES then say hello"}, "LISTFILES then say hello"},
		{"a local command", "claude-cli/2", []string{"<local-command-caveat>Caveat</local-command-caveat>", "<command-name>/x</command-name>"}, ""},
		{"Codex's instructions", "codex_exec/1", []string{"# AGENTS.md instructions for /home/x\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"}, ""},
		{"a picture of Codex's", "codex_exec/1", []string{"<image name=[Image #1] path=\"/x.png\">", "</image>", "what is in this picture"}, "what is in this picture"},
		{"a human about them", "codex_exec/1", []string{"# AGENTS.md instructions for the tests are outdated"}, "# AGENTS.md instructions for the tests are outdated"},
		{"documents", "curl/8", []string{"### Task:\nRespond to the user query using the provided context, citing.\n### Output:\nx\n<context>\n<source>a </context> b</source>\n</context>\nwho is Ines?"}, "who is Ines?"},
		{"a preamble without an end", "curl/8", []string{"### Task:\nRespond to the user query using the provided context"}, "### Task:\nRespond to the user query using the provided context"},
		{"what a tool has read", "curl/8", []string{"Attached media from tool result:"}, ""},
		{"the same of another", "curl/8", []string{"Attached image(s) from tool result:\n", "and this?"}, "and this?"},
		{"a human about that", "opencode/1", []string{"Attached media from tool result: what does it mean?"}, "Attached media from tool result: what does it mean?"},
		{"going on by itself", "opencode/1", []string{"Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed."}, ""},
		{"the same after large files", "opencode/1", []string{"The previous request exceeded the provider's size limit due to large media attachments. The conversation was compacted.\n\nContinue if you have next steps, or stop and ask for clarification if you are unsure how to proceed."}, ""},
		{"a human who goes on", "opencode/1", []string{"Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed. Then commit."}, "Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed. Then commit."},
		{"everything of an unknown client", "curl/8", []string{"[Request interrupted by user] is what it says"}, "[Request interrupted by user] is what it says"},
	} {
		h := http.Header{"User-Agent": {tt.agent}}
		if got := New(DefaultConfig(), nil).Profile(h, nil).Human(tt.texts); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestHumanOfManyParts checks that reading a message takes no more memory for
// each of its parts than the part is long.
func TestHumanOfManyParts(t *testing.T) {
	p := &Profile{}
	p.Preambles = []Preamble{{Begins: "# Editor", Ends: "# Asked:"}}
	texts := make([]string, 500)
	for i := range texts {
		texts[i] = "# Editor\na.go\n# Asked: hi"
	}
	if got := p.Human(texts); strings.Contains(got, "a.go") {
		t.Errorf("got %q", got)
	}
	if texts[0] != "# Editor\na.go\n# Asked: hi" {
		t.Errorf("the parts were changed: %q", texts[0])
	}
	if n := testing.AllocsPerRun(5, func() { p.Human(texts) }); n > 100 {
		t.Errorf("%v allocations", n)
	}
}
