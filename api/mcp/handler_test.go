package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

// post sends one message of JSON-RPC and returns the answer.
func post(t *testing.T, url, body string, header map[string]string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, v := range header {
		r.Header.Set(name, v)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(said)
}

const listCall = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

func TestNoKey(t *testing.T) {
	url := serve(t, newService(t), Options{})
	for _, header := range []map[string]string{
		{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic " + adminToken}, {"X-Api-Key": "wrong"}, {"Cookie": adminToken},
	} {
		res, said := post(t, url, listCall, header)
		if res.StatusCode != http.StatusUnauthorized || res.Header.Get("Content-Type") != "application/problem+json" ||
			res.Header.Get("Www-Authenticate") != "Bearer" || !strings.Contains(said, "Key required") {
			t.Errorf("%v: %s %v %s", header, res.Status, res.Header, said)
		}
	}
	for _, header := range []map[string]string{
		{"Authorization": "Bearer " + adminToken}, {"Authorization": "token " + adminToken}, {"X-Api-Key": adminToken},
	} {
		if res, said := post(t, url, listCall, header); res.StatusCode != http.StatusOK || !strings.Contains(said, "search_memory") {
			t.Errorf("%v: %s %s", header, res.Status, said)
		}
	}
}

// TestProtocol speaks to the server as a client without an SDK does.
func TestProtocol(t *testing.T) {
	url := serve(t, newService(t), Options{Version: "1.2.3", Compat: []string{SetMemory}})
	key := map[string]string{"Authorization": "Bearer " + adminToken}
	with := func(name, v string) map[string]string {
		return map[string]string{"Authorization": key["Authorization"], name: v}
	}
	const initialize = `{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	for _, accept := range []string{"application/json, text/event-stream", "application/json", "*/*", ""} {
		res, said := post(t, url, initialize, with("Accept", accept))
		var answer struct {
			Result struct {
				ProtocolVersion, Instructions string
				ServerInfo                    struct{ Name, Version string }
				Capabilities                  map[string]any
			}
		}
		if err := json.Unmarshal([]byte(said), &answer); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("accept %q: %s %s", accept, res.Status, said)
		}
		r := answer.Result
		if r.ProtocolVersion != "2025-06-18" || r.ServerInfo.Name != "remora" || r.ServerInfo.Version != "1.2.3" || len(r.Capabilities) != 1 || r.Capabilities["tools"] == nil {
			t.Errorf("%+v", r)
		}
		if contains(t, r.Instructions, "search_memory", "add_memories", "View that directory"); res.Header.Get("Mcp-Session-Id") != "" {
			t.Error("there is a session")
		}
	}
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"context","arguments":"{}"}}`
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", ""} {
		header := with("Mcp-Protocol-Version", version)
		if version == "" {
			header = with("Mcp-Session-Id", "of-another-server")
		}
		res, said := post(t, url, call, header)
		if res.StatusCode != http.StatusOK || !strings.Contains(said, "Nothing is remembered") {
			t.Errorf("version %q: %s %s", version, res.Status, said)
		}
	}
	for _, tt := range []struct {
		body, want string
		status     int
	}{
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nothing"}}`, "unknown tool", 200},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", 202},
		{`{"jsonrpc":"2.0","id":4,"method":"ping"}`, `"result"`, 200},
		{`{`, "", 400},
		{strings.Repeat(" ", maxBody) + listCall, "", 413},
	} {
		res, said := post(t, url, tt.body, key)
		if res.StatusCode != tt.status || !strings.Contains(said, tt.want) {
			t.Errorf("%.80s: %s %s", tt.body, res.Status, said)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		r, _ := http.NewRequestWithContext(t.Context(), method, url, nil)
		r.Header.Set("Authorization", key["Authorization"])
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s", method, res.Status)
		}
	}
}

// TestTwoUsers checks that the user who is named by a header, by the address or by
// an argument reaches their own memory alone.
func TestTwoUsers(t *testing.T) {
	url := serve(t, newService(t), Options{Compat: Sets()})
	alice, bob := connect(t, url, "alice"), connect(t, url, "bob")
	byQuery := connect(t, url+"?user=alice", "")
	byArgument := connect(t, url, "")
	nobody := connect(t, url+"?app=elsewhere", "alice")
	var saved results
	alice.ok(&saved, "add_memory", `{"text":"I keep the spare key under the blue flowerpot.","metadata":{"room":"porch"}}`)
	id := saved.Results[0].ID
	alice.ok(nil, "memory", `{"command":"create","path":"/memories/a.md","file_text":"flowerpot"}`)
	alice.ok(nil, "create_entities", `{"entities":[{"name":"Flowerpot","entityType":"thing","observations":["is blue"]}]}`)
	reading := []string{
		`search_memories {"query":"flowerpot"}`, `get_memories {}`, `search_memory {"query":"flowerpot"}`, `list_memories {}`, `context {}`,
		`read_graph {}`, `search_nodes {"query":"flowerpot"}`, `open_nodes {"names":["Flowerpot"]}`, `search {"query":"flowerpot"}`,
		`fetch {"id":"` + id + `"}`, `get_memory {"memory_id":"` + id + `"}`, `memory {"command":"view","path":"/memories/a.md"}`,
		`list_entities {}`,
	}
	for _, line := range reading {
		name, arguments, _ := strings.Cut(line, " ")
		mine := func(c *client, arguments string) bool {
			said, failed := c.call(name, arguments)
			whose := strings.Contains(strings.ToLower(said), "flowerpot") || name == "list_entities" && strings.Contains(said, "alice")
			return !failed && whose
		}
		if !mine(alice, arguments) || !mine(byQuery, arguments) {
			t.Errorf("%s: alice does not see her own", line)
		}
		also := strings.Replace(arguments, "{", `{"user_id":"alice",`, 1)
		also = strings.Replace(also, ",}", "}", 1)
		if name != "list_entities" && !mine(byArgument, also) {
			t.Errorf("%s: by the argument nothing is seen", also)
		}
		for who, c := range map[string]*client{"bob": bob, "alice in another app": nobody} {
			if mine(c, arguments) {
				t.Errorf("%s: %s sees alice's", line, who)
			}
		}
		if mine(bob, also) {
			t.Errorf("%s: bob sees alice's by naming her", also)
		}
	}
	for _, line := range []string{
		`delete_memory {"memory_id":%q}`, `delete_memories {"memory_ids":[%q]}`, `update_memory {"memory_id":%q,"text":"Nothing."}`,
		`delete_all_memories {"user_id":"alice"}`, `delete_entities {"user_id":"alice"}`, `memory {"command":"delete","path":"/memories/a.md"}`,
		`memory {"command":"delete","path":"/memories/a.md","user_id":"alice"}`,
	} {
		name, arguments, _ := strings.Cut(line, " ")
		if strings.Contains(arguments, "%q") {
			arguments = fmt.Sprintf(arguments, id)
		}
		bob.fails(name, arguments)
	}
	bob.ok(nil, "delete_entities", `{"entityNames":["Flowerpot"]}`)
	bob.ok(nil, "delete_all_memories", `{}`)
	contains(t, alice.ok(nil, "search_memory", `{"query":"Where is the spare key?"}`), "blue flowerpot")
	contains(t, alice.ok(nil, "read_graph", ``), "is blue")
	contains(t, alice.ok(nil, "memory", `{"command":"view","path":"/memories/a.md"}`), "flowerpot")
}

// TestTwoKeys checks that each key of an upstream has a memory of its own, where
// that is so, and that a key under which nothing is remembered opens nothing.
func TestTwoKeys(t *testing.T) {
	who := identity.DefaultConfig()
	who.Tenant = "key"
	s, store := newServiceFor(t, who)
	secret, err := store.InstallSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const one, other = "sk-one-of-two-keys-0001", "sk-the-other-key-0002"
	admin := api.Principal{Admin: true}
	for key, said := range map[string]string{one: "I keep the key under the mat.", other: "I lost the key at sea."} {
		to := api.Target{Tenant: identity.New(who, nil).TenantOf(secret, key), User: "alice"}
		if _, err := s.Add(t.Context(), admin, to, api.Draft{Text: said}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	url := serve(t, s, Options{})
	call := func(key string) (status int, said string) {
		res, said := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_memories","arguments":{"user_id":"alice"}}}`,
			map[string]string{"Authorization": "Bearer " + key})
		return res.StatusCode, said
	}
	if status, said := call(one); status != http.StatusOK || !strings.Contains(said, "under the mat") || strings.Contains(said, "at sea") {
		t.Errorf("one: %d %s", status, said)
	}
	if status, said := call(other); status != http.StatusOK || strings.Contains(said, "under the mat") || !strings.Contains(said, "at sea") {
		t.Errorf("the other: %d %s", status, said)
	}
	if status, said := call("sk-a-third-key-0003"); status != http.StatusUnauthorized {
		t.Errorf("a third: %d %s", status, said)
	}
	if status, said := call(adminToken); status != http.StatusOK || !strings.Contains(said, "tenant: is required") {
		t.Errorf("the admin: %d %s", status, said)
	}
}

// TestStoreFails: a store that can't serve is an error of the tools.
func TestStoreFails(t *testing.T) {
	s, store := newServiceAndStore(t)
	c := connect(t, serve(t, s, Options{Compat: Sets()}), "alice")
	c.ok(nil, "add_memories", `{"text":"I like kilns."}`)
	store.Fail(true)
	for _, line := range []string{`get_memory {"memory_id":"x"}`, `list_memories {}`, `memory {"command":"view","path":"/memories"}`, `read_graph {}`} {
		name, arguments, _ := strings.Cut(line, " ")
		contains(t, c.fails(name, arguments), api.Detail(storage.ErrUnavailable))
	}
}

// panics is a Verbs whose every verb panics.
type panics struct{ Verbs }

func TestPanic(t *testing.T) {
	f := newFace(Options{Compat: Sets()})
	for name, tool := range f.tools {
		res := f.call(t.Context(), session{verbs: panics{}}, tool, json.RawMessage(
			`{"query":"x","text":"x","id":"x","ids":["x"],"memory_ids":["x"],"command":"view","path":"/memories","names":["x"],"user_id":"u",
			"entities":[{"name":"x","entityType":"y"}],"relations":[{"from":"x","to":"y","relationType":"z"}],"entityNames":["x"],
			"observations":[{"entityName":"x"}],"deletions":[{"entityName":"x"}]}`))
		if said := res.Content[0].(*sdk.TextContent).Text; !res.IsError || said != api.Detail(errPanic) {
			t.Errorf("%s: %q", name, said)
		}
	}
}

// waits is a Verbs that waits until its context ends.
type waits struct {
	Verbs
	began chan struct{}
}

func (w waits) Context(ctx context.Context, _ api.Target, _ api.ContextRequest) (api.Context, error) {
	close(w.began)
	<-ctx.Done()
	return api.Context{}, ctx.Err()
}

// TestGone checks that a call ends when nobody waits for it any more.
func TestGone(t *testing.T) {
	f := newFace(Options{})
	gone, cancel := context.WithCancel(t.Context())
	w := waits{began: make(chan struct{})}
	done := make(chan *sdk.CallToolResult)
	go func() {
		done <- f.call(context.WithoutCancel(gone), session{verbs: w, gone: gone}, f.tools["context"], nil)
	}()
	<-w.began
	cancel()
	select {
	case res := <-done:
		if !res.IsError {
			t.Error("no error")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the call goes on")
	}
}

func TestOptions(t *testing.T) {
	if err := (Options{Compat: Sets()}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (Options{Compat: []string{"mem0", "mem1"}}).Validate(); err == nil || !strings.HasPrefix(err.Error(), `"mem1" is no set of tools`) {
		t.Error(err)
	}
}
