package extract

import (
	"strings"
	"testing"
)

func TestRejections(t *testing.T) {
	for text, want := range map[string]string{
		"fix this URL: https://example.org/a//b":               RejectCommand,
		"What is my name?":                                     RejectQuestion,
		"Could you remember the last file?":                    RejectQuestion,
		"thanks a lot":                                         RejectSmallTalk,
		"I'm getting an error in line 3.":                      RejectPassing,
		"I have a question about maps.":                        RejectPassing,
		"if (x == null) { return y; }":                         RejectCode,
		"It is allergic to nuts.":                              RejectNothing,
		"Forget it, let's go on.":                              RejectCommand,
		"Schreib mir bitte eine Liste.":                        RejectCommand,
		"Peux-tu m'aider avec ce code ?":                       RejectQuestion,
		"Arregla el error, por favor.":                         RejectCommand,
		strings.Repeat("I like tea and many words. "[:26], 20): RejectLong,
	} {
		sp := judge(text)
		if sp.candidate != nil || sp.reject != want {
			got := sp.reject
			if sp.candidate != nil {
				got = "candidate " + sp.candidate.Quote
			}
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if sp := judge("I'm allergic to nuts, what can I bake?"); sp.candidate == nil || sp.candidate.Quote != "I'm allergic to nuts" {
		t.Errorf("a fact in a question: got %+v", sp)
	}
	if sp := judge("Please forget my old address."); sp.forget == "" {
		t.Errorf("forget: got %+v", sp)
	}
}

// TestNamesVersusProducts checks that what products love and hate is no one's
// taste, and that names are not products.
func TestNamesVersusProducts(t *testing.T) {
	for text, want := range map[string]bool{
		"Anna loves sushi.": true, "McCoy hates rain.": true, "Anne-Marie loves jazz.": true, "Claude hates cheese.": true, "Noah can't have dairy.": true, "Users can't have two roles.": false, "Tables can not have null keys.": false, "Ida is afraid of dogs.": true,
		"Docker loves root.": false, "TypeScript hates any.": false, "Webpack hates circular imports.": false, "ESLint hates semicolons.": false,
	} {
		if got := judge(text).candidate != nil; got != want {
			t.Errorf("%q: got candidate %t, want %t", text, got, want)
		}
	}
}

// TestHypotheticals checks that a supposition states nothing about its speaker,
// while a standing wish may have an "if".
func TestHypotheticals(t *testing.T) {
	for text, want := range map[string]bool{
		"If I lived in Paris, I would take the metro every day.":       false,
		"I would take the metro every day if I lived in Paris.":        false,
		"Wenn ich in Paris leben würde, hätte ich einen Hund.":         false,
		"Si j'habitais à Paris, je prendrais le métro tous les jours.": false,
		"If I ask for code, always use Python.":                        true,
		"I'm allergic to nuts, so tell me if I can eat that.":          true,
	} {
		if got := judge(text).candidate != nil; got != want {
			t.Errorf("%q: candidate %v, want %v", text, got, want)
		}
	}
}
