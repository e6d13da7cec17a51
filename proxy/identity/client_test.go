package identity

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/proxytest"
)

func TestKnownClientsAreValid(t *testing.T) {
	var strict []Client
	d := json.NewDecoder(strings.NewReader(string(clientsJSON)))
	d.DisallowUnknownFields()
	if err := d.Decode(&strict); err != nil {
		t.Fatal(err)
	}
	if err := ValidateClients(knownClients()); err != nil {
		t.Error(err)
	}
}

const claudeIDs = `{"device_id":"dev-1","account_uuid":"acc-1","session_id":"ses-1"}`

// What the clients really send, and what is read out of it.
func TestClientsAreRecognised(t *testing.T) {
	codexMeta := `{"installation_id":"inst-1","session_id":"s","request_kind":"KIND"}`
	tests := []struct {
		name                        string
		header                      []string
		req                         dialect.Request
		body                        string // of a chat completion, in place of req
		client                      string
		conversation, user, install string
		sub, side                   bool
	}{
		{name: "Codex", client: "codex", conversation: "th-1", install: "inst-1",
			header: []string{"Originator", "codex_exec", "User-Agent", "codex_exec/0.169.0", "Thread-Id", "th-1", "X-Codex-Turn-Metadata", strings.Replace(codexMeta, "KIND", "turn", 1)},
			req:    dialect.Request{CacheKey: "pck-1"}},
		{name: "Codex without headers of its own but one", client: "codex", conversation: "pck-1",
			header: []string{"Originator", "Codex Desktop"}, req: dialect.Request{CacheKey: "pck-1"}},
		{name: "Codex warming up", client: "codex", side: true, conversation: "th-1", install: "inst-1",
			header: []string{"Originator", "codex_exec", "Thread-Id", "th-1", "X-Codex-Turn-Metadata", strings.Replace(codexMeta, "KIND", "prewarm", 1)}},
		{name: "Codex sub-agent", client: "codex", sub: true,
			header: []string{"Originator", "codex_exec", "X-OpenAI-Subagent", "collab_spawn"}},
		{name: "Codex compaction", client: "codex", sub: true, side: true,
			header: []string{"Originator", "codex_exec", "X-OpenAI-Subagent", "compact"}},
		{name: "Codex sub-agent, said twice", client: "codex", sub: true,
			header: []string{"Originator", "codex_exec", "X-OpenAI-Subagent", "collab_spawn", "X-OpenAI-Subagent", "collab_spawn"}},
		{name: "Codex compaction, said twice", client: "codex", sub: true, side: true,
			header: []string{"Originator", "codex_exec", "X-OpenAI-Subagent", "", "X-OpenAI-Subagent", "compact"}},
		{name: "Codex warming up, said twice", client: "codex", side: true,
			header: []string{"Originator", "codex_exec", "X-Codex-Turn-Metadata", strings.Replace(codexMeta, "KIND", "turn", 1), "X-Codex-Turn-Metadata", strings.Replace(codexMeta, "KIND", "prewarm", 1)}},
		{name: "Claude Code", client: "claude-code", conversation: "ses-0", user: "acc-1", install: "dev-1",
			header: []string{"X-Claude-Code-Session-Id", "ses-0", "User-Agent", "claude-cli/2.1.197 (external, sdk-cli)"},
			req:    dialect.Request{MetadataUser: claudeIDs}},
		{name: "Claude Code by its ids alone", client: "claude-code", conversation: "ses-1", user: "acc-1", install: "dev-1",
			header: []string{"User-Agent", "claude-cli/1.0"}, req: dialect.Request{MetadataUser: claudeIDs}},
		{name: "Claude Code without an account", client: "claude-code", conversation: "s", install: "d",
			header: []string{"User-Agent", "claude-cli/1.0"}, req: dialect.Request{MetadataUser: `{"device_id":"d","account_uuid":"","session_id":"s"}`}},
		{name: "Claude Code sub-agent", client: "claude-code", sub: true,
			header: []string{"User-Agent", "claude-cli/1.0", "X-Claude-Code-Agent-Id", "agent-7"}},
		{name: "OpenCode", client: "opencode", conversation: "ses_1",
			header: []string{"User-Agent", "opencode/1.18.33 ai-sdk", "X-Session-Id", "ses_1"}},
		{name: "OpenCode sub-agent", client: "opencode", conversation: "ses_2", sub: true,
			header: []string{"User-Agent", "opencode/1.18.33", "X-Session-Id", "ses_2", "X-Parent-Session-Id", "ses_1"}},
		{name: "OpenCode title", client: "opencode", side: true, header: []string{"User-Agent", "opencode/1.18.33"},
			body: proxytest.ChatBody("system: You are a title generator. You output ONLY a thread title.", "user: Generate a title for this conversation:\n", `user: "hi"`)},
		{name: "Qwen Code", client: "qwen-code", header: []string{"User-Agent", "QwenCode/0.15.10 (linux; x64)"},
			body: proxytest.ChatBody("system: You are Qwen Code", "user: hello")},
		{name: "Qwen Code memory extraction", client: "qwen-code", side: true, header: []string{"User-Agent", "QwenCode/0.15.10 (linux; x64)"},
			body: proxytest.ChatBody("system: You are now acting as the managed memory extraction subagent for an AI coding assistant.", "user: hello")},
		{name: "pi", client: "pi", conversation: "s-1", header: []string{"User-Agent", "OpenAI/JS 6.26.0", "Session_id", "s-1"},
			body: proxytest.ChatBody("system: You are an expert coding assistant operating inside pi, a coding agent harness.", "user: hello")},
		{name: "any program of the same SDK", header: []string{"User-Agent", "OpenAI/JS 6.26.0"},
			req: dialect.Request{CacheKey: "for-the-whole-app", MetadataUser: claudeIDs}},
		{name: "Open WebUI title", client: "open-webui", conversation: "c", side: true, header: []string{"X-OpenWebUI-Chat-Id", "c"},
			body: proxytest.ChatBody("user: ### Task:\nGenerate a concise, 3-5 word title with an emoji\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>")},
		{name: "Open WebUI tags, without its headers", side: true, body: proxytest.ChatBody("user: ### Task:\nGenerate 1-3 broad tags categorizing the main themes\n<chat_history>\n</chat_history>")},
		{name: "a person's own task", body: proxytest.ChatBody("user: ### Task:\nwrite a poem about titles")},
		{name: "a header that stands twice is no id", client: "codex", header: []string{"Originator", "codex", "Thread-Id", "a", "Thread-Id", "b"}},
	}
	table := New(DefaultConfig(), nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := &tt.req
			if tt.body == "" {
				tt.body = proxytest.ChatBody("user: hello")
			}
			parsed, err := dialect.Chat{}.Parse([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			parsed.CacheKey, parsed.MetadataUser = req.CacheKey, req.MetadataUser
			req = parsed
			h := http.Header{}
			for i := 0; i < len(tt.header); i += 2 {
				h.Add(tt.header[i], tt.header[i+1])
			}
			c := table.Profile(h, req)
			if c.Name != tt.client {
				t.Fatalf("client: got %q, want %q", c.Name, tt.client)
			}
			for _, id := range []struct{ what, got, want string }{
				{"conversation", c.conversation.first(h, req), tt.conversation},
				{"user", c.user.first(h, req), tt.user},
				{"installation", c.installation.first(h, req), tt.install},
			} {
				if id.got != id.want {
					t.Errorf("%s: got %q, want %q", id.what, id.got, id.want)
				}
			}
			if got := c.IsSubAgent(h, req); got != tt.sub {
				t.Errorf("sub-agent: got %v, want %v", got, tt.sub)
			}
			if got := c.IsSide(h, req, c.Human(req.Texts(req.Turn))); got != tt.side {
				t.Errorf("side call: got %v, want %v", got, tt.side)
			}
		})
	}
}

func TestClientDirectory(t *testing.T) {
	table := New(DefaultConfig(), nil)
	for name, tt := range map[string]struct{ agent, body, want string }{
		"Codex":       {"codex_exec/1", proxytest.ChatBody("developer: You are a coding agent", "user: <environment_context>\n  <cwd>/home/ines/heron</cwd>\n  <shell>bash</shell>\n</environment_context>", "user: hi"), "/home/ines/heron"},
		"Claude Code": {"claude-cli/2", proxytest.ChatBody("system: # Environment\n - Primary working directory: /home/ines/heron\n - Platform: linux", "user: hi"), "/home/ines/heron"},
		"OpenCode":    {"opencode/1", proxytest.ChatBody("system: <env>\n  Working directory: /home/ines/heron\n</env>", "user: hi"), "/home/ines/heron"},
		"Qwen Code":   {"QwenCode/1", proxytest.ChatBody("system: You are", "user: This is the Qwen Code. We are setting up the context for our chat.\nI'm currently working in the directory: /home/ines/heron\n", "assistant: Got it.", "user: hi"), "/home/ines/heron"},
		"unknown":     {"curl/8", proxytest.ChatBody("system: Working directory: /x", "user: <cwd>/y</cwd>"), ""},
		"too long":    {"codex/1", proxytest.ChatBody("user: <cwd>/" + strings.Repeat("x", maxDirectory) + "</cwd>"), ""},
	} {
		req, err := dialect.Chat{}.Parse([]byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Profile(http.Header{"User-Agent": {tt.agent}}, req).directory(req); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestUserOfKnownClients(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	table := New(DefaultConfig(), nil)
	req := &dialect.Request{MetadataUser: claudeIDs}
	for name, tt := range map[string]struct {
		cfg   Config
		agent string
		want  string // "" = nobody
	}{
		"one person's machine, all clients alike": {Config{Tenant: TenantAuto, Anonymous: AnonymousAuto, Loopback: true}, "claude-cli/2", KeyHolderUser},
		"behind one key, the account":             {Config{Tenant: TenantKey, Anonymous: AnonymousOff}, "claude-cli/2", "acc-1"},
		"an object of ids of an unknown client":   {Config{Tenant: TenantKey, Anonymous: AnonymousOff}, "curl/8", "acc-1"},
	} {
		h := http.Header{"User-Agent": {tt.agent}, "Authorization": {"Bearer sk-a-real-key-0815x"}}
		got, ok, _ := New(tt.cfg, nil).Scope(secret, h, req, table.Profile(h, req))
		if !ok {
			got.User = ""
		}
		if got.User != tt.want {
			t.Errorf("%s: got %q, want %q", name, got.User, tt.want)
		}
	}
	h := http.Header{"User-Agent": {"claude-cli/2"}, "Authorization": {"Bearer sk-a-real-key-0815x"}}
	req = &dialect.Request{MetadataUser: `{"device_id":"d","account_uuid":"","session_id":"s"}`}
	got, ok, _ := New(Config{Tenant: TenantKey, Anonymous: AnonymousAuto}, nil).Scope(secret, h, req, table.Profile(h, req))
	if !ok || got.User != installationPrefix+"d" {
		t.Errorf("last resort: got %q, %v", got.User, ok)
	}
	if got, ok, _ := New(Config{Tenant: TenantKey, Anonymous: AnonymousOff}, nil).Scope(secret, h, req, table.Profile(h, req)); ok {
		t.Errorf("off is off: got %q", got.User)
	}
}

func TestConfiguredClients(t *testing.T) {
	own := []Client{
		{Name: "ours", Match: []Match{{Header: "x-app", Prefix: "ours/"}}, Conversation: []string{"header:X-Thread"}, Wrappers: []string{"crm"}},
		{Name: "codex", Match: []Match{{Header: "Originator", Prefix: "codex"}}}, // in the place of the known one
	}
	if err := ValidateClients(own); err != nil {
		t.Fatal(err)
	}
	table := New(DefaultConfig(), own)
	h := http.Header{"X-App": {"Ours/2"}, "X-Thread": {"t1"}}
	c := table.Profile(h, &dialect.Request{})
	if got := c.conversation.first(h, &dialect.Request{}); c.Name != "ours" || got != "t1" {
		t.Errorf("got %q of %q", got, c.Name)
	}
	if got := c.Human([]string{"<crm>record 7</crm> call Ines"}); got != "call Ines" {
		t.Errorf("got %q", got)
	}
	if table := New(DefaultConfig(), []Client{{Name: "*", Wrappers: []string{"crm"}}}); table.unknown.Human([]string{"<crm>7</crm><file>x</file> call"}) != "call" || len(table.unknown.side) == 0 {
		t.Error("a row for every client does not add to the known one")
	}
	if c := table.Profile(http.Header{"Originator": {"codex_exec"}}, nil); c.Name != "codex" || c.WebSocketFallback {
		t.Errorf("the known client was not replaced: %+v", c)
	}
	err := ValidateClients([]Client{
		{}, {Name: "a", Match: []Match{{}}, User: []string{"cookie:x"}, Side: []Side{{Source: "header:X"}, {Alone: true}, {System: "s", Whole: true}}, Harness: []Opening{{}}, Preambles: []Preamble{{Begins: "a"}}}, {Name: "a", Match: []Match{{Header: "X"}}},
	})
	for _, want := range []string{
		"clients[0].name:", "clients[0].match:", "clients[1].match[0].header:", "clients[1].user[0]:", "clients[1].side[0].values:", "clients[1].side[1]:", "clients[1].side[2].user:", "clients[1].harness[0].begins:", "clients[1].preambles[0]:", "clients[2].name: is used twice",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
