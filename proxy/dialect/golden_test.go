package dialect

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// goldenBlock is what every golden inserts. It needs each kind of escape.
const goldenBlock = "<memory>\n\"tea\", not coffee \\ \u2028 \x01 é 😀\n</memory>"

var placements = []struct {
	name      string
	placement Placement
}{{"before-user", BeforeUser}, {"in-user", InUser}, {"system", System}}

var dialects = []Dialect{Chat{}, Messages{}, Responses{}, Ollama{}, Gemini{}}

// TestGoldens checks the files of testdata. Each starts with prose about its
// subject and has a request, reply or stream as input. All other files in it
// are the dialect's results, written by go test -update.
func TestGoldens(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.Name(), func(t *testing.T) { testGoldens(t, golden{d}) })
	}
}

func testGoldens(t *testing.T, g golden) {
	files, err := filepath.Glob("testdata/" + g.d.Name() + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(archive.Comment)) == 0 {
				t.Error("no prose at the top about its subject")
			}
			got := &txtar.Archive{Comment: archive.Comment}
			inputs := 0
			for _, f := range archive.Files {
				outputs := map[string]func([]byte) []txtar.File{
					"request": g.request, "reply": g.reply, "stream": g.stream,
				}[f.Name]
				if outputs == nil {
					continue
				}
				inputs++
				got.Files = append(got.Files, f)
				got.Files = append(got.Files, outputs(f.Data)...)
			}
			if inputs == 0 {
				t.Fatal("it has neither request, reply nor stream")
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, have := string(txtar.Format(archive)), string(txtar.Format(got))
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type golden struct{ d Dialect }

func (g golden) request(body []byte) []txtar.File {
	req, err := g.d.Parse(body)
	if err != nil {
		return []txtar.File{{Name: "found", Data: fmt.Appendf(nil, "error: %v\n", err)}}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "model=%q stream=%v user=%q metadata=%q conversation=%q cache=%q\n",
		req.Model, req.Stream, req.User, req.MetadataUser, req.Conversation, req.CacheKey)
	if req.PreviousID != "" || req.Held || req.Background || req.Unstored {
		fmt.Fprintf(&b, "previous=%q held=%v background=%v unstored=%v\n", req.PreviousID, req.Held, req.Background, req.Unstored)
	}
	fmt.Fprintf(&b, "turn=%d previous=%d loop=%v\n", req.Turn, req.Previous(req.Turn), req.Loop)
	names := [...]string{RoleOther: "other", RoleSystem: "system", RoleUser: "user", RoleAssistant: "assistant", RoleTool: "tool"}
	for i, m := range req.Messages {
		fmt.Fprintf(&b, "%d %s [%d:%d] calls=%v hash=%016x%016x text=%q",
			i, names[m.Role], m.Start, m.End, m.Calls, m.Hash.Hi, m.Hash.Lo, req.Text(i))
		if m.Results {
			b.WriteString(" results=true")
		}
		b.WriteByte('\n')
	}
	files := []txtar.File{{Name: "found", Data: []byte(b.String())}}
	for _, p := range placements {
		out := txtar.File{Name: p.name}
		if ins, err := g.d.Insert(req, req.Turn, p.placement, goldenBlock); err != nil {
			out.Data = fmt.Appendf(nil, "error: %v\n", err)
		} else {
			out.Data = bytes.Join(Splice(body, ins), nil)
		}
		files = append(files, out)
	}
	return files
}

func (g golden) reply(body []byte) []txtar.File {
	return []txtar.File{{Name: "reply found", Data: showReply(g.d.Reply(body))}}
}

func (g golden) stream(body []byte) []txtar.File {
	return []txtar.File{{Name: "stream found", Data: showReply(g.d.ReplyStream(body))}}
}

func showReply(r Reply, err error) []byte {
	b := fmt.Appendf(nil, "final=%v finish=%q calls=%v id=%q model=%q\n", r.Final(), r.Finish, r.Calls, r.ID, r.Model)
	b = fmt.Appendf(b, "input=%d output=%d cached=%d", r.Usage.Input, r.Usage.Output, r.Usage.Cached)
	if r.Usage.Written > 0 {
		b = fmt.Appendf(b, " written=%d", r.Usage.Written)
	}
	b = fmt.Appendf(b, "\ntext=%q\n", r.Text)
	if err != nil {
		b = fmt.Appendf(b, "error: %v\n", err)
	}
	return b
}
