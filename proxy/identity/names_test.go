package identity

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/storage"
)

// scopeOf resolves a request with a key of its own off loopback.
func scopeOf(t *testing.T, h http.Header, req *dialect.Request) (storage.Scope, bool, Unusable) {
	t.Helper()
	r := New(DefaultConfig(), nil)
	h.Set("Authorization", "Bearer sk-a-real-key-0815x")
	return r.Scope([]byte("secret"), h, req, r.Profile(h, req))
}

// Two names are one person only if all of their bytes are equal.
func TestNamesAreBytes(t *testing.T) {
	long := strings.Repeat("x", 600)
	hashed, _ := nameOf(long)
	names := []string{
		"ann", "Ann", "ann ", " ann", "ann\u00a0", "\u2003ann", "ann\u200b", "a\u0308nn", "\u00e4nn", long, long + "x", strings.TrimPrefix(hashed, "\x00"),
		"sha256:00", "installation:d", "key-holder", "default", "ann\u2028", "\ufeffann",
	}
	users := map[string]string{}
	for _, name := range names {
		for where, req := range map[string]*dialect.Request{"body": {User: name}, "metadata": {MetadataUser: name}} {
			s, ok, bad := scopeOf(t, http.Header{}, req)
			if !ok {
				t.Errorf("%s: %.20q is nobody: %+v", where, name, bad)
				continue
			}
			if other, there := users[s.User]; there && other != name {
				t.Errorf("%.20q and %.20q are one", name, other)
			}
			users[s.User] = name
			if err := s.Validate(); err != nil {
				t.Error(err)
			}
		}
	}
	client := http.Header{"User-Agent": {"claude-cli/2"}}
	s, ok, _ := scopeOf(t, client, &dialect.Request{MetadataUser: `{"device_id":"d","account_uuid":"","session_id":"s"}`})
	if other, there := users[s.User]; !ok || there {
		t.Errorf("an installation is %q, as is %q", s.User, other)
	}
}

// What can't be a name is nobody's, and it is said where it was and why. The
// same holds of what a decoder makes of a broken body.
func TestUnusableNames(t *testing.T) {
	for _, name := range []string{
		"{{LIBRECHAT_USER_ID}}", "{{ user.id }}", "undefined", "null", "None", "NULL", "nil", "NaN", "[object Object]", "[object Promise]", "${USER_ID}", "$USER_ID", "#{user.id}", "{user_id}",
		"<user_id>", "<YOUR_USER_ID>", "%USER%", "%s", "%!s(<nil>)", "%(user)s", "{% user %}", "<%= user %>", "__USER_ID__", ":user_id", "[USER]", `"undefined"`, "'null'", "(null)", "<nil>",
		"user-{{id}}", "tenant/${USER}", "anonymous", "Guest", "unknown", "user_id", "your-user-id", "Optional.empty", "<app.User object at 0x7f>", "$(whoami)", "n/a",
	} {
		for where, h := range map[string]http.Header{HeaderUser: {}, "X-Openwebui-User-Id": {}, "body": {}, HeaderApp: {}, HeaderProject: {}} {
			req := &dialect.Request{User: "ann"}
			if where == "body" {
				req.User = name
			} else {
				h[where] = []string{name}
			}
			cfg := DefaultConfig()
			cfg.Loopback = true // also where the holder of the key would be the user
			for _, r := range []*Resolver{New(DefaultConfig(), nil), New(cfg, nil)} {
				h.Set("Authorization", "Bearer sk-a-real-key-0815x")
				source := where
				if where == "X-Openwebui-User-Id" {
					h["X-OpenWebUI-User-Id"], source = h[where], http.CanonicalHeaderKey(where)
				}
				if s, ok, bad := r.Scope([]byte("secret"), h, req, &Profile{}); ok || bad != (Unusable{source, whyPlaceholder}) {
					t.Errorf("%s %q: got %+v, %v, %+v", where, name, s, ok, bad)
				}
			}
		}
	}
	for _, body := range []string{`"a\u0000b"`, `"\ud800"`, `"x\udc00"`, "\"a\xff\"", `"a\nb"`, `"\u007f"`} {
		req, err := dialect.Chat{}.Parse([]byte(`{"model":"m","user":` + body + `,"messages":[{"role":"user","content":"q"}]}`))
		if err != nil {
			continue // it is not even read
		}
		if s, ok, bad := scopeOf(t, http.Header{}, req); ok || bad != (Unusable{"body", whyControl}) {
			t.Errorf("%s: got %+v, %v, %+v", body, s, ok, bad)
		}
	}
	if _, ok, bad := scopeOf(t, http.Header{HeaderUser: {"J\xf6rg"}}, &dialect.Request{}); ok || bad != (Unusable{HeaderUser, whyControl}) {
		t.Errorf("Latin-1: got %v, %+v", ok, bad)
	}
}

// These are names, although they look like something else.
func TestUsableNames(t *testing.T) {
	for _, name := range []string{
		"ann@example.com", "Ann <ann@example.com>", "7", "null-island@example.com", "guest42", "auth0|5f7c8ec7c33c6c004bbafe82", "org:team:ann", "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66",
		"none.smith", "o'neil", "$ann", "100%", "_ann_", "sessions-team", "张伟", "José", "ann [ops]", "cn=ann,dc=example", "arn:aws:iam::123456789012:user/ann", "user", "admin", "test", "runner:7", "chat_user_5", "session_manager", "my_session_manager",
	} {
		s, ok, bad := scopeOf(t, http.Header{}, &dialect.Request{User: name})
		if !ok && name != "$ann" || ok && s.User != name {
			t.Errorf("%q: got %q, %v, %+v", name, s.User, ok, bad)
		}
	}
}

// Ids of several parts are known by their shape, whichever client sends them: a
// session never splits a person.
func TestCompositeUsers(t *testing.T) {
	device := strings.Repeat("ab", 32)
	object := func(members map[string]string) string {
		b, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for what, test := range map[string]struct {
		value func(session string) string
		want  string // "" = nobody
	}{
		"joined":               {func(s string) string { return "user_" + device + "_account_acc-1_session_" + s }, "acc-1"},
		"joined, no account":   {func(s string) string { return "user_" + device + "_account__session_" + s }, installationPrefix + device},
		"object":               {func(s string) string { return object(map[string]string{"account_uuid": "acc-1", "session_id": s}) }, "acc-1"},
		"object with a user":   {func(s string) string { return object(map[string]string{"user_id": "ann", "session_id": s}) }, "ann"},
		"object with a device": {func(s string) string { return object(map[string]string{"device_id": device, "session_id": s}) }, installationPrefix + device},
		"object of a session":  {func(s string) string { return object(map[string]string{"session_id": s}) }, ""},
		"other form":           {func(s string) string { return "user:7|session:" + s }, ""},
		"infix":                {func(s string) string { return "user_7_session_" + s + "-5f3a-4111-8111" }, ""},
		"query":                {func(s string) string { return "u=7&session_id=" + s }, ""},
	} {
		for _, agent := range []string{"node", "claude-cli/2", "python-httpx/0.28"} {
			var users []string
			for _, session := range []string{"1111", "2222"} {
				for _, req := range []*dialect.Request{{MetadataUser: test.value(session)}, {User: test.value(session)}} {
					s, ok, _ := scopeOf(t, http.Header{"User-Agent": {agent}}, req)
					if !ok {
						s.User = ""
					}
					users = append(users, s.User)
				}
			}
			for _, user := range users {
				if user != test.want && !(agent == "claude-cli/2" && user == "") {
					t.Errorf("%s, %s: got %q, want %q", what, agent, users, test.want)
					break
				}
			}
		}
	}
}

func TestDummyKeys(t *testing.T) {
	for _, key := range []string{
		"", "Empty", "EMPTY", "OLLAMA", "ollama", "sk-1234", "sk-12345678", "placeholder", "PLACEHOLDER", "dummy", "Dummy-Key", "sk-dummy", "test", "Test-Key", "sk-test", "none", "None", "NULL", "undefined", "x", "xxx",
		"sk-xxxxxxxxxxxxxxxx", "sk-...", "***", "not-needed", "not_needed", "notneeded", "no-key-required", "sk-no-key-required", "no_key", "lm-studio", "LM Studio", "lmstudio", "vllm", "local", "localhost", "sk-local",
		"your-api-key", "YOUR_API_KEY", "your_api_key_here", "<your-api-key>", "${OPENAI_API_KEY}", "{{OPENAI_API_KEY}}", "$OPENAI_API_KEY", "changeme", "change-me", "fake", "fake-key", "sk-fake", "anything", "any", "unused", "ignored",
		"api-key", "apikey", "secret", "token", "password", "key", "foo", "foobar", "abc123", "123456789", "0000000000", "987654321", "abcdefghij", "default", "llama.cpp", "llamacpp", "litellm", "sk-placeholder-key", "example-key", "insert-key-here", "aaaaaaaaaaaa", "my-key", "NA",
	} {
		if !dummyKey(key, nil) {
			t.Errorf("%q identifies somebody", key)
		}
	}
	for _, key := range []string{
		"sk-proj-9fJ2kLm4nP7qR1sT", "sk-ant-api03-Zx81-kk2", "AIzaSyD4e5f6g7h8i9", "gsk_8hG7fD6sA5pO", "6e8bc430-9c3a-11d9-9669-0800200c9a66", "d41d8cd98f00b204e9800998ecf8427e", "hf_QwErTyUiOp", "team-blue-4711x", "vllm-secret-of-blue",
		"eyJhbGciOiJIUzI1NiJ9.e30.abc", "correcthorsebatterystaple",
	} {
		if dummyKey(key, nil) {
			t.Errorf("%q identifies nobody", key)
		}
	}
	if !dummyKey("Our-Shared-Key", map[string]bool{"oursharedkey": true}) {
		t.Error("a configured one identifies somebody")
	}
}
