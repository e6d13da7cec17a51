package rest

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remora-proxy/remora/api"
)

// chatGPT returns an export with one conversation of two turns.
func chatGPT() string {
	node := func(id, parent, child, role, text string, at int64) string {
		children := "[]"
		if child != "" {
			children = `["` + child + `"]`
		}
		return fmt.Sprintf(`%q:{"id":%q,"parent":%q,"children":%s,"message":{"id":%q,"author":{"role":%q},"create_time":%d,"content":{"content_type":"text","parts":[%q]},"weight":1,"recipient":"all","status":"finished_successfully"}}`,
			id, id, parent, children, id, role, at, text)
	}
	at := time.Now().Add(-48 * time.Hour).Unix()
	return `[{"title":"Boats","create_time":` + fmt.Sprint(at) + `,"conversation_id":"conv-1","id":"conv-1","current_node":"n4","mapping":{` +
		`"root":{"id":"root","parent":null,"children":["n1"],"message":null},` +
		strings.Join([]string{
			node("n1", "root", "n2", "user", "Remember that my boat is called Marbella.", at),
			node("n2", "n1", "n3", "assistant", "What a fine name.", at+1),
			node("n3", "n2", "n4", "user", "I am allergic to peanuts, please remember that.", at+2),
			node("n4", "n3", "", "assistant", "I will.", at+3),
		}, ",") + `}}]`
}

// zipped returns a zip with one file.
func zipped(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write([]byte(content))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestImportOfChatGPT(t *testing.T) {
	for how, body := range map[string][]byte{"&name=conversations.json": []byte(chatGPT()), "": zipped(t, "conversations.json", chatGPT()), "&format=chatgpt": []byte(chatGPT())} {
		r := newService(t)
		dry := get[api.ImportReport](t, r.send(t, "POST", "/v1/import?user=ada&dryRun=true"+how, body))
		if dry.Format != "chatgpt" || !dry.DryRun || dry.Conversations != 1 || dry.Messages != 4 || dry.Turns != 2 || dry.From == "" || dry.To <= dry.From {
			t.Errorf("%q: dry run %+v", how, dry)
		}
		if got := r.list(t, "user=ada"); len(got) != 0 {
			t.Errorf("%q: a dry run has stored %q", how, texts(got))
		}
		done := get[api.ImportReport](t, r.send(t, "POST", "/v1/import?user=ada"+how, body))
		dry.DryRun = false
		if diff := cmp.Diff(dry, done); diff != "" {
			t.Errorf("%q: the dry run said otherwise (-dry +done):\n%s", how, diff)
		}
		r.settle(t)
		if got := r.list(t, "user=ada&kind=episode&conversation=conv-1"); len(got) != 4 || got[0].Source != "import" {
			t.Errorf("%q: episodes %+v", how, got)
		}
		facts := texts(r.list(t, "user=ada&kind=fact"))
		if !slices.ContainsFunc(facts, func(s string) bool { return strings.Contains(s, "Marbella") }) {
			t.Errorf("%q: facts %q", how, facts)
		}
		before := r.list(t, "user=ada")
		r.send(t, "POST", "/v1/import?user=ada"+how, body).want(t, 200)
		r.settle(t)
		if diff := cmp.Diff(before, r.list(t, "user=ada")); diff != "" {
			t.Errorf("%q: the same again added something:\n%s", how, diff)
		}
	}
}

func TestImportRefusals(t *testing.T) {
	r := newService(t)
	for _, body := range []string{"", " ", canary, "[]", "{}", `{"a":`, `[{"` + canary + `":1}]`, "PK\x03\x04" + canary, string(zipped(t, canary+".txt", canary)), "\xff\xfe" + canary} {
		for _, query := range []string{"", "&format=chatgpt&name=" + canary + ".json", "&format=remora&name=../../" + canary + ".jsonl"} {
			a := r.send(t, "POST", "/v1/import?user=ada"+query, body, "Content-Type", "application/octet-stream")
			a.what = fmt.Sprintf("%q %q", query, body)
			a.problem(t, 422, "invalid", "body")
			if strings.Contains(a.body, canary) && !strings.Contains(query, canary) && !strings.HasPrefix(body, "PK") {
				t.Errorf("%s: the problem quotes the body: %s", a.what, a.body)
			}
			if strings.Contains(a.body, "/tmp") || strings.Contains(a.body, "remora-import") {
				t.Errorf("%s: the problem names a file of the server: %s", a.what, a.body)
			}
		}
	}
	// Only one import runs at a time.
	r.rest.importing <- struct{}{}
	a := r.send(t, "POST", "/v1/import?user=ada", chatGPT())
	a.problem(t, 429, "too-many", "")
	<-r.rest.importing
	r.send(t, "POST", "/v1/import?user=ada", chatGPT()).want(t, 200)
}

// various gives a user memories of many kinds.
func (r *rig) various(t *testing.T, user string) {
	t.Helper()
	for _, f := range []struct{ text, day string }{{"I live in Porto.", "2026-10-01"}, {"I live in Lisbon.", "2026-11-01"}, {"My dog is called Rex.", "2026-11-02"}} {
		r.add(t, "user="+user, f.text, object{"eventTime": f.day, "tags": []string{"life"}, "priority": 0.9})
	}
	r.send(t, "POST", "/v1/resources?user="+user+"&resource_uri=file:///log", "The ship sails on.", "Content-Type", "text/plain").want(t, 201)
	r.say(t, user, "t1", 1, "Remember that I am allergic to peanuts.")
	r.settle(t)
	gone := r.add(t, "user="+user, "I own a parrot.", nil)
	r.send(t, "DELETE", "/v1/memories/"+gone.ID, nil).want(t, 200)
}

// An export of one Remora, read by another, is the same memory.
func TestExportComesBack(t *testing.T) {
	from, to := newService(t), newService(t)
	from.various(t, "ada")
	a := from.send(t, "GET", "/v1/export?user=ada", nil).want(t, 200)
	if got := a.header.Get("Content-Type"); got != "application/jsonl" {
		t.Errorf("Content-Type %q", got)
	}
	if strings.Contains(a.body, "parrot") {
		t.Error("what was deleted is exported")
	}
	report := get[api.ImportReport](t, to.send(t, "POST", "/v1/import?user=ada&name=export.jsonl", a.body, "Content-Type", "application/jsonl"))
	if report.Format != "remora" || report.Saved != report.Memories || report.Memories != strings.Count(a.body, "\n") || len(report.Refused) != 0 {
		t.Errorf("report %+v of %d lines", report, strings.Count(a.body, "\n"))
	}
	all := "user=ada&state=current,superseded,quarantined&order=oldest"
	ignore := cmpopts.IgnoreFields(api.Memory{}, "CreatedAt", "UpdatedAt", "ExpiresAt", "Version", "Source")
	if diff := cmp.Diff(from.list(t, all), to.list(t, all), ignore); diff != "" {
		t.Errorf("imported is not what was exported (-exported +imported):\n%s", diff)
	}
	again := get[api.ImportReport](t, to.send(t, "POST", "/v1/import?user=ada&name=export.jsonl", a.body, "Content-Type", "application/jsonl"))
	if again.Saved != 0 || again.Known != report.Saved {
		t.Errorf("again: %+v", again)
	}
}

func TestExportFormats(t *testing.T) {
	r := newService(t)
	r.various(t, "ada")
	r.add(t, "user=ben", "I play the trumpet.", nil)
	lines := func(a answer) (ms []api.Memory) {
		for line := range strings.Lines(a.want(t, 200).body) {
			var m api.Memory
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			ms = append(ms, m)
		}
		return ms
	}
	all := r.list(t, "user=ada&state=current,superseded,quarantined")
	if got := lines(r.send(t, "GET", "/v1/export?user=ada&format=remora", nil)); len(got) != len(all) {
		t.Errorf("%d lines, want %d", len(got), len(all))
	}
	if got := lines(r.send(t, "GET", "/v1/export", nil)); len(got) != len(all)+1 {
		t.Errorf("of all users %d lines, want %d", len(got), len(all)+1)
	}
	mem0 := get[struct {
		Results []struct {
			ID, Memory string
			UserID     string `json:"user_id"`
		}
	}](t, r.send(t, "GET", "/v1/export?user=ada&format=mem0", nil))
	if len(mem0.Results) != len(all) || mem0.Results[0].UserID != "ada" || mem0.Results[0].Memory == "" {
		t.Errorf("mem0 %+v", mem0)
	}
	if none := r.send(t, "GET", "/v1/export?user=eva&format=mem0", nil).want(t, 200); none.body != "{\"results\":[]}\n" {
		t.Errorf("of nobody: %q", none.body)
	}
	if none := r.send(t, "GET", "/v1/export?user=eva", nil).want(t, 200); none.body != "" || none.header.Get("Content-Type") != "application/jsonl" {
		t.Errorf("of nobody: %q", none.body)
	}
	text := r.send(t, "GET", "/v1/export?user=ada&format=markdown", nil).want(t, 200)
	if !strings.Contains(text.body, "## ada\n") || !strings.Contains(text.body, "- 2026-11-01 fact: I live in Lisbon.") ||
		!strings.Contains(text.body, "- 2026-10-01 fact (superseded): I live in Porto.") || text.header.Get("Content-Type") != "text/markdown; charset=utf-8" {
		t.Errorf("markdown:\n%s", text.body)
	}
}

// Memories of mem0 and names of users in an export come over, as far as the
// caller may reach the user.
func TestImportOfMem0(t *testing.T) {
	body := `{"results":[{"id":"1","memory":"Plays the cello","user_id":"ada","created_at":"2026-10-01T00:00:00Z"},{"id":"2","memory":"Plays the trumpet","user_id":"ben"}]}`
	r := newService(t)
	report := get[api.ImportReport](t, r.send(t, "POST", "/v1/import?format=mem0&name=export.json", body))
	if report.Saved != 2 {
		t.Fatalf("report %+v", report)
	}
	for user, want := range map[string]string{"ada": "Plays the cello", "ben": "Plays the trumpet"} {
		if got := texts(r.list(t, "user="+user)); !slices.Equal(got, []string{want}) {
			t.Errorf("%s has %q", user, got)
		}
	}
	one := newService(t)
	one.send(t, "POST", "/v1/import?format=mem0&user="+url.QueryEscape("cleo"), body).want(t, 200)
	if got := one.list(t, "user=cleo"); len(got) != 2 {
		t.Errorf("cleo has %q", texts(got))
	}
	if got := one.list(t, "user=ada"); len(got) != 0 {
		t.Errorf("ada has %q", texts(got))
	}
	bound := newService(t)
	bound.with("X-User-Id", "dora").send(t, "POST", "/v1/import?format=mem0", body).want(t, 200)
	if got := bound.list(t, "user=dora"); len(got) != 2 {
		t.Errorf("dora has %q", texts(got))
	}
}
