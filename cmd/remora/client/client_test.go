package client

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// What the verbs of package api fail with comes out of a client as the same
// error, or as one that means the same.
func TestFailuresWrapTheErrorsTheyWereMadeOf(t *testing.T) {
	for _, want := range []error{
		api.ErrUnauthorized, api.ErrForbidden, api.ErrNotFound, api.ErrGone, api.ErrOff, api.ErrTooLarge, api.ErrUnsupportedMedia, api.ErrBusy,
		persist.ErrChanged, persist.ErrSecret, persist.ErrNoText, persist.ErrFull, storage.ErrUnavailable, context.DeadlineExceeded,
		&api.FieldError{Field: "tags[3]", Why: "must have 1 to 128 bytes of UTF-8"},
	} {
		p := pipeTo(func(w http.ResponseWriter, _ *http.Request) { request.Problem(want).Write(w) })
		err := New(p, Local, "", api.Target{}).call(t.Context(), ask{method: http.MethodPost, path: "/v1/memories"}, nil)
		wantKind, wantStatus := api.Kind(want)
		if kind, status := api.Kind(err); kind != wantKind || status != wantStatus {
			t.Errorf("%v: got %v, of kind %s, want %s", want, err, kind, wantKind)
		}
		if wantKind == "invalid" && api.Detail(err) != api.Detail(want) {
			t.Errorf("got the detail %q, want %q", api.Detail(err), api.Detail(want))
		}
	}
}

// An answer of something else is an error that shows nothing of it.
func TestForeignServers(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a page":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello") },
		"an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "hello", http.StatusBadGateway) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://hello.example/", http.StatusFound)
		},
	} {
		var out api.Memories
		err := New(pipeTo(h), Local, "", api.Target{}).call(t.Context(), ask{method: http.MethodPost, path: "/v1/context"}, &out)
		if err == nil || strings.Contains(err.Error(), "hello") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestServer(t *testing.T) {
	for given, want := range map[string]string{
		"https://remora.example:8788": "https://remora.example:8788", "http://127.0.0.1:8788/": "http://127.0.0.1:8788", "https://x.example/remora/": "https://x.example/remora",
		"remora.example:8788": "", "ftp://x.example": "", "http://a:b@x.example": "", "http://x.example/?token=1": "", "": "", "http://": "",
	} {
		if got, err := Server(given); got != want || (err == nil) != (want != "") {
			t.Errorf("Server(%q) = %q, %v, want %q", given, got, err, want)
		}
	}
}

// A memory can't end its line, nor do anything to the terminal that it is shown
// on.
func TestMemoriesAreShownOnOneLine(t *testing.T) {
	got := OneLine("a\nb\x1b[2Jc\u009bd\u202ee\u200bf\rg   h é 漢")
	if want := "a b [2Jc d e f g h é 漢"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var b bytes.Buffer
	block(&b, "  ", "one\x1b[2J\r\ntwo\n\nthree")
	if want := "  | one [2J\n  | two\n  |\n  | three\n"; strings.ReplaceAll(b.String(), "| \n", "|\n") != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestTables(t *testing.T) {
	for width, want := range map[int]string{
		0: "  1  fact  short\n  22  user (quarantined)  漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字\n    because\n",
		50: "  id  kind                text\n" +
			"  1   fact                short\n" +
			"  22  user (quarantined)  漢字漢字漢字漢字漢字漢…\n    because\n",
	} {
		var b bytes.Buffer
		w := bufio.NewWriter(&b)
		rows := (&Console{width: width}).table(w, "id", "kind", "text")
		rows.add("1", "fact", "short")
		rows.addWith("because", "22", "user (quarantined)", strings.Repeat("漢字", 10))
		rows.flush()
		w.Flush()
		if b.String() != want {
			t.Errorf("width %d: got\n%s\nwant\n%s", width, b.String(), want)
		}
	}
}

// A memory of any tenant is found, by the default one first.
func TestEverywhere(t *testing.T) {
	var asked []string
	p := pipeTo(func(w http.ResponseWriter, r *http.Request) {
		tenant := r.URL.Query().Get("tenant")
		if r.URL.Path == "/v1/users" {
			page := map[string]string{"": "2", "2": ""}
			cursor := r.URL.Query().Get("cursor")
			next := page[cursor]
			request.Write(w, http.StatusOK, api.Users{Users: []api.User{{Tenant: "t" + cursor, App: "a b", User: "ann"}, {Tenant: "t" + cursor}}, Next: next})
			return
		}
		if asked = append(asked, tenant); tenant != "t2" {
			request.Problem(api.ErrNotFound).Write(w)
			return
		}
		request.Write(w, http.StatusOK, api.Memory{ID: "m", Tenant: "t2", App: "a b", Project: "p", User: "ann"})
	})
	m, _, at, err := New(p, Local, "", api.Target{}).memory(t.Context(), "m")
	if want := (api.Target{Tenant: "t2", App: `"a b"`, Project: "p", User: "ann"}); err != nil || m.ID != "m" || at != want {
		t.Errorf("got %v of %v, %v", m.ID, at, err)
	}
	if want := []string{"", "t", "t2"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	asked = nil
	if _, _, _, err := New(p, Local, "", api.Target{Tenant: "t1"}).memory(t.Context(), "m"); err == nil || err.Error() != "not found: m" || len(asked) != 1 {
		t.Errorf("got %v after %q", err, asked)
	}
}

// A folder's zip has the files that exports consist of, and nothing that links
// lead to.
func TestFoldersArePacked(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		"a/rollout-1.jsonl": "{}", "memories.jsonl.gz": "x", "c.JSON": "[]", "picture.png": "x", "._c.json": "x", "a/.hidden/d.ndjson": "{}",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(outside, "secret.json")
	if err := os.WriteFile(secret, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link.json")); err != nil {
		t.Skip("needs symbolic links: ", err)
	}
	var b bytes.Buffer
	n, err := zipFolder(&b, os.DirFS(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range z.File {
		got = append(got, f.Name)
	}
	slices.Sort(got)
	if want := []string{"a/.hidden/d.ndjson", "a/rollout-1.jsonl", "c.JSON", "memories.jsonl.gz"}; !slices.Equal(got, want) || n != len(want) {
		t.Errorf("got %d: %q, want %q", n, got, want)
	}
}

// All that a filter selects is deleted, in calls that each may be.
func TestDeleteAllInPortions(t *testing.T) {
	left := map[string]bool{}
	for i := range 1200 {
		left[fmt.Sprint(i)] = true
	}
	calls := 0
	p := pipeTo(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			out := api.Memories{}
			for id := range left {
				out.Memories = append(out.Memories, api.Memory{ID: id})
			}
			request.Write(w, http.StatusOK, out)
			return
		}
		calls++
		var d struct{ IDs []string }
		if err := json.NewDecoder(r.Body).Decode(&d); err != nil || len(d.IDs) > api.MaxIDs {
			t.Errorf("%d ids in a call, %v", len(d.IDs), err)
		}
		for _, id := range d.IDs {
			delete(left, id)
		}
		request.Write(w, http.StatusOK, api.Removed{Deleted: d.IDs, UndoUntil: "soon"})
	})
	got, err := (Tools{New(p, Local, "", api.Target{})}).DeleteAll(t.Context(), api.Target{User: "ann"}, api.Filter{}, "")
	if err != nil || len(left) > 0 || len(got.Deleted) != 1200 || got.UndoUntil != "soon" || calls != 3 {
		t.Errorf("got %d in %d calls, %d are left, %v", len(got.Deleted), calls, len(left), err)
	}
}
