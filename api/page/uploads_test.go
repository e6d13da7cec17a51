package page

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

// newUploads returns uploads and what has one come for an owner.
func newUploads(t *testing.T) (u *uploads, come func(user string) (*upload, string)) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	u = &uploads{}
	u.open(slog.New(slog.DiscardHandler))
	return u, func(user string) (*upload, string) {
		t.Helper()
		up, err := u.reserve(ownerOf(user), api.Target{User: user}, "")
		if err != nil {
			t.Fatal(err)
		}
		if up.file, err = request.SaveUpload("export.json", strings.NewReader("{}")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(up.file.Path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("the file: %v, %v", info, err)
		}
		path := up.file.Path
		u.ready(up, api.ImportReport{Turns: 1})
		return up, path
	}
}

func ownerOf(user string) owner { return owner{p: api.Principal{Tenant: "t", User: user}} }

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestUploadsAreBounded(t *testing.T) {
	u, come := newUploads(t)
	defer u.close()
	first, path := come("a")
	for _, user := range []string{"b", "c", "d"} {
		come(user)
	}
	if _, err := u.reserve(ownerOf("e"), api.Target{}, ""); !errors.Is(err, errUploadsFull) || !errors.Is(err, api.ErrBusy) {
		t.Errorf("one upload too many: %v", err)
	}
	again, err := u.reserve(ownerOf("a"), api.Target{}, "")
	if err != nil || there(path) {
		t.Fatalf("another of the same owner: %v; the file is there: %t", err, there(path))
	}
	if _, err := u.find(first.id, ownerOf("a")); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("what was replaced: %v", err)
	}
	if _, err := u.reserve(ownerOf("a"), api.Target{}, ""); !errors.Is(err, errUploadRunning) {
		t.Errorf("two at the same time: %v", err)
	}
	if _, err := u.find(again.id, ownerOf("a")); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("what is coming still: %v", err)
	}
	u.drop(again)
}

func TestUploadsOfOthers(t *testing.T) {
	u, come := newUploads(t)
	defer u.close()
	up, path := come("a")
	for _, other := range []owner{ownerOf("b"), {p: api.Principal{Tenant: "t"}}, {session: &session{}, p: ownerOf("a").p}} {
		if _, err := u.find(up.id, other); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("find by %v: %v", other, err)
		}
		if err := u.discard(up.id, other); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("discard by %v: %v", other, err)
		}
		if err := u.start(up.id, other, nil, time.Now); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("start by %v: %v", other, err)
		}
	}
	if err := u.discard(up.id, ownerOf("a")); err != nil || there(path) {
		t.Errorf("discard: %v; the file is there: %t", err, there(path))
	}
}

func TestUploadsExpire(t *testing.T) {
	u, come := newUploads(t)
	synctest.Test(t, func(*testing.T) {
		u.open(u.log)
		up, path := come("a")
		time.Sleep(uploadTTL - time.Second)
		synctest.Wait()
		if !there(path) {
			t.Error("the file is gone before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, err := u.find(up.id, up.owner); !errors.Is(err, api.ErrNotFound) || there(path) {
			t.Errorf("after its time: %v; the file is there: %t", err, there(path))
		}
		u.close()
	})
}

func TestImportsInTheBackground(t *testing.T) {
	u, come := newUploads(t)
	up, path := come("a")
	other, otherPath := come("b")
	go1, begun := make(chan struct{}), make(chan struct{})
	slow := func(_ context.Context, _ string, progress func(api.ImportReport)) (api.ImportReport, error) {
		counted := map[string]int{"secret": 1}
		progress(api.ImportReport{Turns: 7, Refused: counted})
		counted["secret"] = 2 // goes on counting
		close(begun)
		<-go1
		return api.ImportReport{Turns: 9}, nil
	}
	if err := u.start(up.id, up.owner, slow, time.Now); err != nil {
		t.Fatal(err)
	}
	<-begun
	now, err := u.find(up.id, up.owner)
	if err != nil || !now.Running() || now.done.Turns != 7 || now.done.Refused["secret"] != 1 {
		t.Errorf("while it runs: %+v, %v", now.done, err)
	}
	if err := u.start(other.id, other.owner, slow, time.Now); !errors.Is(err, errImportRunning) {
		t.Errorf("a second import: %v", err)
	}
	if err := u.discard(up.id, up.owner); !errors.Is(err, errUploadRunning) {
		t.Errorf("discard while it runs: %v", err)
	}
	if _, err := u.reserve(up.owner, api.Target{}, ""); !errors.Is(err, errUploadRunning) {
		t.Errorf("another upload while it runs: %v", err)
	}
	u.expire(up)
	close(go1)
	u.work.Wait()
	if now, err = u.find(up.id, up.owner); err != nil || !now.Over() || now.done.Turns != 9 || there(path) {
		t.Errorf("when it is over: %+v, %v; the file is there: %t", now, err, there(path))
	}

	broken := errors.New("broken")
	for _, run := range []importer{
		func(context.Context, string, func(api.ImportReport)) (api.ImportReport, error) { panic("content") },
		func(context.Context, string, func(api.ImportReport)) (api.ImportReport, error) {
			return api.ImportReport{Saved: 1}, broken
		},
	} {
		if err := u.start(other.id, other.owner, run, time.Now); err != nil {
			t.Fatal(err)
		}
		u.work.Wait()
		if now, err = u.find(other.id, other.owner); err != nil || now.problem == nil || now.state != uploadReady || !there(otherPath) {
			t.Errorf("after a failure: %+v, %v; the file is there: %t", now, err, there(otherPath))
		}
	}

	stopped := func(ctx context.Context, _ string, _ func(api.ImportReport)) (api.ImportReport, error) {
		<-ctx.Done()
		return api.ImportReport{}, ctx.Err()
	}
	if err := u.start(other.id, other.owner, stopped, time.Now); err != nil {
		t.Fatal(err)
	}
	u.close()
	if there(otherPath) || len(u.byID) > 0 {
		t.Errorf("after the end: %d uploads; the file is there: %t", len(u.byID), there(otherPath))
	}
	if _, err := u.reserve(up.owner, api.Target{}, ""); !errors.Is(err, errClosing) {
		t.Errorf("an upload after the end: %v", err)
	}
}

func TestResultsAreBounded(t *testing.T) {
	u, come := newUploads(t)
	defer u.close()
	now := time.Now()
	done := func(context.Context, string, func(api.ImportReport)) (api.ImportReport, error) {
		return api.ImportReport{}, nil
	}
	var first *upload
	for i := range maxResults + 1 {
		up, _ := come(strings.Repeat("x", i+1))
		if err := u.start(up.id, up.owner, done, func() time.Time { return now.Add(time.Duration(i)) }); err != nil {
			t.Fatal(err)
		}
		u.work.Wait()
		if first == nil {
			first = up
		}
	}
	if _, err := u.find(first.id, first.owner); !errors.Is(err, api.ErrNotFound) || len(u.byID) != maxResults {
		t.Errorf("%d results are kept; the first: %v", len(u.byID), err)
	}
}

// sendFiles sends a form with files, each as name and content, and fields after
// them.
func (r *rig) sendFiles(t *testing.T, target string, files [][2]string, fields map[string]string) (*http.Response, string) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, f := range files {
		w, err := form.CreateFormFile("file", f[0])
		if err == nil {
			_, err = w.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range fields {
		if err := form.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	_ = form.Close()
	req := httptest.NewRequest(http.MethodPost, target, &body)
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Authorization", "Bearer "+adminToken)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req.WithContext(t.Context()))
	return w.Result(), w.Body.String()
}

func TestUploadForm(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := newRig(t)
	defer r.Close()
	good := [2]string{"mem0.json", `{"results": [{"id": "a", "memory": "Keeps bees on the roof"}]}`}
	for name, test := range map[string]struct {
		files  [][2]string
		fields map[string]string
		says   string
	}{
		"no file":          {nil, nil, "choose one first"},
		"an empty field":   {[][2]string{{"", ""}}, nil, "choose one first"},
		"two files":        {[][2]string{good, good}, nil, "put several into a zip"},
		"a long name":      {[][2]string{{strings.Repeat("a", 201), "{}"}}, nil, "must have at most"},
		"no export":        {[][2]string{{"x.json", `{"a": 1}`}}, nil, "can&#39;t be imported"},
		"another format":   {[][2]string{good}, map[string]string{"format": "claude"}, "can&#39;t be imported"},
		"no such format":   {[][2]string{good}, map[string]string{"format": "<b>"}, "must be one of"},
		"no zip":           {[][2]string{{"x.zip", "PK\x03\x04broken"}}, nil, "is no export that can be read"},
		"a user's pattern": {[][2]string{good}, map[string]string{"for": "{{user}}"}, "placeholder"},
	} {
		res, body := r.sendFiles(t, "/import", test.files, test.fields)
		if res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, test.says) || !strings.Contains(body, `type="file"`) {
			t.Errorf("%s: status %d, %q is said: %t", name, res.StatusCode, test.says, strings.Contains(body, test.says))
		}
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}

	res, _ := r.sendFiles(t, "/import", [][2]string{good}, map[string]string{"for": "ada"})
	at := res.Header.Get("Location")
	if res.StatusCode != http.StatusSeeOther || !strings.HasPrefix(at, "/import/") || !strings.Contains(at, "user=ada") {
		t.Fatalf("status %d, Location %q", res.StatusCode, at)
	}
	if res, body := r.send(t, at, nil, "Authorization", "Bearer "+adminToken); res.StatusCode != 200 || !strings.Contains(body, "mem0.json") {
		t.Errorf("the upload: status %d", res.StatusCode)
	}
	if res, _ := r.send(t, at, nil, "Authorization", "Bearer "+adminToken, "X-Remora-User", "ada"); res.StatusCode != http.StatusNotFound {
		t.Errorf("the upload for a session limited to one user: status %d", res.StatusCode)
	}
	r.Close()
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%d files are left after the end, %v", len(left), err)
	}
}
