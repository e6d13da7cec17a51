package recall

import (
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

var workshop = together(
	exchange("c1", 1, "we use pnpm, not npm. please delete the lock file", "Done."),
	exchange("c1", 2, "always run the linter before committing", "Understood."),
	exchange("c1", 3, "the warehouse is called depot_7, it lives on the host north", "Noted."),
	exchange("c1", 4, "run the tests", "One test fails, it is off by one cent."),
	exchange("c1", 5, "fix it", "Fixed, all 61 tests pass."),
	exchange("c1", 6, "commit", "Committed."),
	exchange("c2", 7, "let's go with redis, the keys live for a minute", "Agreed. I'll write the cache module, here is the cache code."),
	exchange("c2", 8, "name the capital of France", "Paris."),
	exchange("c2", 9, "your teapot is ready, 2 cups of it", "Lovely."),
)

// A command recalls neither the same command of another day nor what happened
// around it.
func TestCommandsAreNotEchoed(t *testing.T) {
	e, _ := newEngine(t, patient(), workshop)
	for _, command := range []string{"run the tests", "commit", "Commit this", "please commit"} {
		wantLines(t, command, recallLines(t, e, Request{Newest: command}), "user: always run the linter before committing")
	}
	if got := recallLines(t, e, Request{Newest: "what did you say when I told you to run the tests?"}); !slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, "cent") || strings.Contains(l, "run the tests") }) {
		t.Errorf("a question: got %q", got)
	}
	wantLines(t, "sums", recallLines(t, e, Request{Newest: "what's 2+2?"}))
}

// A decision of the user is shown with the answer that implements it, and
// before it.
func TestDecisionsAreShownWithTheirAnswers(t *testing.T) {
	e, _ := newEngine(t, patient(), workshop)
	wantLines(t, "cache", recallLines(t, e, Request{Newest: "what about the cache module?"}),
		"user: let's go with redis, the keys live for a minute", "assistant: Agreed. I'll write the cache module, here is the cache code.")
	if got := recallLines(t, e, Request{Newest: "what about the cache module?", TopK: 1}); len(got) != 1 {
		t.Errorf("topK 1: got %q", got)
	}
}

// Texts to translate and role play do not answer questions about the user.
// Questions about these texts find them.
func TestFictionIsNotAboutTheUser(t *testing.T) {
	ms := texts(`translate this to German: "I live in Lisbon with my boyfriend."`, "lol imagine I live on a yacht", "I live in Kiel by the sea",
		"Übersetze ins Englische: Ich wohne in Passau am Inn", "次の文を英語に訳してください：「私はパリに住んでいます。」")
	e, _ := newEngine(t, patient(), ms)
	foreign, _ := newEngine(t, patient(), ms[3:])
	for question, want := range map[string][]string{
		"where do I live?":                        {"user: I live in Kiel by the sea"},
		"Wo wohne ich?":                           nil,
		"私はどこに住んでいますか？":                           nil,
		"what did I ask you to translate?":        {"user: " + ms[0].Text},
		"what was it that I imagine, on a yacht?": {"user: " + ms[1].Text},
	} {
		in := e
		if want == nil {
			in = foreign
		}
		got := recallLines(t, in, Request{Newest: question})
		if len(want) > 0 && len(got) > 0 {
			got = got[:1]
		}
		wantLines(t, question, got, want...)
	}
}

// Small talk in scripts without spaces is not shown, and particles that every
// sentence has are no terms.
func TestSmallTalkInScriptsWithoutSpaces(t *testing.T) {
	e, _ := newEngine(t, patient(), together(
		exchange("c1", 1, "先週、京都に引っ越しました", "おめでとうございます。"),
		exchange("c1", 2, "娘は卵アレルギーがあります", "承知しました。"),
		exchange("c1", 3, "来週の火曜日に歯医者に行きます", "もちろんです。"),
		exchange("c2", 4, "我们项目用的是Postgres", "好的。"),
		exchange("c2", 5, "我住在上海", "明白了。"),
	))
	wantLines(t, "ja", recallLines(t, e, Request{Newest: "どこに引っ越しましたか？"}), "user: 先週、京都に引っ越しました")
	for _, question := range []string{"おめでとうはいつですか？", "明白什么了？"} {
		if got := recallLines(t, e, Request{Newest: question, NoGate: false}); len(got) > 0 && strings.HasPrefix(got[0], "assistant") {
			t.Errorf("%s: got %q", question, got)
		}
	}
	if got := recallLines(t, e, Request{Newest: "我住在哪里？"}); len(got) == 0 || got[0] != "user: 我住在上海" {
		t.Errorf("zh: got %q", got)
	}
}

// A Spanish introduction is read as Spanish, although its function words are
// also French.
func TestLanguageOfIntroductions(t *testing.T) {
	e, _ := newEngine(t, patient(), texts("Hola, me llamo Javier, vivo en Valencia y trabajo de arquitecto"))
	for _, question := range []string{"¿dónde vivo?", "¿cómo me llamo?"} {
		if got := recallIDs(t, e, Request{Newest: question}); len(got) != 1 {
			t.Errorf("%s: got %v", question, got)
		}
	}
}

// factOf returns a fact about the user.
func factOf(turn int, text string) storage.Memory {
	m := said(turn, `"`+text+`"`)
	m.ID, m.Kind = "f"+m.ID, storage.KindFact
	return m
}
