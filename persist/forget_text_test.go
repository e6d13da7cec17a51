package persist

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// TestForgetMemoriesForgetsTheSummary searches all that is kept for the words
// of a forgotten passage.
func TestForgetMemoriesForgetsTheSummary(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		p.settle(t, userTurn("t1", "Our dinner guests come from Lisbon. I'm allergic to peanuts and hazelnuts. Please forget my peanuts story."), userTurn("t2", "The guests of the dinner stay in Porto until Sunday."))
		if _, err := p.ForgetMemories(t.Context(), testScope, "t1.0"); err != nil {
			t.Fatal(err)
		}
		look := func(when string) {
			t.Helper()
			for _, b := range storage.Buckets() {
				page, err := store.Records(t.Context(), b, testScope, "", 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page.Records {
					if low := strings.ToLower(string(r.Value)); strings.Contains(low, "peanut") || strings.Contains(low, "hazelnut") || strings.Contains(low, "lisbon") {
						t.Errorf("%s: still in %s %s: %s", when, b, r.Key, r.Value)
					}
				}
			}
		}
		look("at once")
		p.settle(t, userTurn("t3", "The dinner with the guests is on Saturday."))
		look("after the next audit")
		time.Sleep(time.Hour)
		synctest.Wait()
		sums, err := p.Summaries(t.Context(), testScope)
		if err != nil || len(sums) != 1 || !strings.Contains(strings.Join(sums[0].Sentences, " "), "Porto") {
			t.Errorf("the rest of the summary: %+v, %v", sums, err)
		}
	})
}

// TestForgetReply forgets a reply before the audit: the user's words are
// audited, and the reply is nowhere.
func TestForgetReply(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		mustEnqueue(t, p.Pipeline, turnOf(testScope, "t1", "Remember that I live in Porto.", "The zebra crossing of the harbour is famous."))
		mustFlush(t, p.Pipeline)
		synctest.Wait()
		if _, err := p.ForgetMemories(t.Context(), testScope, "t1.1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		sums, err := p.Summaries(t.Context(), testScope)
		if err != nil || len(sums) != 1 || strings.Contains(strings.Join(sums[0].Sentences, " "), "zebra") {
			t.Errorf("summary: %+v, %v", sums, err)
		}
		if got := current(factsOf(t, store, testScope)); len(got) != 1 {
			t.Errorf("facts: %v", got)
		}
	})
}

// TestForgetQuotedDate checks that a date with a quotation mark in it is not
// part of the statement.
func TestForgetQuotedDate(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		p.settle(t, userTurn("t1", `My daughter's wedding is on March "5".`))
		if got := current(factsOf(t, store, testScope)); len(got) != 1 {
			t.Fatalf("facts: %v", got)
		}
		if _, err := p.ForgetMemories(t.Context(), testScope, "t1.0"); err != nil {
			t.Fatal(err)
		}
		if got := factsOf(t, store, testScope); len(got) > 0 {
			t.Errorf("left: %v", got[0].Text)
		}
	})
}
