package persist

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// outdatedIn returns the texts of a scope's episodes that have the tag.
func outdatedIn(t *testing.T, store *faulty) (out []string) {
	t.Helper()
	page, err := store.Scan(t.Context(), testScope, storage.Query{Kinds: []storage.Kind{storage.KindEpisode}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range page.Memories {
		if slices.Contains(m.Tags, storage.OutdatedTag) {
			out = append(out, m.Text)
		}
	}
	return out
}

// TestPassagesOfSupersededFacts checks that passages of superseded statements
// have the tag, in the store and the index, as long as something newer holds.
func TestPassagesOfSupersededFacts(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, index *indexed) {
		index.panic = "at none"
		first := inConversation("c1", 9*time.Hour, "t1", "I live in Berlin. My sister is called Ines.")()
		first.Project = "p1"
		p.settle(t, first)
		if got := outdatedIn(t, store); len(got) > 0 {
			t.Errorf("before: %q", got)
		}
		p.settle(t, inConversation("c2", 8*time.Hour, "t2", "I live in Munich.")())
		want := []string{"I live in Berlin. My sister is called Ines."}
		if diff := cmp.Diff(want, outdatedIn(t, store)); diff != "" {
			t.Errorf("superseded (-want +got):\n%s", diff)
		}
		index.mu.Lock()
		told := slices.ContainsFunc(index.turns[""], func(m storage.Memory) bool {
			return slices.Equal(m.Tags, []string{storage.ProjectTag + "p1", storage.OutdatedTag})
		})
		index.mu.Unlock()
		if !told {
			t.Error("the index was not updated")
		}
		if _, err := p.ForgetConversation(t.Context(), testScope, "c2"); err != nil {
			t.Fatal(err)
		}
		if got := outdatedIn(t, store); len(got) > 0 {
			t.Errorf("it holds again: %q", got)
		}
		p.settle(t, inConversation("c3", 10*time.Hour, "t3", "I live in Porto.")()) // told late
		if diff := cmp.Diff([]string{"I live in Porto."}, outdatedIn(t, store)); diff != "" {
			t.Errorf("said late (-want +got):\n%s", diff)
		}
	})
}

// TestReplacedTurnsKeepOutdatedTag checks that a regenerated reply rewrites a
// turn's passages with the tag, and that a changed turn takes back what it had
// superseded.
func TestReplacedTurnsKeepOutdatedTag(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		p.settle(t, inConversation("c1", 9*time.Hour, "t1", "I live in Berlin.")())
		p.settle(t, inConversation("c2", 8*time.Hour, "t2", "I live in Munich.")())
		again := inConversation("c1", 9*time.Hour, "t1", "I live in Berlin.")()
		again.Messages[1].Text = "Another answer, about the mint tea."
		p.settle(t, again)
		if diff := cmp.Diff([]string{"I live in Berlin."}, outdatedIn(t, store)); diff != "" {
			t.Errorf("with another reply (-want +got):\n%s", diff)
		}
		p.settle(t, inConversation("c2", 8*time.Hour, "t2", "I like Munich a lot, but only in summer.")())
		if got := outdatedIn(t, store); len(got) > 0 {
			t.Errorf("taken back: %q", got)
		}
	})
}

// TestOutdatedPassagesKeepOriginals checks that a tagged passage keeps the
// originals of personal data, and that the index gets none.
func TestOutdatedPassagesKeepOriginals(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, index *indexed) {
		index.panic = "at none"
		p.settle(t, inConversation("c1", 9*time.Hour, "t1", "I live in Berlin. Write to anna@example.org about it.")())
		p.settle(t, inConversation("c2", 8*time.Hour, "t2", "I live in Munich.")())
		kept := func() (n int) {
			for _, m := range memories(t, store, testScope) {
				n += len(m.Redactions)
			}
			return n
		}
		if n := len(outdatedIn(t, store)); n != 1 || kept() == 0 {
			t.Errorf("%d passages are marked, %d originals kept", n, kept())
		}
		if _, err := p.ForgetConversation(t.Context(), testScope, "c2"); err != nil { // which takes the mark away
			t.Fatal(err)
		}
		if kept() == 0 {
			t.Error("the originals are lost")
		}
		index.mu.Lock()
		defer index.mu.Unlock()
		if slices.ContainsFunc(index.turns[""], func(m storage.Memory) bool { return m.Redactions != nil }) {
			t.Error("the index was handed originals")
		}
	})
}

// TestOutdatedTagYieldsToNewVersion checks that a turn that is replaced while
// the tag of its old words waits for the store keeps the new words.
func TestOutdatedTagYieldsToNewVersion(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, index *indexed) {
		p.settle(t, inConversation("c1", 9*time.Hour, "t1", "I live in Berlin. The harbour is nice.")())
		marking := make(chan struct{})
		healed := false
		store.setFault(func(method string, _ int) (error, bool) {
			if method != "Put" || healed {
				return nil, false
			}
			for _, w := range store.lastPut() {
				for _, m := range w.Memories {
					if slices.Contains(m.Tags, storage.OutdatedTag) {
						healed = true
						close(marking)
						return storage.ErrUnavailable, false
					}
				}
			}
			return nil, false
		})
		mustEnqueue(t, p.Pipeline, inConversation("c2", 8*time.Hour, "t2", "I live in Munich.")())
		settled := make(chan error, 1)
		go func() { settled <- p.Settle(t.Context()) }()
		<-marking
		mustEnqueue(t, p.Pipeline, inConversation("c1", 9*time.Hour, "t1", "The harbour of Porto is nice.")())
		mustFlush(t, p.Pipeline)
		if err := <-settled; err != nil {
			t.Fatal(err)
		}
		if err := p.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		m, err := store.Memory(t.Context(), testScope, storage.TurnMemoryID("t1", 0))
		if err != nil {
			t.Fatal(err)
		}
		if want := "The harbour of Porto is nice."; m.Text != want || len(m.Tags) > 0 {
			t.Errorf("got %q with %q, want %q", m.Text, m.Tags, want)
		}
	})
}
