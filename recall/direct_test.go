package recall

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Questions about the user are answered by their statements about themselves,
// the name first, or by nothing.
func TestProfileQuestions(t *testing.T) {
	ms := []storage.Memory{
		factOf(1, "I'm Anna, 34, from Bremen."), factOf(2, "The port is 8443."), factOf(3, "I hate treadmills."),
		said(4, "his name is Oskar, and you know it is about me"),
	}
	e, _ := newEngine(t, patient(), ms)
	all := []string{ms[0].ID, ms[2].ID, ms[1].ID}
	for _, question := range []string{
		"what do you know about me?", "Hey, what do you know about me", "Who am I?", "was weißt du über mich?", "Que sais-tu de moi ?", "¿qué sabes de mí?", "你知道我的什么？",
		"私のことで何を知っていますか？",
	} {
		wantIDs(t, question, recallIDs(t, e, Request{Newest: question}), all...)
	}
	for _, question := range []string{"what's my name?", "What’s my name", "Wie heiße ich?", "¿Cómo me llamo?", "我叫什么名字？"} {
		wantIDs(t, question, recallIDs(t, e, Request{Newest: question}), ms[0].ID)
	}
	wantIDs(t, "another's", recallIDs(t, e, Request{Newest: "what is his name?"}), ms[3].ID)
	e, _ = newEngine(t, patient(), texts("we deploy on Fridays"))
	wantIDs(t, "nothing known", recallIDs(t, e, Request{Newest: "what do you know about me?"}))
}

// A question about a day is answered by what was said on it, in order, and not
// by texts with the words "last week".
func TestQuestionsAboutATime(t *testing.T) {
	now := time.Date(2025, 6, 18, 15, 0, 0, 0, time.UTC) // a Wednesday
	at := func(days int, m []storage.Memory) []storage.Memory {
		for i := range m {
			m[i].EventTime = storage.TimeOf(now.AddDate(0, 0, -days))
		}
		return m
	}
	ms := together(
		at(30, exchange("c1", 1, "we moved to Hono last week, the old routes are dead", "OK.")),
		at(8, exchange("c2", 2, "the staging database got a new name", "Noted.")),
		at(8, exchange("c2", 3, "ok", "Fine.")),
		at(7, exchange("c2", 4, "named exports only, no defaults anywhere", "Noted.")),
	)
	e, _ := newEngine(t, patient(), ms)
	last := []string{ms[2].ID, ms[6].ID}
	for _, question := range []string{"what did we do last week?", "What did we talk about last week", "where were we?", "continue where we left off"} {
		wantIDs(t, question, recallIDs(t, e, Request{Newest: question, Now: now}), last...)
	}
	wantIDs(t, "yesterday", recallIDs(t, e, Request{Newest: "what did we do yesterday?", Now: now}))
	wantIDs(t, "today", recallIDs(t, e, Request{Newest: "what day is it today?", Now: now}))
	wantIDs(t, "few", recallIDs(t, e, Request{Newest: "what did we do last week?", Now: now, TopK: 1}), last[0])
	if got := recallIDs(t, e, Request{Newest: "which routes died last week?", Now: now}); !slices.Contains(got, ms[0].ID) {
		t.Errorf("a word: got %v", got)
	}
	// In a conversation that goes on "where were we" is about what stands in
	// it, and its own turns are no memories.
	if got := recallIDs(t, e, Request{Newest: "where were we?", Now: now, Conversation: "c2"}); len(got) > 0 {
		t.Errorf("in the conversation: got %v", got)
	}
	wantIDs(t, "visible", recallIDs(t, e, Request{Newest: "what did we do last week?", Now: now, VisibleIDs: map[string]struct{}{ms[2].ID: {}, ms[3].ID: {}}}), ms[6].ID)
}

// Questions about the present or future are not about what was said on a day;
// their words are searched for.
func TestQuestionsWithADay(t *testing.T) {
	now := time.Date(2025, 6, 18, 15, 0, 0, 0, time.UTC)
	ms := texts("the parser of the billing service chokes on tabs", "on Friday I have an appointment with the dentist", "my exam is on the 14th of September")
	for i := range ms {
		ms[i].EventTime = storage.TimeOf(now.AddDate(0, 0, -1-5*i))
	}
	e, _ := newEngine(t, patient(), ms)
	for _, question := range []string{
		"How are you this week?", "What should I do this week?", "can you help me this week?", "which year is this year?", "how many days are in this month?", "is it ok if I ask on monday?",
	} {
		wantIDs(t, question, recallIDs(t, e, Request{Newest: question, Now: now}))
	}
	for question, want := range map[string]string{"what do I have on Friday?": ms[1].ID, "what is on September 14?": ms[2].ID} {
		if got := recallIDs(t, e, Request{Newest: question, Now: now}); len(got) == 0 || got[0] != want {
			t.Errorf("%s: got %v, want %s first", question, got, want)
		}
	}
	long := func() string {
		return "please explain how goroutines and channels share the processors of a machine under heavy contention"
	}
	wantIDs(t, "lent words", recallIDs(t, e, Request{Newest: "what did we do this week?", Now: now, Previous: long}), ms[0].ID)
	wantIDs(t, "have we", recallIDs(t, e, Request{Newest: "what have we done this week?", Now: now}), ms[0].ID)
}

// Turns of the same conversation count if the request no longer carries them.
func TestQuestionsAboutATimeInTheSameConversation(t *testing.T) {
	now := time.Date(2025, 6, 18, 15, 0, 0, 0, time.UTC)
	ms := together(exchange("c1", 1, "the staging database got a new name", "Noted."), exchange("c2", 2, "named exports only, no defaults anywhere", "Noted."))
	for i := range ms {
		ms[i].EventTime = storage.TimeOf(now.AddDate(0, 0, -7))
	}
	e, _ := newEngine(t, patient(), ms)
	ask := Request{Newest: "what did we do last week?", Now: now, Conversation: "c1"}
	wantIDs(t, "all", recallIDs(t, e, ask), ms[0].ID, ms[2].ID)
	ask.Scopes = []SearchScope{CurrentChat}
	wantIDs(t, "this chat", recallIDs(t, e, ask), ms[0].ID)
	ask.Conversation = "c3"
	wantIDs(t, "another chat", recallIDs(t, e, ask))
}

// "Where were we?" is not answered by an earlier "where were we?"
func TestWhereWeWereSkipsQuestions(t *testing.T) {
	e, _ := newEngine(t, patient(), together(
		exchange("c1", 1, "the parser of the billing service chokes on tabs", "Noted."),
		exchange("c2", 2, "where were we?", "You spoke of the parser."),
		exchange("c3", 3, "hi", "Hello!"),
	))
	wantLines(t, "again", recallLines(t, e, Request{Newest: "where were we?", Conversation: "c4"}), "user: the parser of the billing service chokes on tabs")
}

// Of many turns of a day the best are shown, in order.
func TestQuestionsAboutATimeShowTheBest(t *testing.T) {
	now := time.Date(2025, 6, 18, 15, 0, 0, 0, time.UTC)
	var ms []storage.Memory
	want := []string{}
	for i := range 60 {
		m := said(i+1, "apples pears plums cherries")
		if i%10 == 7 {
			m.Text += fmt.Sprintf(" quinces medlars figs dates olives grapes melons lemons limes oranges currants crate%d", i)
			want = append(want, m.ID)
		}
		m.EventTime = storage.TimeOf(now.AddDate(0, 0, -7)) + storage.Time(i)
		ms = append(ms, m)
	}
	e, _ := newEngine(t, patient(), ms)
	wantIDs(t, "best", recallIDs(t, e, Request{Newest: "what did we do last week?", Now: now}), want...)
}
