package agents

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const page = "../../../docs/agents.md"

// TestPage holds docs/agents.md against the table: each recipe is there as
// `remora env` prints it, with the default address.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash(page))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for _, a := range All() {
		at := a.At("http://127.0.0.1:8787")
		if !strings.Contains(doc, "`"+a.Name+"`") {
			t.Errorf("%s does not name %s", page, a.Name)
		}
		if !strings.Contains(doc, "**"+a.Title+"**") && !strings.Contains(doc, "| "+a.Title+" |") {
			t.Errorf("%s has no recipe for %s", page, a.Title)
		}
		for _, v := range at.Variables {
			library := len(a.Programs) == 0
			if !library && !strings.Contains(doc, "\n    "+v.Line("sh")) || library && !strings.Contains(doc, v.Name) {
				t.Errorf("%s: not as remora env %s prints it: %s", page, a.Name, v.Line("sh"))
			}
		}
		if a.File == "" {
			continue
		}
		if !strings.Contains(doc, "`"+a.File+"`") {
			t.Errorf("%s: does not name %s", page, a.File)
		}
		if want := "    " + strings.ReplaceAll(at.Snippet, "\n", "\n    "); !strings.Contains(doc, want) {
			t.Errorf("%s: not as remora env %s prints it:\n%s", page, a.Name, want)
		}
	}
	// The other way round: whatever has a recipe is in the table.
	agents, _, _ := strings.Cut(doc, "## SDKs")
	titles := regexp.MustCompile(`(?m)^\*\*([^*]+)\*\*`).FindAllStringSubmatch(agents, -1)
	if len(titles) < 8 {
		t.Fatalf("found %d recipes: reading the wrong page", len(titles))
	}
	for _, m := range titles {
		if !slices.ContainsFunc(All(), func(a Agent) bool { return a.Title == m[1] }) {
			t.Errorf("%s has a recipe for %s, which is not in the table", page, m[1])
		}
	}
}

func TestTable(t *testing.T) {
	names, programs := map[string]bool{}, map[string]bool{}
	for _, a := range All() {
		if names[a.Name] {
			t.Errorf("%s is there twice", a.Name)
		}
		names[a.Name] = true
		for _, p := range a.Programs {
			if programs[p] {
				t.Errorf("two agents have the program %s", p)
			}
			programs[p] = true
		}
		at := a.At("http://127.0.0.1:8787")
		all := at.Snippet + at.Note + strings.Join(at.Arguments, " ")
		for _, v := range slices.Concat(at.Variables, at.Inline) {
			all += v.Value
		}
		if strings.Contains(all, "{base}") || strings.Contains(all, "{v1}") {
			t.Errorf("%s: an address is missing: %s", a.Name, all)
		}
		if regexp.MustCompile(`sk-|[Kk]ey"?[:=] ?"[^{]`).MatchString(all) {
			t.Errorf("%s has a key: %s", a.Name, all)
		}
	}
}

func TestOf(t *testing.T) {
	for program, want := range map[string]string{
		"claude": "claude", "/usr/local/bin/claude": "claude", "codex.cmd": "codex", "CLAUDE.EXE": "claude", "./qwen": "qwen", "cn": "continue",
		"node": "", "": "", "claude-code": "",
	} {
		a, ok := Of(program)
		if a.Name != want || ok != (want != "") {
			t.Errorf("%q: got %q", program, a.Name)
		}
	}
}

func TestInstalled(t *testing.T) {
	found := Installed(func(program string) (string, error) {
		if program == "gemini" || program == "codex" {
			return "/bin/" + program, nil
		}
		return "", exec.ErrNotFound
	})
	if len(found) != 2 || found[0].Name != "codex" || found[1].Name != "gemini" {
		t.Errorf("got %+v", found)
	}
	if none := Installed(func(string) (string, error) { return "", errors.New("no") }); len(none) > 0 {
		t.Errorf("got %+v", none)
	}
}

func TestBase(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8787": "http://127.0.0.1:8787", ":8787": "http://127.0.0.1:8787", "0.0.0.0:1": "http://127.0.0.1:1",
		"[::]:8787": "http://[::1]:8787", "[::1]:8787": "http://[::1]:8787", "localhost:80": "http://localhost:80",
		"127.0.0.1:0": "", "nonsense": "",
	} {
		got, err := Base(listen)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", listen, got, err, want)
		}
	}
}

func TestShellOf(t *testing.T) {
	for _, test := range []struct{ shell, system, want string }{
		{"/bin/bash", "linux", "sh"}, {"/usr/bin/fish", "linux", "fish"}, {"", "linux", "sh"}, {"", "windows", "powershell"},
		{"/usr/bin/pwsh", "linux", "powershell"}, {"/bin/zsh", "darwin", "sh"},
	} {
		if got := ShellOf(test.shell, test.system); got != test.want {
			t.Errorf("%q on %s: got %s, want %s", test.shell, test.system, got, test.want)
		}
	}
}

// Whatever the value, a shell reads it back as it is.
func TestLine(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	for _, value := range []string{"http://127.0.0.1:8787/v1", "http://[::1]:8787", "it's $HOME `x` \"y\" \\ z", ""} {
		v := Variable{"GIVEN", value}
		got, err := exec.Command("sh", "-c", v.Line("sh")+"\nprintf %s \"$GIVEN\"").Output()
		if err != nil || string(got) != value {
			t.Errorf("sh: %s gives %q, %v", v.Line("sh"), got, err)
		}
	}
	v := Variable{"GIVEN", "it's"}
	if got := v.Line("fish"); got != `set -gx GIVEN 'it\'s'` {
		t.Errorf("fish: %s", got)
	}
	if got := v.Line("powershell"); got != `$env:GIVEN = 'it''s'` {
		t.Errorf("powershell: %s", got)
	}
	codex, _ := Named("codex")
	if got, want := codex.At("http://127.0.0.1:1").Command(), `codex -c 'openai_base_url="http://127.0.0.1:1/v1"'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
