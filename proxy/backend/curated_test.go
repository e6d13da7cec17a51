package backend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func curatedIn(t testing.TB, dir string) (*Curated, *lines) {
	t.Helper()
	log := &lines{}
	c, err := NewCurated(CuratedConfig{Dir: dir}, nil, deps(log))
	if err != nil {
		t.Fatal(err)
	}
	return c, log
}

func recalled(t testing.TB, c *Curated, r recall.Request) (out []string) {
	t.Helper()
	res, err := c.Recall(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range res.Memories {
		if m.Memory.Kind != storage.KindCurated || m.Memory.ID == "" {
			t.Errorf("%+v", m.Memory)
		}
		out = append(out, m.Memory.Provenance.Speaker+": "+m.Memory.Text)
	}
	return out
}

// in is a request of a conversation.
func in(conversation string, set ...func(*recall.Request)) recall.Request {
	r := ask("Hello!")
	r.Conversation = conversation
	for _, f := range set {
		f(&r)
	}
	return r
}

func continued(r *recall.Request) {
	r.Previous, r.VisibleChains = func() string { return "before" }, make([][16]byte, 2)
}

// A conversation gets the files as they are at its first turn, and nothing
// later.
func TestFrozenSnapshot(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, MemoryFile, "# Notes\n\n- The build is slow, hunter2.\r\n")
	write(t, dir, UserFile, "Ines likes tea.")
	c, _ := curatedIn(t, dir)
	want := "[MEMORY.md: # Notes MEMORY.md: - The build is slow, [PASSWORD]. USER.md: Ines likes tea.]"
	if got := fmt.Sprint(recalled(t, c, in("one"))); got != want {
		t.Errorf("got %s", got)
	}
	write(t, dir, UserFile, "Ines likes coffee.")
	if got := recalled(t, c, in("one", continued)); len(got) != 0 {
		t.Errorf("a later turn gets %q", got)
	}
	visible := func(r *recall.Request) { r.VisibleIDs = map[string]struct{}{"curated:USER.md:1": {}} }
	if got := recalled(t, c, in("after a restart", continued, visible)); len(got) != 0 {
		t.Errorf("a conversation that carries a snapshot gets %q", got)
	}
	if got := recalled(t, c, in("two")); len(got) != 3 || got[2] != "USER.md: Ines likes coffee." {
		t.Errorf("the next conversation gets %q", got)
	}
	if got := recalled(t, c, in("two")); len(got) != 3 {
		t.Errorf("a first turn that is sent again gets %q", got)
	}
	if got := recalled(t, c, in("of an agent that begins with its setup", continued)); len(got) != 3 {
		t.Errorf("after a setup it gets %q", got)
	}
	long := func(r *recall.Request) { r.VisibleChains = make([][16]byte, 5) }
	if got := recalled(t, c, in("begun before", continued, long)); len(got) != 0 {
		t.Errorf("a conversation that began before gets %q", got)
	}
	deny := func(r *recall.Request) { r.Allow = func(storage.Kind, []string) bool { return false } }
	if got := recalled(t, c, in("elsewhere", deny)); len(got) != 0 {
		t.Errorf("against the policy it gets %q", got)
	}
}

// A conversation that began when there were no files gets none.
func TestNoFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	c, _ := curatedIn(t, dir)
	if got := recalled(t, c, in("one")); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, UserFile, "Ines likes tea.")
	if got := recalled(t, c, in("one", continued)); len(got) != 0 {
		t.Errorf("a later turn gets %q", got)
	}
	if got := recalled(t, c, in("two")); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// Files are cut at a line, and so is what a conversation gets.
func TestCuratedBounds(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, MemoryFile, strings.Repeat("0123456789abcde\n", 10_000))
	write(t, dir, UserFile, "Ines likes tea.")
	c, log := curatedIn(t, dir)
	got := recalled(t, c, in("one"))
	if n := len(strings.Join(got, "\n- ")); n > 15_000 || n < 14_000 {
		t.Errorf("%d lines with %d bytes", len(got), n)
	}
	if !strings.Contains(log.String(), "is left out") || strings.Contains(log.String(), "0123456789") {
		t.Errorf("log %s", log)
	}
	c.cfg.MaxBytes = 1 << 20
	if got = recalled(t, c, in("two")); len(got) != MaxCuratedFile/16+1 {
		t.Errorf("%d lines", len(got))
	}
	for _, line := range got[:len(got)-1] {
		if line != "MEMORY.md: 0123456789abcde" {
			t.Fatalf("a line is cut: %q", line)
		}
	}
	write(t, dir, MemoryFile, strings.Repeat("ä", 3000)+" end\n\xff\xfe")
	got = recalled(t, c, in("three"))
	if joined := strings.ReplaceAll(strings.Join(got, ""), "MEMORY.md: ", ""); !strings.HasPrefix(joined, strings.Repeat("ä", 3000)+" end") || len(got) != 4 {
		t.Errorf("%d lines: %.60q", len(got), joined)
	}
}

// Only regular files of the directory are read.
func TestCuratedFilesOnly(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, "secret", "SECRET")
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, MemoryFile)); err != nil {
		t.Skip("needs symbolic links: ", err)
	}
	c, _ := curatedIn(t, dir)
	if res, err := c.Recall(t.Context(), in("one")); err == nil {
		t.Errorf("a link out of the directory is followed: %v", res)
	}
	if err := os.Remove(filepath.Join(dir, MemoryFile)); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "real.md", "Inside.")
	if err := os.Symlink("real.md", filepath.Join(dir, MemoryFile)); err != nil { // as a mounted ConfigMap has them
		t.Fatal(err)
	}
	if got := recalled(t, c, in("one")); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	if err := os.Mkdir(filepath.Join(dir, UserFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Recall(t.Context(), in("two")); err == nil {
		t.Error("a directory is a file")
	}
}

// The files of each user are their own where the memory tool keeps them.
func TestFilesOfUsers(t *testing.T) {
	read := func(_ context.Context, scope storage.Scope, name string) (string, error) {
		switch {
		case name == MemoryFile:
			return "", storage.ErrNotFound
		case scope.User == "ines":
			return "Ines likes tea.", nil
		}
		return "Omar likes coffee.", nil
	}
	c, err := NewCurated(CuratedConfig{}, read, deps(&lines{}))
	if err != nil {
		t.Fatal(err)
	}
	as := func(user string) func(*recall.Request) { return func(r *recall.Request) { r.Scope.User = user } }
	for range 3 {
		if got := fmt.Sprint(recalled(t, c, in("one", as("ines")))); got != "[USER.md: Ines likes tea.]" {
			t.Errorf("ines gets %s", got)
		}
		if got := fmt.Sprint(recalled(t, c, in("one", as("omar")))); got != "[USER.md: Omar likes coffee.]" {
			t.Errorf("omar gets %s", got)
		}
	}
}

// Files that can't be read in time, or at all, are an error, and the
// conversation still gets them later.
func TestCuratedFailures(t *testing.T) {
	hang := make(chan struct{})
	fails := errors.New("broken")
	read := func(ctx context.Context, scope storage.Scope, name string) (string, error) {
		switch scope.User {
		case "hangs":
			<-hang
		case "fails":
			return "", fails
		case "panics":
			panic("hunter2")
		}
		return "Tea.", nil
	}
	c, err := NewCurated(CuratedConfig{}, read, deps(&lines{}))
	if err != nil {
		t.Fatal(err)
	}
	as := func(user string) recall.Request {
		return in("one", func(r *recall.Request) { r.Scope.User = user })
	}
	for range maxReading + 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := c.Recall(ctx, as("hangs")); !errors.Is(err, recall.ErrTimeout) {
			t.Errorf("hangs: %v", err)
		}
		cancel()
	}
	close(hang)
	if got := recalled(t, c, as("hangs")); len(got) != 2 {
		t.Errorf("later it gets %q", got)
	}
	if _, err := c.Recall(t.Context(), as("fails")); !errors.Is(err, fails) {
		t.Errorf("fails: %v", err)
	}
	if _, err := c.Recall(t.Context(), as("panics")); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("panics: %v", err)
	}
	eventually(t, "no read is under way", func() bool { runtime.Gosched(); return len(c.reading) == 0 })
}

// Nothing that passes is stored.
func TestCuratedStoresNothing(t *testing.T) {
	dir := t.TempDir()
	c, _ := curatedIn(t, dir)
	if err := c.Enqueue(turnOf("one", "I like tea.", "Noted.")); err != nil || c.Dropped() != 1 {
		t.Errorf("%v, %d dropped", err, c.Dropped())
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("files %v, %v", files, err)
	}
	if loaded, _ := c.Loaded(storage.Scope{}); !loaded {
		t.Error("it is not loaded")
	}
}

func TestConversationsAreBounded(t *testing.T) {
	var c conversations
	for i := range 2 * maxConversations {
		r := in(fmt.Sprint(i))
		c.add(&r)
		if !c.has(&r) {
			t.Fatalf("conversation %d is not remembered", i)
		}
	}
	if n := len(c.hashes); n > maxConversations {
		t.Errorf("%d are kept", n)
	}
}
