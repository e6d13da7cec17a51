package recall

import (
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

const unwantedFor = "Which boat should I rent in Porto this summer?"

// unwantedMemories are two facts that answer questions about boats, of which
// one, and an exchange, are unwanted for questions such as unwantedFor.
func unwantedMemories(t *testing.T, e *Engine) []storage.Memory {
	t.Helper()
	tag, ok := e.UnwantedTag(unwantedFor)
	if !ok {
		t.Fatal("the example has no words")
	}
	ms := together(
		[]storage.Memory{factOf(1, "My sister Ada sails the boat Nautilus in Porto every summer.")},
		[]storage.Memory{factOf(2, "I want to rent a boat in Porto for two days this summer.")},
		exchange("c3", 3, "I once had to rent a boat in Porto, the Rabelo.", "The Rabelo boat is a fine one to rent in Porto."),
	)
	for _, i := range []int{0, 3} {
		ms[i].Tags = []string{"travel", tag}
	}
	return ms
}

// isUnwantedText reports whether a text is of what is unwanted.
func isUnwantedText(text string) bool {
	return strings.Contains(text, "Nautilus") || strings.Contains(text, "Rabelo")
}

// askUnwanted asks questions of the example's kind and others.
func askUnwanted(t *testing.T, e *Engine) {
	t.Helper()
	for question, unwanted := range map[string]bool{
		unwantedFor: true,
		"Tell me, in Porto, which boat is good to rent for the summer?":        true,
		"BOATS to rent: Porto, summer":                                         true,
		"renting boats in porto":                                               true,
		"what did we say about the boat in Porto that one could rent, by Ada?": true,
		"Which boat does my sister Ada sail?":                                  false,
		"Where does Ada sail the Nautilus?":                                    false,
		"Had I seen the Rabelo boat before?":                                   false,
	} {
		for _, more := range []Request{{}, {Lines: true}, {NoGate: true}, {Explain: true}, {NoPrivate: true}, {Allow: func(storage.Kind, []string) bool { return true }}} {
			ask := more
			ask.Scope, ask.Newest, ask.TopK, ask.BudgetTokens, ask.Cuts = alice, question, 20, 4000, true
			res, err := e.Recall(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(res.Memories, func(m Scored) bool { return isUnwantedText(m.Memory.Text) })
			cut := slices.ContainsFunc(res.Cut, func(c Cut) bool { return c.Reason == CutUnwanted })
			if found == unwanted || cut != unwanted {
				t.Errorf("%q, lines %t: found %t, cut %+v", question, ask.Lines, found, res.Cut)
			}
			ask.Unwanted = true
			if res, err = e.Recall(t.Context(), ask); err != nil || !slices.ContainsFunc(res.Memories, func(m Scored) bool { return isUnwantedText(m.Memory.Text) }) {
				t.Errorf("%q is not found if what is unwanted is asked for: %v", question, err)
			}
			if slices.ContainsFunc(res.Cut, func(c Cut) bool { return c.Reason == CutUnwanted }) {
				t.Errorf("%q: cut, though it is asked for: %+v", question, res.Cut)
			}
		}
	}
}

// A memory is left out for questions of the example's kind and for no others,
// in an index that came about in every way.
func TestUnwanted(t *testing.T) {
	tagging, _ := newEngine(t, patient(), nil)
	ms := unwantedMemories(t, tagging)
	t.Run("loaded", func(t *testing.T) {
		e, _ := newEngine(t, patient(), ms)
		askUnwanted(t, e)
	})
	t.Run("tagged afterwards", func(t *testing.T) {
		open := slices.Clone(ms)
		for i := range open {
			open[i].Tags = nil
		}
		e, _ := newEngine(t, patient(), open)
		recallIDs(t, e, Request{Newest: "hello there"})
		e.Add(alice, "", ms[:1])
		e.Add(alice, ms[2].Provenance.Turn, ms[2:])
		askUnwanted(t, e)
	})
	t.Run("from a snapshot", func(t *testing.T) {
		src := newDigesting(t, together(ms, town(1200)))
		loadedEngine(t, src).snapshots.saveAll(t.Context(), always)
		e := loadedEngine(t, src)
		if got := e.Stats(); got.Restored != 1 {
			t.Fatalf("got %+v, want a load from the snapshot", got)
		}
		askUnwanted(t, e)
	})
	t.Run("wanted again", func(t *testing.T) {
		e, _ := newEngine(t, patient(), ms)
		recallIDs(t, e, Request{Newest: "hello there"})
		again := ms[0]
		again.Tags = nil
		e.Add(alice, "", []storage.Memory{again})
		if got := recallIDs(t, e, Request{Newest: unwantedFor, NoGate: true}); !slices.Contains(got, again.ID) {
			t.Errorf("got %q, want %q among them", got, again.ID)
		}
	})
}
