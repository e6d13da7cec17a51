package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
)

// Constraints share no word with the request they apply to, nor its language.
func TestConstraints(t *testing.T) {
	facts := []string{
		"My son Leo is allergic to peanuts.", "Ich vertrage keine Laktose.", "Soy alérgica a los mariscos.", "I always use pnpm, never npm.", "My sister Lena loves Japanese ceramics.",
		"Ida is afraid of dogs.", "I'm on azathioprine 150 mg.", "I use a wheelchair on bad days.", "I prefer distroless images.", "卵アレルギーがあります",
	}
	ms := make([]storage.Memory, len(facts))
	for i, text := range facts {
		ms[i] = factOf(i+1, text)
	}
	e, _ := newEngine(t, patient(), together(ms, texts("the parser chokes on tabs", "ok", "wir treffen uns am Freitag", "el contrato está firmado y es de mi padre")))
	for question, want := range map[string][]int{
		"what should I cook tonight?":                  {0, 1, 2, 9},
		"recommend a restaurant":                       {0, 1, 2, 9},
		"What's for dinner?":                           {0, 1, 2, 9},
		"Was soll ich heute kochen?":                   {0, 1, 2, 9},
		"Empfiehl mir ein Restaurant":                  {0, 1, 2, 9},
		"¿Qué puedo cocinar hoy?":                      {0, 1, 2, 9},
		"Qu'est-ce que je peux cuisiner ce soir ?":     {0, 1, 2, 9},
		"今晩何を作ればいいですか？":                                {0, 1, 2, 9},
		"install lodash":                               {3},
		"please add zod as a dependency":               {3},
		"what present could I buy for Lena?":           {4},
		"Was könnte ich Lena zum Geburtstag schenken?": {4},
		"should we get a puppy?":                       {5},
		"can I take ibuprofen with that?":              {0, 6, 9, 2},
		"recommend a hotel in Lisbon":                  {7},
		"write a Dockerfile for the api":               {8},
	} {
		got := recallIDs(t, e, Request{Newest: question})
		found := 0
		for _, i := range want {
			if slices.Contains(got, ms[i].ID) {
				found++
			}
		}
		if found != min(len(want), maxConstraints) || len(got) > maxConstraints {
			t.Errorf("%q: got %v, want %d of %v alone", question, got, maxConstraints, want)
		}
	}
	for _, question := range []string{
		"What did I cook last week?", "How many recipes do I have for soup that freeze well?", "we had dinner with the whole team yesterday", "what is the capital of Mongolia?", "thanks!",
		"where do I take yoga classes?", "explain how the scheduler of the kernel picks a task", "what did Lena give me as a present?",
	} {
		for _, id := range recallIDs(t, e, Request{Newest: question}) {
			if id != ms[4].ID { // of whom one question is
				t.Errorf("%q: got %s, want no constraint", question, id)
			}
		}
	}
}

func TestConstraintsInScriptsWithoutSpaces(t *testing.T) {
	ms := []storage.Memory{factOf(1, "卵アレルギーがあります"), factOf(2, "妻は紅茶が好きです"), factOf(3, "我对花生过敏"), factOf(4, "パラレルワールドの話です"), factOf(5, "エネルギーが足りない")}
	e, _ := newEngine(t, patient(), ms)
	for question, want := range map[string][]string{
		"今晩何を作ればいいですか？": {ms[2].ID, ms[0].ID}, "おすすめのレシピを教えて": {ms[2].ID, ms[0].ID}, "今晚吃什么好？": {ms[2].ID, ms[0].ID}, "妻へのプレゼントは何がいい？": {ms[1].ID},
	} {
		got := recallIDs(t, e, Request{Newest: question})
		slices.Sort(got)
		slices.Sort(want)
		wantIDs(t, question, got, want...)
	}
}

// Statements that are not facts yet count if they are preferences or always
// hold.
func TestConstraintsBeforeTheyAreFacts(t *testing.T) {
	always := texts("I always use pnpm, never npm. And conventional commits.", "I ran npm once", "yarn is what they said, never npm")
	tools, _ := newEngine(t, patient(), always)
	wantIDs(t, "always", recallIDs(t, tools, Request{Newest: "install lodash"}), always[0].ID)
	ms := texts("Docker loves root, so our images fail the scan. I prefer distroless images.", "Docker with distroless images is what they said")
	e, _ := newEngine(t, patient(), ms)
	wantIDs(t, "a wish", recallIDs(t, e, Request{Newest: "write a Dockerfile for the api"}), ms[0].ID)
}

// Ingredients and the like count if something always holds. What others said
// and long messages do not count.
func TestNoConstraints(t *testing.T) {
	ms := []storage.Memory{
		factOf(1, "I had fish with potatoes."), factOf(2, "I don't eat fish."), said(3, "hope your allergies are better"),
		said(4, "I am writing a long post "+strings.Repeat("about gardens, trees, roads ", 20)+"and vegan shoes"),
		factOf(5, "Anna loves tulips."),
	}
	e, _ := newEngine(t, patient(), ms)
	wantIDs(t, "always holds", recallIDs(t, e, Request{Newest: "what should I cook tonight?"}), ms[1].ID)
	wantIDs(t, "another's present", recallIDs(t, e, Request{Newest: "what present could I buy for Ralf?"}))
	res := explained(t, e, "what should I cook tonight?")
	if len(res.Memories) != 1 || len(res.Memories[0].Parts) != 1 || res.Memories[0].Parts[0].Name != PartConstraint {
		t.Errorf("explained: got %+v, want the one part %s", res.Memories, PartConstraint)
	}
}

// Constraints come first, are limited in number, and are not repeated if they
// are visible.
func TestConstraintsAndWords(t *testing.T) {
	ms := []storage.Memory{factOf(1, "My son Leo is allergic to peanuts."), factOf(2, "I'm vegetarian."), factOf(3, "Mia is lactose intolerant."), factOf(4, "Tom is diabetic.")}
	for i := range 12 {
		ms = append(ms, said(10+i, fmt.Sprintf("we cook dinner number %d in the garden", i)))
	}
	e, _ := newEngine(t, patient(), ms)
	got := recallIDs(t, e, Request{Newest: "what should I cook for dinner in the garden?"})
	shown := 0
	for i, id := range got {
		if slices.ContainsFunc(ms[:4], func(m storage.Memory) bool { return m.ID == id }) {
			if shown++; i != shown-1 {
				t.Errorf("got %s at %d, want it before all else", id, i)
			}
		}
	}
	if shown != maxConstraints || len(got) != 8 {
		t.Errorf("got %d of %d constraints, want %d of 8", shown, len(got), maxConstraints)
	}
	visible := map[string]struct{}{}
	for _, id := range got {
		visible[id] = struct{}{}
	}
	for _, id := range recallIDs(t, e, Request{Newest: "what should I cook for dinner in the garden?", VisibleIDs: visible}) {
		if _, ok := visible[id]; ok {
			t.Errorf("%s is shown again", id)
		}
	}
}

// Health constraints do not expire, are not displaced by newer turns, and leave
// room for what the words find.
func TestConstraintsWithMarks(t *testing.T) {
	ms := []storage.Memory{
		factOf(1, "My son Leo is allergic to peanuts."), factOf(2, "I don't eat fish."), factOf(3, "I avoid sugar."), factOf(4, "I never eat pork."),
		said(5, "in the garden we have a long table for dinner"),
	}
	for i := range 2 * maxPerWord {
		ms = append(ms, said(10+i, fmt.Sprintf("Tom, number %d of the class, is allergic to cats", i)))
	}
	now := ms[4].EventTime + 3*365*24*3600*1000
	for i := range ms[1:] {
		ms[1+i].EventTime, ms[1+i].CreatedAt = now, now
	}
	e, _ := newEngine(t, patient(), ms)
	ask := Request{Newest: "what should I cook for dinner in the garden?", Now: time.UnixMilli(int64(now))}
	if got := recallIDs(t, e, ask); len(got) < 3 || got[0] != ms[0].ID {
		t.Errorf("got %v, want %s first", got, ms[0].ID)
	}
	ask.TopK = 2
	wantIDs(t, "two lines", recallIDs(t, e, ask), ms[0].ID, ms[4].ID)
}

func TestAgeQuestions(t *testing.T) {
	ms := []storage.Memory{factOf(1, "I was born in 1988 and my back hurts."), factOf(2, "My son Leo is 7 years old."), factOf(3, "I'm Anna.")}
	e, _ := newEngine(t, patient(), ms)
	for _, question := range []string{"how old am I?", "When is my birthday?", "Wie alt bin ich?", "Quel âge ai-je ?", "¿Cuántos años tengo?", "Quanti anni ho?", "Quantos anos eu tenho?", "私は何歳ですか？", "我多大了？"} {
		wantIDs(t, question, recallIDs(t, e, Request{Newest: question}), ms[0].ID)
	}
	turns := texts("I'm 34, what about you?", "the port is 8443")
	e, _ = newEngine(t, patient(), turns)
	wantIDs(t, "no facts yet", recallIDs(t, e, Request{Newest: "how old am I?"}), turns[0].ID)
}

func TestQuestionsAboutATimeInOtherLanguages(t *testing.T) {
	now := time.Date(2025, 6, 18, 15, 0, 0, 0, time.UTC)
	ms := texts("the old routes are dead since Tuesday", "the staging database got a new name")
	ms[0].EventTime, ms[1].EventTime = storage.TimeOf(now.AddDate(0, 0, -8)), storage.TimeOf(now.AddDate(0, 0, -30))
	e, _ := newEngine(t, patient(), ms)
	for _, question := range []string{
		"Was haben wir letzte Woche besprochen?", "Worüber haben wir letzte Woche gesprochen?", "De quoi avons-nous parlé la semaine dernière ?", "Qu'est-ce que je t'ai dit la semaine dernière ?",
		"¿Qué hicimos la semana pasada?", "¿De qué hablamos hace una semana?", "Di cosa abbiamo parlato la settimana scorsa?", "Sobre o que falamos na semana passada?",
		"Wat hebben we vorige week besproken?", "先週何を話しましたか？", "上周我们聊了什么？",
	} {
		wantIDs(t, question, recallIDs(t, e, Request{Newest: question, Now: now}), ms[0].ID)
	}
	for _, question := range []string{"Was soll ich letzte Woche nachholen?", "Was steht diese Woche an?", "Was habe ich gestern gesagt?", "¿Qué comimos la semana pasada?"} {
		wantIDs(t, question, recallIDs(t, e, Request{Newest: question, Now: now}))
	}
}

// A question finds what was said in another language.
func TestTranslations(t *testing.T) {
	english := texts("My landlord is Mr. Petersen, the rent is 1200 euros", "I'm allergic to penicillin.", "My daughter Mia starts school in September", "our parser chokes on tabs")
	german := texts("Die Miete beträgt 980 Euro warm.", "Mein Hund heißt Bruno, er ist ein Dackel.", "Wir wohnen in Kassel und ich arbeite bei der Bahn")
	for _, tt := range []struct {
		ms   []storage.Memory
		asks map[string]int
	}{
		{english, map[string]int{"Wie heißt mein Vermieter?": 0, "Quel est mon loyer ?": 0, "Bin ich gegen etwas allergisch?": 1, "¿A qué soy alérgica?": 1, "¿Cómo se llama mi hija?": 2, "Wie heißt meine Tochter?": 2}},
		{german, map[string]int{"how much rent do I pay?": 0, "what is my dog called?": 1, "where do I live?": 2}},
	} {
		e, _ := newEngine(t, patient(), tt.ms)
		for question, want := range tt.asks {
			if got := recallIDs(t, e, Request{Newest: question}); len(got) == 0 || got[0] != tt.ms[want].ID {
				t.Errorf("%q: got %v, want %q first", question, got, tt.ms[want].Text)
			}
		}
		wantIDs(t, "nothing of it", recallIDs(t, e, Request{Newest: "Wie hoch ist der Mount Everest?"}))
	}
}

func explained(t *testing.T, e *Engine, question string) Result {
	t.Helper()
	res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: question, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// Words of an area do not count in code and in statements. Texts to translate
// and role play are no constraints.
func TestConstraintsOfCodeAndFiction(t *testing.T) {
	ms := []storage.Memory{factOf(1, "My son Leo is allergic to peanuts."), said(2, "Translate: I'm allergic to shellfish"), said(3, "Imagine I'm vegan and live on Mars"), factOf(4, "I use pytest for tests.")}
	e, _ := newEngine(t, patient(), ms)
	for question, want := range map[string][]string{
		"Dinner was great": nil, "Lunch is at noon tomorrow": nil, "Lunch today was fine, thanks": nil, "eat()": nil, "add a menu component to the navbar": nil, "build the recipe parser": nil,
		"rename dish to plate": nil, "set a cookie in the response": nil, "Write a unit test for RecipeController": {ms[3].ID},
		"cook something that is quick": {ms[0].ID}, "recommend a cooking class": {ms[0].ID}, "what should I cook?": {ms[0].ID},
	} {
		wantIDs(t, question, recallIDs(t, e, Request{Newest: question}), want...)
	}
}

// The postings that are read for a word are bounded.
func TestConstraintReadingIsBounded(t *testing.T) {
	ix := &index{}
	p := postings{}
	for i := range 5 * maxPostingsRead {
		p.add(uint32(i), newFrequency(1, 0, 0))
		ix.turns = append(ix.turns, turn{userLen: maxToldTerms + 1})
		ix.headers = append(ix.headers, 0)
	}
	ix.posts = []postings{p}
	f, s := &filter{ix: ix}, &scratch{}
	if got := (finder{ix}).addConstraints(nil, 0, constraintSearch{kind: query.ConstraintTold}, &resolvedQuery{}, f, s); len(got) > 0 || cap(s.entries) > 4*maxPostingsRead {
		t.Errorf("got %d turns and space for %d, want none and at most %d", len(got), cap(s.entries), 4*maxPostingsRead)
	}
}

// The regular expression for ages is slow and reads a bounded number of bytes
// for a request.
func TestAgesOfManyLongTexts(t *testing.T) {
	ms := []storage.Memory{said(1, "I was born in 1990.")}
	for i := range 100 {
		ms = append(ms, said(i+2, strings.Repeat(fmt.Sprintf("ticket %d is open ", i), 100)))
	}
	e, _ := newEngine(t, patient(), ms)
	wantIDs(t, "behind what is read", recallIDs(t, e, Request{Newest: "how old am I?"}))
	e, _ = newEngine(t, patient(), ms[:12])
	wantIDs(t, "within it", recallIDs(t, e, Request{Newest: "how old am I?"}), ms[0].ID)
}
