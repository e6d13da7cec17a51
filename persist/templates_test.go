package persist

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

const templateText = "Prepare the release of the current branch for our shop. First look at the diff against the last tag and group what has changed by package. " +
	"Always name the person that has made a change in brackets behind it. Then bring the change log up to date and propose the next version. " +
	"Our releases are cut from the branch named stable on Tuesdays."

func templateTurn(conversation, id, question string) Turn {
	t := turnOf(testScope, id, question, "The change log is up to date, and the next version of the shop is 4.2, to be cut from stable.")
	t.Conversation = conversation
	return t
}

// TestTemplatesMakeNoFacts checks that what comes back word for word in another
// conversation makes no fact, and loses those that it has made; what a person
// adds to it, and what people say of themselves, does.
func TestTemplatesMakeNoFacts(t *testing.T) {
	withPipeline(t, func(cfg *Config) { cfg.Audit.PerAudit = 20 }, func(t *testing.T, p running, store *faulty, _ *indexed) {
		p.settle(t, templateTurn("one", "t1", templateText))
		first := strings.Join(factsIn(t, store, testScope), "\n")
		if !strings.Contains(first, "cut from the branch named stable") {
			t.Fatalf("the text makes no fact, so that the test shows nothing: %q", first)
		}
		p.settle(t, templateTurn("two", "t2", templateText+" I am allergic to walnuts and the release is for my brother Edwin in Ghent."))
		got := strings.Join(factsIn(t, store, testScope), "\n")
		if strings.Contains(got, "branch named stable") {
			t.Errorf("the template's facts stay: %q", got)
		}
		if !strings.Contains(got, "allergic to walnuts") {
			t.Errorf("what a person has added is gone: %q", got)
		}
		if n := p.Metrics().Rejections["template"]; n == 0 {
			t.Error("no sentence is counted as a template's")
		}
	})
	own := "I am a nurse and I live in Ghent with my wife Edda. I am allergic to walnuts and I have two sons called Tom and Piet. " +
		"My shift begins at six on Mondays and I take the train to work. We bought a small house near the canal and my garden has four apple trees."
	withPipeline(t, func(cfg *Config) { cfg.Audit.PerAudit = 20 }, func(t *testing.T, p running, store *faulty, _ *indexed) {
		for i := range 3 {
			p.settle(t, templateTurn(fmt.Sprint("c", i), fmt.Sprint("t", i), own))
		}
		if got := strings.Join(factsIn(t, store, testScope), "\n"); !strings.Contains(got, "allergic to walnuts") {
			t.Errorf("what somebody says of themselves is gone: %q", got)
		}
	})
}

// TestTemplatesLeaveWhatWasGiven checks that facts which people gave on purpose
// outlive a template with their words, that an import is no other conversation,
// and that what one user says changes nothing for another.
func TestTemplatesLeaveWhatWasGiven(t *testing.T) {
	const release, order = "Our releases are cut from the branch named stable on Tuesdays.", "Always name the person that has made a change in brackets behind it."
	imported := templateTurn("old", "i1", templateText)
	imported.Source = facts.SourceImport + ":file"
	other := templateTurn("theirs", "o1", templateText)
	other.Scope.User = "somebody else"
	for _, tt := range []struct {
		name  string
		given []storage.Memory
		turns []Turn
		want  string
		kept  bool
	}{
		{"made by audits", nil, []Turn{templateTurn("one", "t1", templateText), templateTurn("two", "t2", templateText)}, release, false},
		{"by hand", []storage.Memory{given(release)}, []Turn{templateTurn("one", "t1", templateText), templateTurn("two", "t2", templateText)}, release, true},
		{"asked for", nil, []Turn{templateTurn("zero", "t0", "Please remember that "+release), templateTurn("one", "t1", templateText), templateTurn("two", "t2", templateText)}, release, true},
		{"a standing order", nil, []Turn{templateTurn("zero", "t0", order), templateTurn("one", "t1", templateText), templateTurn("two", "t2", templateText)}, order, true},
		{"an import", nil, []Turn{templateTurn("one", "t1", templateText), imported}, release, true},
		{"another user", nil, []Turn{other, templateTurn("one", "t1", templateText)}, release, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withPipeline(t, func(cfg *Config) { cfg.Audit.PerAudit = 20 }, func(t *testing.T, p running, store *faulty, _ *indexed) {
				if tt.given != nil {
					p.remember(t, tt.given...)
				}
				for _, turn := range tt.turns {
					p.settle(t, turn)
				}
				got := strings.Join(factsIn(t, store, testScope), "\n")
				if kept := strings.Contains(strings.ToLower(got), strings.ToLower(strings.TrimSuffix(tt.want, "."))); kept != tt.kept {
					t.Errorf("kept %t: %q", kept, got)
				}
			})
		})
	}
}

// TestTemplatesOfErasedUsers checks that an erasure clears the sketch.
func TestTemplatesOfErasedUsers(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, _ *faulty, _ *indexed) {
		p.settle(t, templateTurn("one", "t1", templateText))
		if len(p.auditor.templates.scopes) != 1 {
			t.Fatal("no sketch: the test shows nothing")
		}
		if _, err := p.ForgetUser(t.Context(), testScope); err != nil {
			t.Fatal(err)
		}
		if n := len(p.auditor.templates.scopes); n != 0 {
			t.Errorf("%d sketches", n)
		}
	})
}

func TestTemplatesAreBounded(t *testing.T) {
	if size := unsafe.Sizeof(sketch{}.places); size > 256<<10 {
		t.Errorf("a sketch has %d bytes", size)
	}
	s := newTemplates()
	key := func(user string, conversation int) conversationKey {
		return conversationKey{scope: storage.Scope{Tenant: "t", App: "a", Project: "p", User: user}, conversation: fmt.Sprint(conversation)}
	}
	for i := range 3 * maxSketches {
		s.read(key(fmt.Sprint("user", i), 1), templateText)
	}
	if len(s.scopes) > maxSketches {
		t.Errorf("%d sketches", len(s.scopes))
	}
	for range 2 {
		if s.read(key("x", 1), templateText) != nil {
			t.Error("a text is a template in its own conversation")
		}
	}
	for i := range 20_000 { // much else is said
		s.read(key("x", i), fmt.Sprintf("the %d list of %d things that somebody wrote down %d and %d and never looked at again after %d", i, i*7, i*3, i*11, i))
	}
	s.read(key("y", 1), templateText)
	if got := s.read(key("y", 2), templateText); got == nil || !got.holds("Our releases are cut from the branch named stable on Tuesdays.") || got.holds("I am allergic to walnuts.") {
		t.Errorf("in a second conversation: %+v", got)
	}
	short := "Run the linter first. Always fix what it warns of. We use strict mode here."
	for i, want := range []bool{false, false, true} {
		if got := s.read(key("z", i), short) != nil; got != want {
			t.Errorf("a short text in conversation %d is a template: %t", i, got)
		}
	}
	for i, conversation := range []int{0, 1, 0, 1} { // two, in turns
		if s.read(key("v", conversation), short) != nil {
			t.Errorf("a short text is a template in two conversations, the %dth time", i+1)
		}
	}
}

// TestQuotedTurnsAreTagged checks the tags of turns in which "I" is somebody
// else, and that role play makes no facts.
func TestQuotedTurnsAreTagged(t *testing.T) {
	for text, want := range map[string]string{
		"Translate to Polish: I live in Bergen and I am allergic to walnuts.": storage.QuotedTag,
		"I live in Bergen and I am allergic to walnuts.":                      "",
		"Translate the menu, please. I live in Bergen.":                       "",
	} {
		got := ""
		for _, e := range episodesOf(turnOf(testScope, "t", text, "Fine."), 0, nil, 1<<20) {
			got = strings.Join(e.Tags, ",")
		}
		if got != want {
			t.Errorf("%q: tags %q, want %q", text, got, want)
		}
	}
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		turn := userTurn("t1", "My name is Thalor and I live in the caves of Mirn. I am allergic to silver.")
		turn.RolePlay = true
		p.settle(t, turn)
		if got := factsIn(t, store, testScope); len(got) > 0 {
			t.Errorf("facts of a role: %q", got)
		}
		page, err := store.Scan(t.Context(), testScope, storage.Query{})
		if err != nil || len(page.Memories) == 0 || strings.Join(page.Memories[0].Tags, ",") != storage.RolePlayTag {
			t.Errorf("memories %+v, %v", page.Memories, err)
		}
	})
}
