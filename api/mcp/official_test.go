package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// modulesVariable names the environment variable with the directory in which
// `npm install` was run for what the tests below need: @modelcontextprotocol/sdk
// and @modelcontextprotocol/inspector-cli.
const modulesVariable = "REMORA_NODE_MODULES"

// nodeModules returns where packages are installed, among them pkg. Without it,
// or without node, the test is skipped; in CI it fails.
func nodeModules(t *testing.T, pkg string) (node, modules string) {
	t.Helper()
	lacks := func(what string) {
		if os.Getenv("CI") == "true" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		lacks("node is not installed")
	}
	if modules = os.Getenv(modulesVariable); modules == "" {
		lacks(modulesVariable + " does not name a directory in which `npm install " + pkg + "` was run")
	}
	if filepath.Base(modules) != "node_modules" {
		modules = filepath.Join(modules, "node_modules")
	}
	if _, err := os.Stat(filepath.Join(modules, filepath.FromSlash(pkg), "package.json")); err != nil {
		lacks(pkg + " is not in the directory that " + modulesVariable + " names")
	}
	return node, modules
}

// TestOfficialClient has the official SDK for TypeScript list the tools, save a
// memory and find it over another connection. It checks what it gets against
// the schemas of the tools.
func TestOfficialClient(t *testing.T) {
	node, modules := nodeModules(t, "@modelcontextprotocol/sdk")
	url := serve(t, newService(t), Options{Version: "1.2.3", Compat: []string{SetSearch, SetMemory}})
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "client.mjs"), modules, url, adminToken, "alice")
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &failure)
	}
	said := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var line struct {
			What  string
			Value json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		said[line.What] = string(line.Value)
	}
	for what, parts := range map[string][]string{
		"server":  {`"name":"remora"`, `"version":"1.2.3"`, "search_memory"},
		"tools":   {`"search_memory"`, `"add_memories"`, `"context"`, `"fetch"`, `"memory"`},
		"saved":   {"Saved: My favourite mountain is the Säntis.", `"structuredContent":{"results":[{`, `"event":"added"`},
		"failed":  {`"isError":true`, noSuch},
		"found":   {"My favourite mountain is the Säntis.", `"score":`},
		"context": {"Säntis"}, "list_memories": {"Säntis"}, "delete_all_memories": {"Deleted 1 memory"}, "search_memory": {"Nothing is remembered"},
		"refused": {"401"},
	} {
		contains(t, said[what], parts...)
	}
}

// TestOfficialInspector has the command line of the official inspector list the
// tools and call one.
func TestOfficialInspector(t *testing.T) {
	node, modules := nodeModules(t, "@modelcontextprotocol/inspector-cli")
	url := serve(t, newService(t), Options{Compat: Sets()})
	cli := inspector(t, modules)
	inspect := func(args ...string) string {
		t.Helper()
		key := "Authorization: Bearer " + adminToken
		args = append([]string{cli, "--cli", url, "--transport", "http", "--header", key, "--method"}, args...)
		cmd := exec.CommandContext(t.Context(), node, args...)
		var failure bytes.Buffer
		cmd.Stderr = &failure
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, &failure)
		}
		return string(out)
	}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(inspect("tools/list")), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	for _, tool := range toolsOf(Sets()) {
		if !slices.Contains(names, tool.name) {
			t.Errorf("%s is not listed among %s", tool.name, strings.Join(names, ", "))
		}
	}
	contains(t, inspect("tools/call", "--tool-name", "add_memory", "--tool-arg", "text=The kettle is red."), "The kettle is red.")
	contains(t, inspect("tools/call", "--tool-name", "search_memory", "--tool-arg", "query=kettle"), "The kettle is red.")
}

// inspector returns the command line of the inspector, laid out as in the
// package that it is a part of: alone it does not find its version.
func inspector(t *testing.T, modules string) string {
	t.Helper()
	dir := t.TempDir()
	build := filepath.Join(dir, "cli", "build")
	err := os.CopyFS(build, os.DirFS(filepath.Join(modules, "@modelcontextprotocol", "inspector-cli", "build")))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name":"inspector","version":"1.0.3","type":"module"}`), 0o600)
	}
	if err == nil {
		modules, err = filepath.Abs(modules)
	}
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(build, "cli.js")
}
