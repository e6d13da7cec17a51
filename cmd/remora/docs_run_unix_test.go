//go:build unix

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestGettingStarted runs the commands of docs/getting-started.md as they are.
// It ends with a recalled memory, a receipt and a trace.
func TestGettingStarted(t *testing.T) {
	run := runDocs(t, "docs/getting-started.md", func(b docsBlock) bool { return b.fence == "sh" })
	const asked = "What should I cook when Ines visits?"
	run.wants("the first turn is listed", `  user  I.* allergic to peanuts`)
	run.wants("a memory was inserted", `X-Remora-Status: injected`)
	run.wants("the model was given it", `remora-memory.*allergic to peanuts.*`+regexp.QuoteMeta(asked))
	run.wants("the receipt shows the inserted bytes", `inserted, [0-9]+ bytes`)
	run.wants("the memory was forgotten and brought back", `(?s)forg[^\n]*\n.*(?:again|back|current|undone)`)
	run.wants("a search was traced", `(?m)^"Name":"search_memory"$`)
	run.wants("the exchange was traced", `(?m)^"Name":"chat gpt-4o-mini"$`)
	spans, err := os.ReadFile(filepath.Join(run.dir, "spans.json"))
	if err != nil {
		t.Fatal(err)
	}
	for decode := json.NewDecoder(bytes.NewReader(spans)); decode.More(); {
		var span struct{ Name string }
		if err := decode.Decode(&span); err != nil || span.Name == "" {
			t.Fatalf("spans.json is no series of spans: %v", err)
		}
	}
	if bytes.Contains(spans, []byte("peanuts")) {
		t.Error("a span quotes what was said")
	}
}

// TestReadme runs the commands of the README's quick start and of its section
// about correcting memories as they are, with programs in place of Docker, of
// agents and of a browser that only note that they were called.
func TestReadme(t *testing.T) {
	sections := []string{"Try it in 60 seconds", "See and correct what is remembered"}
	run := runDocs(t, "README.md", func(b docsBlock) bool {
		return strings.Contains(strings.Join(sections, "\n"), b.section) && b.section != ""
	})
	run.wants("the snippet prints both answers, and the second was given the memory",
		`(?s)seen: I'm allergic to peanuts[^\n]*\n.*seen: <remora-memory.*allergic to peanuts.*What should I cook when Ines visits\?`)
	run.wants("the page was opened", `called: (?:xdg-)?open http://127\.0\.0\.1:\d+/login`)
	run.wants("the agents were started", `(?s)called: qwen.*called: claude`)
	run.wants("a memory is listed", `  user  I.* allergic to peanuts`)
	run.wants("REST answers with memories", `"text":\s*"I am allergic to peanuts`)
	run.wants("REST answers with a receipt", `"status":\s*"injected"`)
	run.wants("the container was built and started", `(?s)called: docker build -t remora \..*called: docker run`)
	exported, err := os.ReadFile(filepath.Join(run.dir, "memories.jsonl"))
	if err != nil || !bytes.Contains(exported, []byte("peanuts")) {
		t.Errorf("the export has no memory: %v", err)
	}
}

// docsRun is what the commands of a page did.
type docsRun struct {
	t   *testing.T
	dir string
	out string
}

func (r docsRun) wants(what, pattern string) {
	r.t.Helper()
	if !regexp.MustCompile(pattern).MatchString(r.out) {
		r.t.Errorf("%s: nothing matches %s", what, pattern)
	}
}

// docsPrelude is run before the commands of a page. Every failure ends the run,
// that of a command before a pipe, too. The functions find what the pages call
// ID: the first memory, also once it is forgotten, and the newest exchange.
const docsPrelude = `set -euo pipefail
trap 'code=$?; trap - EXIT; kill $(jobs -p) 2>/dev/null || true; wait || true; exit $code' EXIT
id_of() { awk -F '"id":"' 'NR == 1 { split($2, id, "\""); print id[1] }'; }
memory() { [ -s ~/first ] || ./remora list --json --kind episode | id_of >~/first; cat ~/first; }
exchange() { ./remora exchanges --limit 1 --json | id_of; }
`

// docsCalls is the file in which programs note that they were called. What a
// browser prints is not seen.
const docsCalls = "calls"

// docsPlaceholder is an id in a command of a page.
var docsPlaceholder = regexp.MustCompile(`\bID\b`)

// docsLonger are waits of the pages that may be too short on a busy machine:
// for a turn to become a memory, and for a server to answer.
var docsLonger = strings.NewReplacer(
	"sleep 1\n", "sleep 3\n", "time.sleep(1)", "time.sleep(3)", "--retry 10", "--retry 60",
)

// runDocs runs the chosen blocks of a page in one shell: in a directory of
// their own, with an empty home and a fake model. Only addresses, waits and the
// word ID are replaced in the commands.
func runDocs(t *testing.T, page string, chosen func(docsBlock) bool) docsRun {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program and starts processes")
	}
	for _, tool := range []string{"bash", "curl", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	r := docsRun{t: t, dir: t.TempDir()}
	var free addresses
	var at [3]string
	for i := range at {
		var err error
		if at[i], err = free.next(); err != nil {
			t.Fatal(err)
		}
	}
	startDocsModel(t, at[2])

	blocks, _ := readDocsPage(t, page).blocks()
	script, n := docsPrelude, 0
	for _, b := range blocks {
		if !chosen(b) {
			continue
		}
		n++
		script += fmt.Sprintf("echo '--- %s:%d'\n", page, b.line)
		if strings.Contains(strings.Join(b.lines, "\n"), "exchanges") {
			script += "sleep 2\n" // receipts are written a moment later, and people read on
		}
		for _, line := range b.lines {
			id := `"$(memory)"`
			if strings.Contains(line, "exchanges") {
				id = `"$(exchange)"`
			}
			script += docsPlaceholder.ReplaceAllLiteralString(line, id) + "\n"
		}
	}
	if n < 3 {
		t.Fatalf("%s has %d blocks to run: reading it wrongly", page, n)
	}
	script += "echo '--- end'\n"
	script = docsLonger.Replace(strings.NewReplacer("127.0.0.1:8787", at[0], "127.0.0.1:8788", at[1]).Replace(script))

	ctx := t.Context()
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Dir = r.dir
	shell.Env = docsEnvironment(t, r.dir, at[0], at[1], at[2])
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what is left over can be ended
	var out bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &out
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	shell.WaitDelay = time.Second
	stuck := time.AfterFunc(10*patience, func() { _ = shell.Cancel() })
	defer stuck.Stop()
	err := shell.Run()
	calls, _ := os.ReadFile(filepath.Join(r.dir, docsCalls))
	r.out = out.String() + string(calls)
	if err != nil || !strings.Contains(r.out, "--- end") {
		log, _ := os.ReadFile(filepath.Join(r.dir, "remora.log"))
		t.Fatalf("the commands of %s failed: %v\n%s\n%s", page, err, r.out, log)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.out)
		}
	})
	return r
}

// startDocsModel starts the fake model of the scripts.
func startDocsModel(t *testing.T, address string) {
	t.Helper()
	model := exec.CommandContext(t.Context(), "model", address)
	if err := model.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Process.Kill(); _ = model.Wait() })
	if err := await("http://"+address, patience); err != nil {
		t.Fatal(err)
	}
}

// docsEnvironment returns an empty home and what is on the PATH: the tools of
// the system behind those that take the place of others.
func docsEnvironment(t *testing.T, dir, listen, api, model string) []string {
	t.Helper()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	bin, home := filepath.Join(t.TempDir(), "bin"), filepath.Join(t.TempDir(), "home")
	for _, d := range []string{bin, home, filepath.Join(bin, "openai")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// The repository is not written to: what is built goes where the shell is.
	write(filepath.Join(bin, "go"), fmt.Sprintf("#!/bin/sh\n[ \"$1 $2\" = 'build -o' ] || exit 1\nhere=$PWD\ncd '%s' && exec '%s' build -o \"$here/$3\" \"$4\"\n", root, goTool))
	for _, name := range []string{"docker", "qwen", "claude", "xdg-open", "open"} {
		write(filepath.Join(bin, name), "#!/bin/sh\necho \"called: ${0##*/} $*\" >>'"+filepath.Join(dir, docsCalls)+"'\n")
	}
	python, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; print(sys.executable)").Output() // what finds it may need the home
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(bin, "python"), fmt.Sprintf("#!/bin/sh\nPYTHONPATH='%s' exec '%s' \"$@\"\n", bin, strings.TrimSpace(string(python))))
	stub, err := os.ReadFile(filepath.Join("testdata", "docs", "openai.py"))
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(bin, "openai", "__init__.py"), string(stub))
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	if err := errors.Join(z.AddFS(os.DirFS(filepath.Join("testdata", "docs"))), z.Close()); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "conversations.zip"), archive.String())

	env := []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + home, "DISPLAY=:0",
		"REMORA_UPSTREAM=http://" + model, "REMORA_LISTEN=" + listen, "REMORA_API_LISTEN=" + api,
		// As on one person's machine, where the tests run in a container.
		"REMORA_IDENTITY_TENANT=local", "REMORA_IDENTITY_ANONYMOUS=keyHolder",
		"REMORA_STORAGE_KEY_FILE=" + filepath.Join(home, "store.key"),
		// A busy machine must not decide what is recalled.
		"REMORA_RECALL_DEADLINE=" + patience.String(), "REMORA_RECALL_FIRST_DEADLINE=" + patience.String(),
		"REMORA_STORAGE_HANG_TIMEOUT=" + patience.String(),
		// As `make build` builds, so that its cache can be used.
		"GOFLAGS=-trimpath -buildvcs=false", "CGO_ENABLED=0",
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.CommandContext(t.Context(), goTool, "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return env
}
