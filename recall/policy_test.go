package recall

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// private tags memories as private.
func private(ms ...storage.Memory) []storage.Memory {
	for i := range ms {
		ms[i].Tags = append(slices.Clone(ms[i].Tags), storage.PrivateTag)
	}
	return ms
}

func isPrivate(m *storage.Memory) bool { return slices.Contains(m.Tags, storage.PrivateTag) }

// kept is the Allow of a request that must get nothing private. It says the
// same as NoPrivate.
func kept(_ storage.Kind, tags []string) bool { return !slices.Contains(tags, storage.PrivateTag) }

// askedOn is when the questions below are asked.
var askedOn = time.Date(2025, 6, 18, 15, 0, 0, 0, time.UTC) // a Wednesday

// policyMemories are memories of which one or more answer each of
// policyQuestions, some of them private.
func policyMemories() []storage.Memory {
	at := func(days int, ms []storage.Memory) []storage.Memory {
		for i := range ms {
			ms[i].EventTime = storage.TimeOf(askedOn.AddDate(0, 0, -days)) + storage.Time(i)
		}
		return ms
	}
	document := factOf(70, "The harbour manual says that the crane lifts nine tons.")
	document.ID, document.Kind, document.Conversation = "manual", storage.KindResource, ""
	open := factOf(71, "The harbour brochure says that the crane is yellow.")
	open.ID, open.Kind, open.Conversation = "brochure", storage.KindResource, ""
	named := said(72, "the kiln needs a new thermocouple")
	named.Provenance.Speaker, named.Conversation = "Melanie", "c72"
	asks := exchange("c30", 30, "Which paint suits the wooden fence?", "A breathable glaze named Lasurol suits the fence.")
	return together(
		at(40, private(factOf(1, "My sister Ada sails the boat Nautilus."))), at(40, []storage.Memory{factOf(2, "My sister Ada owns a boat shed.")}),
		at(41, private(factOf(3, "My son Leo is allergic to peanuts."))), at(41, []storage.Memory{factOf(4, "I'm allergic to latex and kiwi.")}),
		at(42, private(factOf(5, "My name is Zoe, and I'm 34 years old."))), at(42, []storage.Memory{factOf(6, "I hate treadmills.")}),
		at(20, []storage.Memory{asks[0], private(asks[1])[0]}), // the answer alone
		at(20, exchange("c31", 31, "Which paint suits the iron gate?", "A rust converter suits the gate.")),
		at(43, private(document)), at(43, []storage.Memory{open}), at(44, private(named)),
		at(8, exchange("c50", 50, "the staging database got a new name", "Noted.")),
		at(8, private(exchange("c51", 51, "the salary talk with my boss went badly", "I am sorry.")...)),
		at(2, exchange("c52", 52, "the parser of the billing service chokes on tabs", "Noted.")),
		at(1, private(exchange("c53", 53, "the letter of the clinic says it is benign", "Good news.")...)),
	)
}

// policyQuestions are answered in different ways. secret is in a private memory
// that answers, open in another that does; "" = there is none.
var policyQuestions = []struct {
	name         string
	ask          Request
	secret, open string
}{
	{"words", Request{Newest: "Which boat does my sister Ada sail?"}, "Nautilus", "shed"},
	{"ungated words", Request{Newest: "sister boat", NoGate: true}, "Nautilus", "shed"},
	{"borrowed words", Request{Newest: "and which?", Previous: func() string { return "Which boat does my sister Ada sail?" }}, "Nautilus", ""},
	{"a constraint", Request{Newest: "what should I cook tonight?"}, "peanuts", "kiwi"},
	{"all that is known", Request{Newest: "what do you know about me?"}, "Zoe", "treadmills"},
	{"a name", Request{Newest: "what's my name?"}, "Zoe", ""},
	{"an age", Request{Newest: "how old am I?"}, "34", ""},
	{"an answer", Request{Newest: "Which paint suits the wooden fence?"}, "Lasurol", ""},
	{"the question before an answer", Request{Newest: "Which paint suits the wooden fence?"}, "fence?", ""},
	{"a document", Request{Newest: "How many tons does the harbour crane lift?"}, "nine tons", ""},
	{"documents alone", Request{Newest: "harbour crane", Scopes: []SearchScope{Resources}, NoGate: true}, "nine tons", "brochure"},
	{"a speaker", Request{Newest: "what did Melanie say of the kiln?"}, "thermocouple", ""},
	{"where we were", Request{Newest: "where were we?"}, "clinic", ""},
	{"where we were, before", Request{Newest: "where were we?", Conversation: "c53x"}, "clinic", ""},
	{"a week", Request{Newest: "what did we do last week?"}, "salary", "staging"},
	{"a day", Request{Newest: "what did we talk about yesterday?"}, "clinic", ""},
	{"its own conversation", Request{Newest: "what about the letter of the clinic?", Conversation: "c53", Scopes: []SearchScope{CurrentChat}}, "clinic", ""},
}

// hasWord reports whether a result has a word.
func hasWord(res *Result, word string) bool {
	return slices.ContainsFunc(res.Memories, func(m Scored) bool { return strings.Contains(m.Memory.Text, word) })
}

// askPolicy asks all questions with and without the limits and checks what is
// returned.
func askPolicy(t *testing.T, e *Engine) {
	t.Helper()
	recall := func(q Request) Result {
		t.Helper()
		q.Scope, q.Now, q.TopK, q.BudgetTokens = alice, askedOn, 20, 4000
		res, err := e.Recall(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for _, tt := range policyQuestions {
		for _, lines := range []bool{false, true} {
			name := fmt.Sprintf("%s, lines %t", tt.name, lines)
			ask := tt.ask
			ask.Lines = lines
			if res := recall(ask); !hasWord(&res, tt.secret) {
				t.Errorf("%s: without limits %q is not found: the test shows nothing", name, tt.secret)
			} else if !slices.ContainsFunc(res.Memories, func(m Scored) bool { return isPrivate(&m.Memory) }) {
				t.Errorf("%s: what is private is not tagged: %+v", name, res.Memories)
			}
			for limit, set := range map[string]func(*Request){
				"NoPrivate": func(q *Request) { q.NoPrivate = true },
				"Allow":     func(q *Request) { q.Allow = kept },
				"both":      func(q *Request) { q.NoPrivate, q.Allow = true, kept },
			} {
				for _, explained := range []bool{false, true} {
					limited := ask
					set(&limited)
					limited.Explain = explained
					res := recall(limited)
					for i := range res.Memories {
						if m := &res.Memories[i].Memory; isPrivate(m) || strings.Contains(m.Text, tt.secret) {
							t.Errorf("%s, %s: got %q, which is private", name, limit, m.Text)
						}
					}
					if tt.open != "" && !hasWord(&res, tt.open) {
						t.Errorf("%s, %s: %q is left out, too", name, limit, tt.open)
					}
				}
			}
		}
	}
}

// TestNothingPrivateIsReturned asks for private memories in every way that
// questions are answered, of an index that came about in every way.
func TestNothingPrivateIsReturned(t *testing.T) {
	t.Run("loaded", func(t *testing.T) {
		e, _ := newEngine(t, patient(), policyMemories())
		askPolicy(t, e)
	})
	t.Run("added one by one", func(t *testing.T) {
		e, _ := newEngine(t, patient(), nil)
		recallIDs(t, e, Request{Newest: "hello there"})
		for _, m := range policyMemories() {
			e.Add(alice, "", []storage.Memory{m})
		}
		askPolicy(t, e)
	})
	t.Run("tagged afterwards", func(t *testing.T) {
		all := policyMemories()
		open := slices.Clone(all)
		for i := range open {
			open[i].Tags = nil
		}
		e, _ := newEngine(t, patient(), open)
		recallIDs(t, e, Request{Newest: "hello there"})
		for _, m := range all {
			if isPrivate(&m) {
				e.Add(alice, "", []storage.Memory{m})
			}
		}
		askPolicy(t, e)
	})
	t.Run("rebuilt", func(t *testing.T) {
		e, _ := newEngine(t, patient(), policyMemories())
		recallIDs(t, e, Request{Newest: "hello there"})
		for i := range 400 { // so many that their tombstones are cleared away
			m := said(1000+i, fmt.Sprintf("filler words of number %d", i))
			m.Conversation = "filler"
			e.Add(alice, m.Provenance.Turn, []storage.Memory{m})
			e.Add(alice, m.Provenance.Turn, nil)
		}
		s := resting(t, e)
		if s.ix.dead > 200 {
			t.Fatalf("%d tombstones: nothing was rebuilt", s.ix.dead)
		}
		askPolicy(t, e)
	})
	t.Run("from a snapshot", func(t *testing.T) {
		src := newDigesting(t, together(policyMemories(), town(1200)))
		e := loadedEngine(t, src)
		e.snapshots.saveAll(t.Context(), always)
		again := loadedEngine(t, src)
		if got := again.Stats(); got.Restored != 1 {
			t.Fatalf("got %+v, want a load from the snapshot", got)
		}
		askPolicy(t, again)
	})
}

// TestNothingForbiddenIsReturned gives many memories random kinds and tags, and
// asks with random limits.
func TestNothingForbiddenIsReturned(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	ms := town(2000)
	tags := []string{storage.PrivateTag, "work", "home", storage.ProjectTag + "p1"}
	kinds := []storage.Kind{storage.KindEpisode, storage.KindEpisode, storage.KindEpisode, storage.KindFact, storage.KindResource}
	byID, turns := map[string]*storage.Memory{}, map[string][]*storage.Memory{}
	for i := range ms {
		m := &ms[i]
		m.Tags = nil
		for _, tag := range tags {
			if r.IntN(4) == 0 {
				m.Tags = append(m.Tags, tag)
			}
		}
		m.Kind, byID[m.ID] = kinds[r.IntN(len(kinds))], m
		turns[turnKey(m).id] = append(turns[turnKey(m).id], m)
	}
	src := newDigesting(t, ms)
	fresh := loadedEngine(t, src)
	fresh.snapshots.saveAll(t.Context(), always)
	restored := loadedEngine(t, src)
	if got := restored.Stats(); got.Restored != 1 {
		t.Fatalf("got %+v, want a load from the snapshot", got)
	}
	found, forbidden := 0, 0
	for range 300 {
		var kind storage.Kind
		var tag string
		if r.IntN(2) == 0 {
			kind = kinds[r.IntN(len(kinds))]
		}
		if r.IntN(2) == 0 {
			tag = tags[r.IntN(len(tags))]
		}
		ask := Request{Scope: alice, Newest: ms[r.IntN(len(ms))].Text, NoGate: r.IntN(2) == 0, Lines: r.IntN(2) == 0, Explain: r.IntN(2) == 0, NoPrivate: r.IntN(2) == 0, TopK: 1 + r.IntN(30)}
		open := ask
		if kind != "" || tag != "" {
			ask.Allow = func(k storage.Kind, has []string) bool {
				return (kind == "" || k == kind) && (tag == "" || slices.Contains(has, tag))
			}
		}
		for _, e := range []*Engine{fresh, restored} {
			res, err := e.Recall(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			for i := range res.Memories {
				found++
				m := byID[res.Memories[i].Memory.ID]
				for _, other := range turns[turnKey(m).id] { // what was said in one exchange is not torn apart
					if ask.NoPrivate && isPrivate(other) || ask.Allow != nil && !ask.Allow(other.Kind, other.Tags) {
						t.Errorf("got a %s with %q, whose turn has a %s with %q, for kind %q, tag %q, NoPrivate %t",
							m.Kind, m.Tags, other.Kind, other.Tags, kind, tag, ask.NoPrivate)
					}
				}
			}
			open.NoPrivate, open.Allow = false, nil
			all, err := e.Recall(t.Context(), open)
			if err != nil {
				t.Fatal(err)
			}
			for i := range all.Memories {
				if m := byID[all.Memories[i].Memory.ID]; ask.NoPrivate && isPrivate(m) || ask.Allow != nil && !ask.Allow(m.Kind, m.Tags) {
					forbidden++
				}
			}
		}
	}
	if found < 500 || forbidden < 500 {
		t.Errorf("%d were found, and %d forbidden: the test shows little", found, forbidden)
	}
}

// A memory whose tag is taken away again is found, and a turn without its
// private passage, too.
func TestPrivateNoLonger(t *testing.T) {
	turn := exchange("c1", 1, "my cat Tom likes tuna", "The vet named Rex is far away.")
	turn[1] = private(turn[1])[0]
	e, _ := newEngine(t, patient(), together(turn, texts("", "tea is green")[1:]))
	cat := Request{Newest: "What does my cat Tom like?", NoPrivate: true}
	wantIDs(t, "one passage is private", recallIDs(t, e, cat))
	open := turn[1]
	open.Tags = nil
	e.Add(alice, "", []storage.Memory{open})
	wantIDs(t, "none is any more", recallIDs(t, e, cat), turn[0].ID)
	e.Add(alice, turn[0].Provenance.Turn, turn)
	wantIDs(t, "the turn anew", recallIDs(t, e, cat))
	e.Forget(alice, turn[1].ID)
	wantIDs(t, "without the private passage", recallIDs(t, e, cat), turn[0].ID)
}

// Explain tells what the limits have left out.
func TestExplainListsWhatPolicyLeftOut(t *testing.T) {
	ms := policyMemories()
	e, _ := newEngine(t, patient(), ms)
	for _, tt := range policyQuestions {
		for _, limit := range []string{"NoPrivate", "Allow", "NoPrivate, not explained"} {
			ask := tt.ask
			ask.Scope, ask.Now, ask.TopK, ask.BudgetTokens, ask.Explain, ask.Cuts = alice, askedOn, 20, 4000, limit != "NoPrivate, not explained", true
			open, err := e.Recall(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			if ask.NoPrivate = limit != "Allow"; !ask.NoPrivate {
				ask.Allow = kept
			}
			got, err := e.Recall(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			var want, cut []string
			for i := range open.Memories {
				m := &open.Memories[i].Memory
				if slices.ContainsFunc(ms, func(o storage.Memory) bool { return turnKey(&o) == turnKey(m) && isPrivate(&o) }) {
					want = append(want, m.ID)
				}
			}
			for _, c := range got.Cut {
				if c.Reason == CutPolicy {
					if cut = append(cut, c.ID); c.Score <= 0 {
						t.Errorf("%s: %s has no score", tt.name, c.ID)
					}
				}
			}
			slices.Sort(want)
			slices.Sort(cut)
			if diff := cmp.Diff(want, cut); diff != "" || len(cut) == 0 {
				t.Errorf("%s, %s: left out (-want +got):\n%s", tt.name, limit, diff)
			}
			if slices.ContainsFunc(open.Cut, func(c Cut) bool { return c.Reason == CutPolicy }) {
				t.Errorf("%s: something is left out although nothing is forbidden", tt.name)
			}
			ask.Explain, ask.Cuts = false, false
			if got, err := e.Recall(t.Context(), ask); err != nil || len(got.Cut) > 0 {
				t.Errorf("%s: not explained: %v, %v", tt.name, got.Cut, err)
			}
		}
	}
	// What the request carries was not left out because of the limits.
	ask := policyQuestions[0].ask
	ask.Scope, ask.Explain, ask.NoPrivate, ask.VisibleIDs = alice, true, true, map[string]struct{}{ms[0].ID: {}}
	got, err := e.Recall(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range got.Cut {
		if c.ID == ms[0].ID && c.Reason == CutPolicy {
			t.Errorf("what the request carries is cut as %s", c.Reason)
		}
	}
}

// If the time does not suffice to explain, the result is there nevertheless.
func TestExplainTakesNothingAway(t *testing.T) {
	e, _ := newEngine(t, patient(), policyMemories())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := 0
	res, err := e.Recall(ctx, Request{Scope: alice, Newest: "and which?", NoPrivate: true, Explain: true, Previous: func() string {
		if calls++; calls > 1 { // the search that explains
			cancel()
		}
		return "What does my sister Ada own?"
	}})
	if err != nil || !hasWord(&res, "shed") || ctx.Err() == nil {
		t.Errorf("got %+v, %v, after %d searches", res.Memories, err, calls)
	}
}

// What only its vector finds is left out as well.
func TestNothingPrivateIsFoundByVectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		em := newFake()
		ms := memories(200)
		ms[50].Text = "Zinc roofs hum during squalls"
		ms[50] = private(ms[50])[0]
		em.like["Which metal sings overhead?"] = ms[50].Text
		e := vectorEngine(t, em, newLocal(ms))
		settled(t, e, alice)
		for _, lines := range []bool{false, true} {
			for _, noGate := range []bool{false, true} {
				ask := Request{Scope: alice, Newest: "Which metal sings overhead?", Lines: lines, NoGate: noGate}
				if got := recallIDs(t, e, ask); !slices.Contains(got, ms[50].ID) {
					t.Errorf("without limits: got %v, want the roof: the test shows nothing", got)
				}
				noPrivate, allow := ask, ask
				noPrivate.NoPrivate, allow.Allow = true, kept
				for _, ask := range []Request{noPrivate, allow} {
					if got := recallIDs(t, e, ask); slices.Contains(got, ms[50].ID) {
						t.Errorf("lines %t, NoGate %t: got the roof, which is private", lines, noGate)
					}
					ask.Explain = true
					res, err := e.Recall(t.Context(), ask)
					if err != nil || res.Vectors != VectorsUsed || hasWord(&res, "Zinc") {
						t.Fatalf("explained: %s, %v, %+v", res.Vectors, err, res.Memories)
					}
					if !slices.ContainsFunc(res.Cut, func(c Cut) bool { return c.ID == ms[50].ID && c.Reason == CutPolicy }) {
						t.Errorf("lines %t, NoGate %t: the roof is not among those left out: %+v", lines, noGate, res.Cut)
					}
				}
			}
		}
	})
}

// BenchmarkLimits measures what the limits cost a search.
func BenchmarkLimits(b *testing.B) {
	ms := town(20_000)
	for name, set := range map[string]func(*Request){
		"none":      func(*Request) {},
		"NoPrivate": func(q *Request) { q.NoPrivate = true },
		"Allow":     func(q *Request) { q.Allow = kept },
	} {
		b.Run(name, func(b *testing.B) {
			for i := range ms {
				if ms[i].Tags = nil; i%10 == 0 {
					ms[i].Tags = []string{storage.PrivateTag}
				}
			}
			e, _ := newEngine(b, patient(), ms)
			recallIDs(b, e, Request{Newest: "hello there"})
			i := 0
			for b.Loop() {
				ask := Request{Scope: alice, Newest: ms[i%len(ms)].Text, Lines: true}
				set(&ask)
				if _, err := e.Recall(b.Context(), ask); err != nil {
					b.Fatal(err)
				}
				i += 37
			}
		})
	}
}
