package recall

import (
	"regexp"
	"strings"
	"testing"
)

// A text is screened before it is shortened: a rule that matches the whole may
// not match a part.
func TestTextsAreScreenedBeforeTheyAreCut(t *testing.T) {
	key := "BEGIN " + strings.Repeat("the kiwi of line abcdef ", 40) + "END"
	hide := func(text string) string { return regexp.MustCompile(`BEGIN .*END`).ReplaceAllString(text, "[KEY]") }
	all := append(exchange("c1", 1, "How do I store the kiwi?", "In a box: "+key+" of wood."), exchange("c2", 2, "I keep the kiwi here: "+key+" and so on.", "Fine.")...)
	e, _ := newEngine(t, patient(), all)
	for _, lines := range []bool{false, true} {
		for tokens := 100; tokens < 700; tokens += 50 {
			req := Request{Scope: alice, Newest: "How should I store the kiwi?", BudgetTokens: tokens, Lines: lines, Screen: hide}
			res, err := e.Recall(t.Context(), req)
			if err != nil || len(res.Memories) == 0 {
				t.Fatalf("got %d memories, %v", len(res.Memories), err)
			}
			for _, m := range res.Memories {
				if strings.Contains(hide(m.Memory.Text), "of line") {
					t.Fatalf("lines %t, %d tokens: %q", lines, tokens, m.Memory.Text)
				}
			}
		}
	}
}

// An answer is left out with its question.
func TestAnswersLeaveWithTheirQuestions(t *testing.T) {
	asked := "Where is the comfortable Kiwiland, near Grandiosityestablishments, Superlativemagnificences, Extraordinarilycomfortables, Aftereightestablishments and Conferencecentres?"
	all := append(exchange("c1", 1, asked, "Near Kiwi Street."), texts(
		"The comfortable international conference accommodation Kiwiland: "+strings.Repeat("it rained on us. ", 40),
		"Of the comfortable international conference accommodation in Kiwiland: "+strings.Repeat("we ate. ", 40),
		"My comfortable international conference accommodation at Kiwiland: "+strings.Repeat("snow. ", 40))...)
	for i := range all[2:] {
		all[2+i].ID, all[2+i].Provenance.Turn, all[2+i].Provenance.Chain = "x"+all[2+i].ID, "", "x"
	}
	e, _ := newEngine(t, patient(), all)
	both, alone := 0, 0
	for tokens := 60; tokens < 900; tokens++ {
		got := recallLines(t, e, Request{Newest: "Where is the comfortable international conference accommodation Kiwiland?", BudgetTokens: tokens})
		question, answer := false, false
		for _, line := range got {
			question = question || strings.Contains(line, "Where is") || strings.Contains(line, "Superlative")
			answer = answer || strings.HasPrefix(line, "assistant: ")
		}
		if answer && !question {
			t.Fatalf("%d tokens: %q", tokens, got)
		}
		if answer {
			both++
		} else {
			alone++
		}
	}
	if both == 0 || alone == 0 {
		t.Errorf("shown %d times, left out %d times", both, alone)
	}
}
