package mem0

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/identity"
)

// nodeModules returns the directory that has the npm packages. Without it a test
// is skipped, and fails where everything is to be tested.
func nodeModules(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("REMORA_NODE_MODULES")
	if dir == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("REMORA_NODE_MODULES does not name a directory with node_modules")
		}
		t.Skipf("REMORA_NODE_MODULES does not name a directory in which `npm install %s` was run", name)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", filepath.FromSlash(name), "package.json")); err != nil {
		t.Fatalf("REMORA_NODE_MODULES: %s is not there", name)
	}
	return dir
}

// serve serves the face as the program does, below /compat/mem0.
func (in *installation) serve() string {
	s := httptest.NewServer(http.StripPrefix("/compat/mem0", in.handler))
	in.t.Cleanup(s.Close)
	return s.URL + "/compat/mem0"
}

// node returns a command with nothing of the environment but what it needs.
func node(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "node", args...)
	home := t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "MEM0_DIR=" + home, "MEM0_TELEMETRY=false", "NO_COLOR=1"}
	return cmd
}

func TestNPMClient(t *testing.T) {
	modules := nodeModules(t, "mem0ai")
	in := start(t, identity.TenantAuto)
	cmd := node(t, filepath.Join("testdata", "client.mjs"))
	cmd.Env = append(cmd.Env, "REMORA_NODE_MODULES="+modules, "REMORA_HOST="+in.serve(), "REMORA_KEY="+adminToken)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.HasSuffix(strings.TrimSpace(string(out)), "deleteUsers") {
		t.Errorf("output:\n%s", out)
	}
}

// The mem0 command, of the npm package @mem0/cli.
func TestCLI(t *testing.T) {
	modules := nodeModules(t, "@mem0/cli")
	in := start(t, identity.TenantAuto)
	url := in.serve()
	program := filepath.Join(modules, "node_modules", "@mem0", "cli", "dist", "index.js")
	try := func(args ...string) (string, error) {
		cmd := node(t, append([]string{"--require", "./testdata/unref.cjs", program}, args...)...)
		cmd.Env = append(cmd.Env, "MEM0_API_KEY="+adminToken, "MEM0_BASE_URL="+url)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := try(args...)
		if err != nil {
			t.Fatalf("mem0 %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	// data runs a command as agents do and returns what it found.
	data := func(args ...string) any {
		t.Helper()
		out := run(append([]string{"--json"}, args...)...)
		var envelope struct {
			Status string `json:"status"`
			Data   any    `json:"data"`
		}
		if err := json.Unmarshal([]byte(out), &envelope); err != nil || envelope.Status != "success" {
			t.Fatalf("mem0 %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return envelope.Data
	}
	rows := func(v any) []obj { return results(obj{"results": v}) }

	if out := run("status"); !strings.Contains(strings.ToLower(out), "connected") {
		t.Errorf("status: %s", out)
	}
	event := rows(data("add", "Remember that my boat is called Marbella.", "--user-id", "alice", "--metadata", `{"source":"cli"}`))[0]["event_id"].(string)
	in.settled(adminToken, event)
	if e := data("event", "status", event).(obj); e["status"] != statusSucceeded {
		t.Errorf("event: %v", e)
	}
	if l := rows(data("event", "list")); len(l) != 1 || l[0]["id"] != event {
		t.Errorf("events: %v", l)
	}
	run("add", "The shed is blue.", "--user-id", "alice", "--no-infer")
	found := rows(data("search", "boat", "--user-id", "alice"))
	if len(found) != 1 || found[0]["memory"] != "my boat is called Marbella." {
		t.Fatalf("found: %v", found)
	}
	id := found[0]["id"].(string)
	if out := run("search", "boat", "-u", "alice", "--output", "table"); !strings.Contains(out, "Marbella") {
		t.Errorf("table: %s", out)
	}
	if l := rows(data("list", "--user-id", "alice", "--after", "2020-01-01", "--page-size", "50")); len(l) != 2 {
		t.Errorf("listed: %v", l)
	}
	if l := rows(data("list", "--user-id", "alice", "--category", "remember")); len(l) != 1 {
		t.Errorf("of a category: %v", l)
	}
	if m := data("get", id).(obj); m["memory"] != "my boat is called Marbella." {
		t.Errorf("got: %v", m)
	}
	run("update", id, "My boat is called Argo.", "--metadata", `{"source":"terminal"}`)
	if out := run("get", id); !strings.Contains(out, "Argo") || !strings.Contains(out, "terminal") {
		t.Errorf("updated: %s", out)
	}
	if out := run("list", "--user-id", "alice"); !strings.Contains(out, "Argo") || !strings.Contains(out, "shed") {
		t.Errorf("table: %s", out)
	}
	if out, err := try("update", id, "x", "--expires", "2099-01-01"); err == nil || !strings.Contains(out, "expiration_date: is not supported") {
		t.Errorf("an expiry: %v %s", err, out)
	}
	if l := rows(data("entity", "list", "users")); len(l) != 1 || l[0]["name"] != "alice" {
		t.Errorf("users: %v", l)
	}
	if l := rows(data("entity", "list", "runs")); len(l) != 0 {
		t.Errorf("runs: %v", l)
	}
	run("delete", id, "--force")
	if out, err := try("get", id); err == nil || !strings.Contains(strings.ToLower(out), "not found") {
		t.Errorf("deleted: %v %s", err, out)
	}
	file := filepath.Join(t.TempDir(), "memories.json")
	if err := os.WriteFile(file, []byte(`[{"memory":"The mill has two wheels.","user_id":"bob"},{"memory":"The pond has a heron.","user_id":"bob"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	run("import", file)
	run("delete", "--all", "--force", "--user-id", "alice")
	run("entity", "delete", "--user-id", "alice", "--force")
	if got := strings.Join(in.entityNames(), ","); got != "user bob" {
		t.Errorf("entities: %s", got)
	}
	run("delete", "--all", "--project", "--force")
	for _, e := range results(in.as(adminToken, "POST", "/v3/memories/", obj{"filters": obj{"user_id": "*"}})) {
		t.Errorf("left: %v", e)
	}
	if out, err := try("list", "--user-id", "alice", "--api-key", "m0-nobody-at-all-77"); err == nil || !strings.Contains(out, "API key") {
		t.Errorf("with a wrong key: %v %s", err, out)
	}
}
