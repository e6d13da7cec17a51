package ledger

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

var journalScope = storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}

// journalled returns a ledger with a journal in dir.
func journalled(t *testing.T, local storage.Local, dir, secret string) *Ledger {
	t.Helper()
	l := New(DefaultConfig(), local, discarding, time.Now)
	if err := l.OpenJournal(dir, []byte(secret)); err != nil {
		t.Fatal(err)
	}
	return l
}

// enterDurably enters a block at a turn, and waits for the journal.
func enterDurably(t *testing.T, l *Ledger, s *Entries, i int) {
	t.Helper()
	h := Hash{Lo: uint64(i)}
	w := Walk{ledger: l, entries: s, Chain: []Hash{h}}
	in := Injection{Conversation: "c", Placement: dialect.BeforeUser, Block: fence.Block{Text: "the code is 4711"}}
	if duplicate, stale := w.Enter(in, false); duplicate != nil || stale {
		t.Fatal("not entered")
	}
	w.Confirm()
	if !w.Stored(time.Minute) {
		t.Fatalf("turn %d is not in the journal", i)
	}
}

// files returns the journal's files, joined.
func files(t *testing.T, dir string) (paths []string, content []byte) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+journalSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, b...)
	}
	return paths, content
}

// What is in the journal outlives the process, sealed, until the store has it.
func TestJournalOutlivesTheProcess(t *testing.T) {
	local, dir := storagetest.Memory(), t.TempDir()
	l := journalled(t, local, dir, "secret")
	s := groupOf(l, journalScope)
	await(t, s)
	const turns = 5
	for i := range turns {
		enterDurably(t, l, s, i)
	}
	if _, content := files(t, dir); len(content) == 0 || bytes.Contains(content, []byte("4711")) || bytes.Contains(content, []byte(journalScope.User+journalScope.Tenant)) {
		t.Error("the journal is empty, or not sealed")
	}
	if len(storedSegments(t, local)) > 0 {
		t.Fatal("the store has it already: the test shows nothing")
	}
	// The process is gone. A last frame may be cut.
	paths, _ := files(t, dir)
	f, err := os.OpenFile(paths[len(paths)-1], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write([]byte{0, 0, 1, 0, 7})
	_ = f.Close()

	l = journalled(t, local, dir, "secret")
	s = groupOf(l, journalScope)
	if await(t, s); len(s.entries) != turns || l.Dropped() != 0 {
		t.Fatalf("%d entries after a restart, %d dropped; want %d and 0", len(s.entries), l.Dropped(), turns)
	}
	enterDurably(t, l, s, turns)
	if !l.Flush(t.Context()) {
		t.Fatal("not written")
	}
	l.store.journal.settle(t.Context())
	if paths, _ := files(t, dir); len(paths) > 0 {
		t.Errorf("the store has everything, and the journal still %d files", len(paths))
	}
	l = journalled(t, local, dir, "secret")
	s = groupOf(l, journalScope)
	if await(t, s); len(s.entries) != turns+1 {
		t.Errorf("%d entries are stored, want %d", len(s.entries), turns+1)
	}
}

// A journal of another installation, or a damaged one, is counted and gone.
func TestUnreadableJournal(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"another secret": func(string) error { return nil },
		"no head":        func(path string) error { return os.Truncate(path, 5) },
		"a flipped bit": func(path string) error {
			b, err := os.ReadFile(path)
			if err == nil {
				b[len(b)-1] ^= 1
				err = os.WriteFile(path, b, 0o600)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			local, dir := storagetest.Memory(), t.TempDir()
			l := journalled(t, local, dir, "secret")
			s := groupOf(l, journalScope)
			await(t, s)
			enterDurably(t, l, s, 1)
			paths, _ := files(t, dir)
			if err := damage(paths[0]); err != nil {
				t.Fatal(err)
			}
			secret := "secret"
			if name == "another secret" {
				secret = name
			}
			l = journalled(t, local, dir, secret)
			s = groupOf(l, journalScope)
			if await(t, s); len(s.entries) != 0 || l.Dropped() != 1 {
				t.Errorf("%d entries and %d dropped, want 0 and 1", len(s.entries), l.Dropped())
			}
			enterDurably(t, l, s, 2)
			l.Flush(t.Context())
			l.store.journal.settle(t.Context())
			if paths, _ := files(t, dir); len(paths) > 0 {
				t.Errorf("%d files are left", len(paths))
			}
		})
	}
}

// Where nothing can be written, answers end all the same; once it can be again,
// what follows is durable.
func TestJournalThatFails(t *testing.T) {
	local, dir := storagetest.Memory(), filepath.Join(t.TempDir(), "journal")
	l := journalled(t, local, dir, "secret")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s := groupOf(l, journalScope)
	await(t, s)
	w := Walk{ledger: l, entries: s, Chain: []Hash{{Lo: 1}}}
	w.Enter(Injection{Conversation: "c", Block: fence.Block{Text: "x"}}, false)
	w.Confirm()
	if began := time.Now(); w.Stored(time.Minute) || time.Since(began) > 10*time.Second {
		t.Error("the answer waited for a journal that fails, or did not hear of it")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	time.Sleep(retryDelay)
	enterDurably(t, l, s, 2)
	again := journalled(t, local, dir, "secret")
	if s = groupOf(again, journalScope); s.await(t.Context()) != nil || len(s.entries) != 1 {
		t.Errorf("%d entries, want the one that was written", len(s.entries))
	}
}

// Over its bounds nothing more is written, and answers end.
func TestJournalIsBounded(t *testing.T) {
	j := &journal{wake: make(chan struct{}, 1)} // which nobody writes, as where the disk hangs
	row := func(b []byte) []byte { return append(b, make([]byte, 64<<10)...) }
	n := 0
	for ; n < 1000; n++ {
		if b, _ := j.append(row); b == nil {
			break
		}
	}
	if n != maxRows/(64<<10) {
		t.Errorf("%d rows wait, want %d", n, maxRows/(64<<10))
	}
	j = &journal{wake: make(chan struct{}, 1), written: maxJournal}
	if b, _ := j.append(row); b != nil {
		t.Error("the journal grows beyond its bound")
	}
}

// A conversation that was begun here, and then comes with its history, is the
// same whether the store is asked or not, and none of its turns is there twice.
func TestBegunHereAndLoaded(t *testing.T) {
	local := storagetest.Memory()
	l := journalled(t, local, t.TempDir(), "secret")
	s := l.group(groupKey{journalScope, Hash{Hi: 1}})
	enterDurably(t, l, s, 1)
	l.Flush(t.Context())
	l.load(s)
	if await(t, s); len(s.entries) != 1 || len(s.entries[Hash{Lo: 1}].variants) != 1 {
		t.Errorf("%d entries, %d variants; want one of each", len(s.entries), len(s.entries[Hash{Lo: 1}].variants))
	}
}

// What goes on in memory needs no store; only what is cold does.
func TestOnlyColdConversationsAreRead(t *testing.T) {
	mem := storagetest.Memory()
	message := func(role dialect.Role, n uint64) dialect.Message {
		return dialect.Message{Role: role, Hash: Hash{Lo: n}}
	}
	first := &dialect.Request{Messages: []dialect.Message{message(dialect.RoleUser, 1)}}
	second := &dialect.Request{Turn: 2, Messages: []dialect.Message{message(dialect.RoleUser, 1), message(dialect.RoleAssistant, 2), message(dialect.RoleUser, 3)}}
	another := &dialect.Request{Turn: 2, Messages: []dialect.Message{message(dialect.RoleUser, 4), message(dialect.RoleAssistant, 2), message(dialect.RoleUser, 3)}}
	l := New(DefaultConfig(), mem, discarding, time.Now)
	ask := func(l *Ledger, req *dialect.Request) (Walk, error) {
		f := l.Find(Seed{Scope: journalScope, Secret: []byte("secret")}, req, nil)
		err := f.Await(t.Context())
		return f.Walk(WalkOptions{Blind: err != nil}), err
	}
	enter := func(w Walk) {
		w.Enter(Injection{Conversation: "c", Placement: dialect.BeforeUser, Block: fence.Block{Text: "x"}}, false)
		w.Confirm()
		w.Sent().NoteAnswer(dialect.Reply{Text: "x"})
	}
	w, err := ask(l, first)
	if err != nil {
		t.Fatal(err)
	}
	enter(w)
	mem.Fail(true)
	if w, err = ask(l, second); err != nil || len(w.Replays) != 1 {
		t.Errorf("the store is away: %v, %d replays; want 1", err, len(w.Replays))
	}
	enter(w)
	if _, err = ask(l, another); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("a conversation that may be stored: %v", err)
	}
	mem.Fail(false)
	if w, err = ask(l, another); err != nil || len(w.Replays) != 0 {
		t.Errorf("a conversation that is new here: %v, %d replays", err, len(w.Replays))
	}
	if l.group(groupKey{journalScope, w.Chain[0]}).load == nil {
		t.Error("the first to come with a history was not looked for")
	}
	if l.Flush(t.Context()); len(storedSegments(t, mem)) == 0 {
		t.Fatal("nothing is stored")
	}
	again := New(DefaultConfig(), mem, discarding, time.Now)
	if w, err = ask(again, second); err != nil || len(w.Replays) != 2 {
		t.Errorf("after a restart: %v, %d replays; want 2", err, len(w.Replays))
	}
	if w, err = ask(again, another); err != nil || again.group(groupKey{journalScope, w.Chain[0]}).load != nil {
		t.Errorf("a conversation that is not stored was read (%v)", err)
	}
}

// Of two conversations that begin alike, the one that is stored goes on as it
// was, although the other was begun since.
func TestBegunAlikeAfterARestart(t *testing.T) {
	mem := storagetest.Memory()
	hello := dialect.Message{Role: dialect.RoleUser, Hash: Hash{Lo: 1}}
	ask := func(l *Ledger, answer uint64) Walk {
		req := &dialect.Request{Messages: []dialect.Message{hello}}
		if answer > 0 {
			req.Messages = append(req.Messages, dialect.Message{Role: dialect.RoleAssistant, Hash: Hash{Lo: answer}}, dialect.Message{Role: dialect.RoleUser, Hash: Hash{Lo: 9}})
			req.Turn = 2
		}
		f := l.Find(Seed{Scope: journalScope, Secret: []byte("secret")}, req, nil)
		if err := f.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		return f.Walk(WalkOptions{})
	}
	begin := func(l *Ledger, conversation, text string) {
		w := ask(l, 0)
		w.Enter(Injection{Conversation: newPrefix + conversation, Placement: dialect.BeforeUser, Block: fence.Block{Text: text}}, false)
		w.Confirm()
		w.Sent().NoteAnswer(dialect.Reply{Text: "Hello, " + conversation})
	}
	l := New(DefaultConfig(), mem, discarding, time.Now)
	begin(l, "one", "block of one")
	if w := ask(l, 2); len(w.Replays) != 1 { // and one goes on, which is stored with what follows it
		t.Fatalf("%d replays", len(w.Replays))
	}
	l.Flush(t.Context())
	later := func() time.Time { return time.Now().Add(time.Hour) }
	l = New(DefaultConfig(), mem, discarding, later)
	begin(l, "two", "block of two")
	if w := ask(l, 2); len(w.Replays) != 1 || w.Replays[0].Block.Text != "block of one" {
		t.Errorf("the first conversation goes on with %v", w.Replays)
	}
	l.Flush(t.Context())
	l = New(DefaultConfig(), mem, discarding, later)
	if w := ask(l, 2); len(w.Replays) != 1 || w.Replays[0].Block.Text != "block of one" {
		t.Errorf("after another restart it goes on with %v", w.Replays)
	}
}

// More than the limit is not stored: what was not used for longest goes first.
func TestStoredIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.MaxStored = 1 << 20
		mem := storagetest.Memory()
		l := New(cfg, mem, discarding, time.Now)
		text := func(i int) string { // which can't be compressed
			b := make([]byte, 0, 8<<10)
			for h := (Hash{Lo: uint64(i)}); len(b) < 8<<10; h = extend(h, h) {
				b = appendHash(b, h)
			}
			return string(b)
		}
		const n = 400
		for i := range n {
			s := l.group(groupKey{journalScope, Hash{Hi: uint64(i + 1)}})
			s.write(Hash{Lo: uint64(i)}, &variant{Injection: Injection{Conversation: "c", Block: fence.Block{Text: text(i)}}}, "", -1, s.forgets)
			s.confirm(Hash{Lo: uint64(i)}, nil, nil)
			if !l.Flush(t.Context()) {
				t.Fatal("not written")
			}
			l.store.disk.trimStored(t.Context())
			time.Sleep(time.Hour)
		}
		size := int64(0)
		var roots []uint64
		for _, r := range storedSegments(t, mem) {
			size += storedSize(r)
		}
		for i := range n {
			if refs, err := l.store.disk.refs(t.Context(), groupKey{journalScope, Hash{Hi: uint64(i + 1)}}); err == nil && len(refs) > 0 {
				roots = append(roots, uint64(i))
			}
		}
		if size > cfg.MaxStored+16<<10 || len(roots) < 80 || l.Trimmed() != int64(n-len(roots)) {
			t.Errorf("%d bytes of %d conversations are stored, %d were trimmed", size, len(roots), l.Trimmed())
		}
		if !slices.IsSorted(roots) || roots[len(roots)-1] != n-1 || roots[0] != uint64(n-len(roots)) {
			t.Errorf("conversations %d to %d of %d are left, want the newest", roots[0], roots[len(roots)-1], n)
		}
	})
}
