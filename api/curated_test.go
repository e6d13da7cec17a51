package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

var curator = Principal{Admin: true, By: "test"}

// newCurated returns a service whose pipeline runs until the test ends.
func newCurated(t *testing.T, change func(*persist.Config)) (*Service, *storagetest.Mem) {
	t.Helper()
	store, cfg := storagetest.Memory(), persist.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	red, err := redact.New(redact.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	engine := recall.New(recall.DefaultConfig(), store, nil, nil)
	pipe := persist.New(cfg, store, store, engine, red, nil, nil)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = pipe.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		engine.Close()
	})
	who := identity.DefaultConfig()
	who.Loopback = true
	return New(Config{}, Deps{Store: store, Pipeline: pipe, Engine: engine, Identity: identity.New(who, nil)}), store
}

// tree returns the paths and contents of a user's files.
func tree(t *testing.T, s *Service, who Target) string {
	t.Helper()
	files, err := s.Files(t.Context(), curator, who)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		whole, err := s.ReadFile(t.Context(), curator, who, f.Path)
		if err != nil || whole.Path != f.Path || whole.Size != len(whole.Content) || f.Content != "" || f.Size != whole.Size {
			t.Errorf("%s: listed as %+v, read as %+v: %v", f.Path, f, whole, err)
		}
		out = append(out, f.Path+"="+whole.Content)
	}
	return strings.Join(out, " ")
}

func TestFiles(t *testing.T) {
	s, store := newCurated(t, nil)
	ctx, alice, bob := t.Context(), Target{User: "alice"}, Target{User: "bob"}
	write := func(path, content string) File {
		t.Helper()
		f, err := s.WriteFile(ctx, curator, alice, path, content, "a test")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	check := func(want string) {
		t.Helper()
		if got := tree(t, s, alice); got != want {
			t.Errorf("files %q, not %q", got, want)
		}
	}
	first := write("/memories/a", "one")
	if again := write("/memories//a/", "two\n"); again.ID != first.ID || again.Version != 2 || again.Path != "/memories/a" || again.Content != "two\n" {
		t.Errorf("%+v, then %+v", first, again)
	}
	write("/memories/d/b", "")
	check("/memories/a=two\n /memories/d/b=")
	if got := tree(t, s, bob); got != "" {
		t.Errorf("bob has %q", got)
	}
	m, err := s.Get(ctx, curator, alice, first.ID, false)
	if err != nil || m.Kind != string(storage.KindCurated) || len(m.Tags) != 1 || m.Tags[0] != "file:/memories/a" {
		t.Errorf("%+v, %v", m, err)
	}

	// A rename keeps the file and its history.
	if err := s.RenameFile(ctx, curator, alice, "/memories/a", "/memories/d/a", ""); err != nil {
		t.Fatal(err)
	}
	check("/memories/d/a=two\n /memories/d/b=")
	if f, err := s.ReadFile(ctx, curator, alice, "/memories/d/a"); err != nil || f.ID != first.ID {
		t.Errorf("%+v, %v", f, err)
	}
	if other := write("/memories/a", "three"); other.ID == first.ID {
		t.Error("a new file has the id of one that was renamed")
	}
	if _, err := s.Undo(ctx, curator, alice, first.ID, ""); err != nil { // back to a path that is taken
		t.Fatal(err)
	}
	files, err := s.Files(ctx, curator, alice)
	if err != nil || len(files) != 2 {
		t.Errorf("%+v, %v", files, err)
	}
	gone, err := s.DeleteFile(ctx, curator, alice, "/memories/a", "")
	if err != nil || len(gone.Deleted) != 2 || gone.UndoUntil == "" {
		t.Errorf("%+v, %v", gone, err)
	}
	check("/memories/d/b=")

	// What is made anew under the path of a deleted file outlives it.
	fresh := write("/memories/a", "four")
	if fresh.Version != 1 {
		t.Errorf("%+v", fresh)
	}
	if _, err := s.Pipeline.Purge(ctx, time.Now().Add(2*persist.UndoTime)); err != nil {
		t.Fatal(err)
	}
	check("/memories/a=four /memories/d/b=")
	if _, err := s.DeleteFile(ctx, curator, alice, "/memories/d", ""); err != nil {
		t.Fatal(err)
	}
	check("/memories/a=four")
	write("/memories/d/b", "a turn")
	write("/memories/d/b", "a turn for the worse")
	check("/memories/a=four /memories/d/b=a turn for the worse")

	// A change of the tags leaves the file its path.
	tags := []string{"mine"}
	if _, err := s.Update(ctx, curator, alice, fresh.ID, 0, Patch{Tags: &tags}); err != nil {
		t.Fatal(err)
	}
	check("/memories/a=four /memories/d/b=a turn for the worse")
	store.Fail(true)
	if _, err := s.Files(ctx, curator, alice); !errors.Is(err, storage.ErrUnavailable) {
		t.Error(err)
	}
}

func TestFileErrors(t *testing.T) {
	s, _ := newCurated(t, nil)
	ctx, alice := t.Context(), Target{User: "alice"}
	if _, err := s.WriteFile(ctx, curator, alice, "/memories/d/f", "x", ""); err != nil {
		t.Fatal(err)
	}
	write := func(path, content, why string) error {
		_, err := s.WriteFile(ctx, curator, alice, path, content, why)
		return err
	}
	read := func(path string) error {
		_, err := s.ReadFile(ctx, curator, alice, path)
		return err
	}
	remove := func(path string) error {
		_, err := s.DeleteFile(ctx, curator, alice, path, "")
		return err
	}
	rename := func(from, to string) error { return s.RenameFile(ctx, curator, alice, from, to, "") }
	long := "/memories/" + strings.Repeat("x", MaxFilePath-len("/memories/"))
	if err := write(long, "x", ""); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{write("/memories", "x", ""), "path: is the directory of all files"},
		{write("/etc/passwd", "x", ""), "path: must begin with /memories"},
		{write("/memories2/a", "x", ""), "path: must begin with /memories"},
		{write("/memories/../a", "x", ""), "path: must not hold .. as a part"},
		{write("/memories/%2E./a", "x", ""), "path: must not hold backslashes or encoded dots and slashes"},
		{write(`/memories/a\..\b`, "x", ""), "path: must not hold backslashes or encoded dots and slashes"},
		{write(long+"x", "x", ""), "path: must have at most 123 bytes of printable UTF-8"},
		{write("/memories/a\nb", "x", ""), "path: must have at most 123 bytes of printable UTF-8"},
		{write("/memories/d", "x", ""), "path: is a directory"},
		{write("/memories/d/f/g", "x", ""), "path: has a file where a directory would be"},
		{write("/memories/a", strings.Repeat("x", MaxFile+1), ""), "content: must have at most 65536 bytes of UTF-8"},
		{write("/memories/a", "\xff", ""), "content: must have at most 65536 bytes of UTF-8"},
		{write("/memories/a", "x", strings.Repeat("x", MaxReason+1)), "why: must have at most 512 bytes of UTF-8"},
		{read("/memories/a"), Detail(ErrNotFound)},
		{read("/memories/d"), Detail(ErrNotFound)},
		{remove("/memories"), "path: is the directory of all files"},
		{remove("/memories/a"), Detail(ErrNotFound)},
		{rename("/memories", "/memories/a"), "from: is the directory of all files"},
		{rename("/memories/d", "/memories"), "to: is the directory of all files"},
		{rename("/memories/a", "/memories/b"), Detail(ErrNotFound)},
		{rename("/memories/d/f", "/memories/d"), "path: exists already"},
		{rename("/memories/d", "/memories/d/x"), "to: lies in what would be moved there"},
		{rename(long, "/memories/d/f/x"), "to: has a file where a directory would be"},
		{rename("/memories/d", long+"x"), "to: must have at most 123 bytes of printable UTF-8"},
		{rename("/memories/d", "/memories/"+strings.Repeat("y", 112)), "to: makes a path longer than 123 bytes"},
	} {
		if tt.err == nil || Detail(tt.err) != tt.want {
			t.Errorf("%v, not %q", tt.err, tt.want)
		}
	}
	if _, err := s.ReadFile(ctx, Principal{Admin: true, User: "bob"}, alice, "/memories/d/f"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := s.Files(ctx, Principal{}, alice); !errors.Is(err, ErrUnauthorized) {
		t.Error(err)
	}
}

// TestFilesAreWhole: a pipeline that keeps less of a text than a file may have
// refuses the file, and leaves the one there as it was.
func TestFilesAreWhole(t *testing.T) {
	s, _ := newCurated(t, func(c *persist.Config) { c.MaxMessageBytes = 8 << 10 })
	ctx, alice := t.Context(), Target{User: "alice"}
	small, large := strings.Repeat("words of a file\n", 400), strings.Repeat("words of a file\n", 2000)
	if _, err := s.WriteFile(ctx, curator, alice, "/memories/new", large, ""); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if got := tree(t, s, alice); got != "" {
		t.Errorf("%d bytes are left", len(got))
	}
	if _, err := s.WriteFile(ctx, curator, alice, "/memories/old", small, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteFile(ctx, curator, alice, "/memories/old", large, ""); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if got := tree(t, s, alice); got != "/memories/old="+small {
		t.Errorf("%d bytes are left", len(got))
	}
}

func TestManyFiles(t *testing.T) {
	s, store := newCurated(t, nil)
	ctx, alice := t.Context(), Target{User: "alice"}
	if _, err := s.WriteFile(ctx, curator, alice, "/memories/0", "x", ""); err != nil {
		t.Fatal(err)
	}
	scope, err := s.scope(curator, alice)
	if err != nil {
		t.Fatal(err)
	}
	var ms []storage.Memory
	for i := 1; i < MaxFiles; i++ {
		path := fmt.Sprintf("/memories/%d", i)
		ms = append(ms, storage.Memory{ID: fileID(path, 0), Kind: storage.KindCurated, Text: "x", Tags: []string{fileTag + path}, Trust: 1})
	}
	for len(ms) > 0 {
		n := min(len(ms), 100)
		if err := store.Put(ctx, []storage.Write{{Scope: scope, Memories: ms[:n]}}); err != nil {
			t.Fatal(err)
		}
		ms = ms[n:]
	}
	if _, err := s.WriteFile(ctx, curator, alice, "/memories/more", "x", ""); err == nil || Detail(err) != "path: there are 1000 files, as many as a user may have" {
		t.Error(err)
	}
	if _, err := s.WriteFile(ctx, curator, alice, "/memories/7", "y", ""); err != nil {
		t.Error(err)
	}
	if gone, err := s.DeleteFile(ctx, curator, alice, "/memories/7", ""); err != nil || len(gone.Deleted) != 1 {
		t.Error(gone, err)
	}
	if _, err := s.WriteFile(ctx, curator, alice, "/memories/more", "x", ""); err != nil {
		t.Error(err)
	}
}
