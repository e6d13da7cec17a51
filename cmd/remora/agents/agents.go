// Package agents knows how agents and SDKs are pointed at Remora: by variables
// of the environment, by a file of theirs, or by an argument. The table is what
// `remora env`, `remora wrap`, `remora doctor` and the first start of a server
// print and use, and docs/agents.md is checked against it.
//
// No entry has a key. Keys stay where the agent has them.
package agents

import (
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// Agent is one row of the table. In the values of variables, in snippets and in
// arguments {base} stands for Remora's address as a URL, and {v1} for the same
// with /v1.
type Agent struct {
	Name     string   // as remora env takes it
	Title    string   // as docs/agents.md calls it
	Programs []string // names of its programs; none = it is a library or a server

	// Variables are what the agent reads from its environment.
	Variables []Variable
	// File is the configuration file into which Snippet goes, "" = none.
	File, Snippet string
	// Places are where File usually is; the home directory is ~.
	Places []string
	// URL returns where the text of File has requests go. Without it, File leads
	// to whatever address it mentions.
	URL func(text string) string

	// Inline and Arguments point one run of the agent at Remora, where Snippet
	// does so for all: variables, and arguments before all others. With neither
	// of them and without Variables it can't be wrapped.
	Inline    []Variable
	Arguments []string

	Note string // what else there is to do, "" = nothing
}

// Variable is a variable of the environment.
type Variable struct{ Name, Value string }

// ProxyVariables name the proxies that programs use.
var ProxyVariables = []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"}

// openCodeSnippet is a provider for OpenCode.
const openCodeSnippet = `{ "provider": { "mine": { "npm": "@ai-sdk/openai-compatible",
  "options": { "baseURL": "{v1}", "apiKey": "{env:OPENAI_API_KEY}" },
  "models": { "gpt-4o": { "tool_call": true } } } } }`

// openCodeInline has OpenCode's own providers go through Remora.
const openCodeInline = `{"provider":{"openai":{"options":{"baseURL":"{v1}"}},"anthropic":{"options":{"baseURL":"{v1}"}}}}`

const libreChatSnippet = `baseURL: "{v1}"
headers:
  X-Remora-User: "{{LIBRECHAT_USER_ID}}"
  X-Conversation-Id: "{{LIBRECHAT_BODY_CONVERSATIONID}}"`

// All returns the table. Its order is that of the documentation.
func All() []Agent {
	return []Agent{
		{Name: "codex", Title: "Codex", Programs: []string{"codex"}, File: "~/.codex/config.toml", Places: []string{"~/.codex/config.toml"}, Snippet: `openai_base_url = "{v1}"`,
			URL: codexURL, Arguments: []string{"-c", `openai_base_url="{v1}"`}, Note: "above its first [table]"},
		{Name: "claude", Title: "Claude Code", Programs: []string{"claude"}, Variables: []Variable{{"ANTHROPIC_BASE_URL", "{base}"}}},
		{Name: "opencode", Title: "OpenCode", Programs: []string{"opencode"}, File: "opencode.json", Snippet: openCodeSnippet,
			Places: []string{"opencode.json", "~/.config/opencode/opencode.json"}, Inline: []Variable{{"OPENCODE_CONFIG_CONTENT", openCodeInline}}},
		{Name: "qwen", Title: "Qwen Code", Programs: []string{"qwen"}, Variables: []Variable{{"OPENAI_BASE_URL", "{v1}"}}},
		{Name: "continue", Title: "Continue", Programs: []string{"cn"}, File: "config.yaml", Snippet: "provider: openai\napiBase: {v1}",
			Places: []string{"~/.continue/config.yaml"}, Note: "per model"},
		{Name: "pi", Title: "pi", Programs: []string{"pi"}, File: "~/.pi/agent/models.json", Snippet: `"baseUrl": "{v1}"`,
			Places: []string{"~/.pi/agent/models.json"}, Note: "per provider"},
		{Name: "gemini", Title: "Gemini CLI", Programs: []string{"gemini"}, Variables: []Variable{{"GOOGLE_GEMINI_BASE_URL", "{base}"}}},
		{Name: "aider", Title: "Aider", Programs: []string{"aider"}, Variables: []Variable{{"OPENAI_API_BASE", "{v1}"}}},
		{Name: "open-webui", Title: "Open WebUI", Variables: []Variable{{"ENABLE_FORWARD_USER_INFO_HEADERS", "true"}},
			Note: "in Admin Settings, Connections, OpenAI API: {v1}"},
		{Name: "librechat", Title: "LibreChat", File: "librechat.yaml", Snippet: libreChatSnippet, Note: "per custom endpoint"},
		{Name: "openai-sdk", Title: "openai (JavaScript, Python, Go)", Variables: []Variable{{"OPENAI_BASE_URL", "{v1}"}}},
		{Name: "anthropic-sdk", Title: "anthropic (JavaScript, Python, Go)", Variables: []Variable{{"ANTHROPIC_BASE_URL", "{base}"}}},
	}
}

// Names returns the names of all agents.
func Names() []string {
	var names []string
	for _, a := range All() {
		names = append(names, a.Name)
	}
	return names
}

// Named returns the agent of a name.
func Named(name string) (Agent, bool) {
	all := All()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return all[i], true
}

// Of returns the agent that a program belongs to, given by its name or path.
func Of(program string) (Agent, bool) {
	name := strings.ToLower(filepath.Base(program))
	for _, end := range [...]string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, end)
	}
	all := All()
	i := slices.IndexFunc(all, func(a Agent) bool { return slices.Contains(a.Programs, name) })
	if i < 0 {
		return Agent{}, false
	}
	return all[i], true
}

// Installed returns the agents one of whose programs look finds, as
// exec.LookPath does.
func Installed(look func(program string) (string, error)) []Agent {
	return slices.DeleteFunc(All(), func(a Agent) bool {
		return !slices.ContainsFunc(a.Programs, func(program string) bool {
			_, err := look(program)
			return err == nil
		})
	})
}

// Wrappable reports whether one run of the agent can be pointed at Remora.
func (a Agent) Wrappable() bool { return len(a.Variables)+len(a.Inline)+len(a.Arguments) > 0 }

// At returns the agent with the address filled in.
func (a Agent) At(base string) Agent {
	fill := strings.NewReplacer("{base}", base, "{v1}", base+"/v1").Replace
	filled := func(variables []Variable) []Variable {
		variables = slices.Clone(variables)
		for i := range variables {
			variables[i].Value = fill(variables[i].Value)
		}
		return variables
	}
	a.Variables, a.Inline, a.Arguments = filled(a.Variables), filled(a.Inline), slices.Clone(a.Arguments)
	for i := range a.Arguments {
		a.Arguments[i] = fill(a.Arguments[i])
	}
	a.Snippet, a.Note = fill(a.Snippet), fill(a.Note)
	return a
}

// Base returns the URL at which the clients of this machine reach a listener.
func Base(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	switch {
	case err != nil:
		return "", errors.New("listen: must be host:port")
	case port == "" || port == "0":
		return "", errors.New("listen: has no fixed port, so that nothing can be pointed at it; give it one")
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.Is6() && !ip.Is4In6() {
			host = "::1"
		}
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
