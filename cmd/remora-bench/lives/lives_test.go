package lives

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// TestLives plays a small file through Remora itself: lines bear the dates of
// the file, what is older than it is kept is gone, and each kind of miss is
// printed with its block.
func TestLives(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds remora")
	}
	var out, problems bytes.Buffer
	kept := filepath.Join(t.TempDir(), "answers.json")
	if err := Run(t.Context(), []string{"-v", "-o", kept, filepath.Join("testdata", "lives.json")}, &out, &problems); err != nil {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	for _, want := range []string{
		"[keeper c] stale: Who borrowed the honey extractor?",
		"    | Mon 2026-01-05 user: My neighbour Otto borrowed the honey extractor.\n",
		"[keeper b] miss: Where do the goats stand?",
		"\ne several steps         1/1  1.000\n", "\nde", "\nen",
		"\nlives: 6/8 = 0.750 pass; a 2/2 b 0/1 c 0/1 d 1/1 e 1/1 h 1/1 i 1/1; miss 1 stale 1 wrong 0 false injection 0; lines that help ",
		"; tokens per block (median of 6) ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	answers, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"memories": {`, `named the strongest colony Gudrun`, `"verdict": "stale"`} {
		if !bytes.Contains(answers, []byte(want)) {
			t.Errorf("%s is missing in what -o keeps", want)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, args := range [][]string{nil, {"-nothing"}} {
		if err := Run(t.Context(), args, io.Discard, io.Discard); !isUsage(err) {
			t.Errorf("%q: %v, want a usage error", args, err)
		}
	}
}

func isUsage(err error) bool {
	_, ok := errors.AsType[cli.UsageError](err)
	return ok
}

// TestRead checks that a file that can't be played is refused with the reason.
func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                              "JSON",
		`{"personas": [{"lang": "en"}]}`: "id is missing",
		`{"personas": [{"id": "a"}, {"id": "a"}]}`:                                                          `two lives are called "a"`,
		`{"personas": [{"id": "a", "conversations": [{"at": "May"}]}]}`:                                     `"May" is no date`,
		`{"personas": [{"id": "a", "questions": [{"q": "Why?"}]}]}`:                                         `"" is no date`,
		`{"personas": [{"id": "a", "conversations": [{"at": "2026-03-01", "turns": [{"assistant": 3}]}]}]}`: "number",
	} {
		path := filepath.Join(t.TempDir(), "lives.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read([]string{path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestParseTime(t *testing.T) {
	for text, want := range map[string]string{
		"2026-03-01T14:05:33Z": "2026-03-01T14:05:00Z", "2026-03-01 14:05": "2026-03-01T14:05:00Z", "2026-03-01": "2026-03-01T09:00:00Z",
	} {
		if got, err := parseTime(text); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
}

func TestJudge(t *testing.T) {
	want := func(groups ...string) (out [][]string) {
		for _, g := range groups {
			out = append(out, strings.Split(g, "|"))
		}
		return out
	}
	lines := []string{"The office is in Graz.", "(outdated) The office is in Linz.", "Lunch is at 12."}
	for _, test := range []struct {
		name    string
		q       question
		lines   []string
		verdict string
		help    int
	}{
		{"one of the alternatives", question{Kind: "a", Want: want("Wien|GRAZ")}, lines, pass, 1},
		{"two groups in two lines", question{Kind: "e", Want: want("Graz", "12")}, lines, pass, 2},
		{"one group is missing", question{Kind: "e", Want: want("Graz", "13")}, lines, miss, 1},
		{"an outdated line may hold it", question{Kind: "c", Want: want("Graz"), Avoid: []avoided{{Text: "Linz"}}}, lines, pass, 1},
		{"another may not", question{Kind: "c", Want: want("12"), Avoid: []avoided{{Text: "graz"}}}, lines, stale, 1},
		{"unless it holds more", question{Kind: "c", Want: want("12"), Avoid: []avoided{{Text: "graz", Unless: "office"}}}, lines, pass, 1},
		{"never right", question{Kind: "g", Avoid: []avoided{{Text: "Lunch"}}}, lines, wrong, 0},
		{"nothing", question{Kind: "h", Nothing: true}, nil, pass, 0},
		{"something", question{Kind: "h", Nothing: true}, lines, uncalled, 0},
		{"compatible forms", question{Kind: "a", Want: want("STRASSE ½")}, []string{"Straße 1⁄2"}, pass, 1},
	} {
		if verdict, help := judge(&test.q, test.lines); verdict != test.verdict || help != test.help {
			t.Errorf("%s: %s, %d lines help, want %s, %d", test.name, verdict, help, test.verdict, test.help)
		}
	}
}

func TestBlock(t *testing.T) {
	block := "<remora-memory-0a>\nReference data from earlier conversations.\n- one\nmore of it\n- two \n</remora-memory-0a>"
	got := blockOf("<remora-memory-ff>\n- old\n</remora-memory-ff>\n\n" + block + "\n\nWhat now?")
	if got != block {
		t.Errorf("the block is %q, want %q", got, block)
	}
	if lines := linesOf(got); !slices.Equal(lines, []string{"one\nmore of it", "two"}) {
		t.Errorf("lines are %q", lines)
	}
	for _, text := range []string{"", "no block", "<remora-memory-0a>\n- cut"} {
		if got := blockOf(text); got != "" || linesOf(got) != nil {
			t.Errorf("%q: %q is a block", text, got)
		}
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, "Four": 1, "Four and more": 4, "東京に住む": 5, "живу": 3} {
		if got := tokens(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
}

// A Remora that does not start is reported with its log.
func TestRemoraThatDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	if _, err := start(t.Context(), filepath.Join(dir, "nothing"), dir, nil); err == nil {
		t.Error("a program that is missing has started")
	}
	if testing.Short() {
		t.Skip("it builds remora")
	}
	program, err := cli.BuildRemora(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := start(t.Context(), program, dir, object{"listn": 1}); err == nil || !strings.Contains(err.Error(), "listn: unknown key") {
		t.Errorf("a configuration with a mistake: %v", err)
	}
}
