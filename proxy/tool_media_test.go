package proxy

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mediaContent is the content of a message that says "MEDIA", as a string or as
// blocks.
var mediaContent = regexp.MustCompile(`\[\{"type":"(?:input_)?text","text":"MEDIA"[^\]]*\]|"MEDIA"`)

// shows is a body in which a user message "MEDIA" is a picture, behind these
// texts.
func (a api) shows(body string, texts ...string) string {
	kind, picture := "text", `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`
	switch a.name {
	case "responses":
		kind, picture = "input_text", `{"type":"input_image","image_url":"data:image/png;base64,AAAA"}`
	case "messages", "messages marked":
		picture = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`
	}
	if a.name == "gemini" {
		parts := ""
		for _, text := range texts {
			parts += `{"text":` + quote(text) + `},`
		}
		return strings.Replace(body, `{"text":"MEDIA"}`, parts+`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`, 1)
	}
	parts := ""
	for _, text := range texts {
		parts += `{"type":"` + kind + `","text":` + quote(text) + `},`
	}
	return mediaContent.ReplaceAllLiteralString(body, "["+parts+picture+"]")
}

// What a tool has read and its message can't carry comes as a user message: a
// step of the loop like the result itself. It must neither be searched for nor
// take the place of what the human said.
func TestToolMediaIsAStep(t *testing.T) { inEach(t, testToolMediaIsAStep) }

func testToolMediaIsAStep(t *testing.T, a api) {
	const question = "user: What breed is Rex?"
	for _, beside := range [][]string{nil, {"Attached image(s) from tool result:"}, {"Attached media from tool result:"}} {
		r := a.rig(t)
		r.recall.set("one")
		r.answers(func(received) (int, string, string) { return 200, "application/json", a.calling })
		r.post(a.body(question))
		sent := r.one().body
		r.answers(a.replyWith("A beagle."))
		r.recall.set("two")
		got := r.post(a.shows(a.body(question, "call: c", "result: c", "user: MEDIA"), beside...))
		body := r.one().body
		if a.grows(t, sent, body); got.status != StatusReplayed || strings.Contains(body, ": two") {
			t.Errorf("%q: status %s, sent %s", beside, got.status, body)
		}
		if diff := cmp.Diff([]string{"What breed is Rex? / A beagle."}, texts(r.turns())); diff != "" {
			t.Errorf("%q (-want +got):\n%s", beside, diff)
		}
		if asked := r.recall.asked(); len(asked) != 1 {
			t.Errorf("%q: searched %d times in one turn", beside, len(asked))
		}

		got = r.post(a.shows(a.body(question, "call: c", "result: c", "user: MEDIA", "assistant: A beagle.", "user: How old is he?"), beside...))
		if a.grows(t, body, r.one().body); got.status != StatusInjected {
			t.Errorf("%q: the next turn: status %s", beside, got.status)
		}
		if diff := cmp.Diff([]string{"How old is he? / A beagle."}, texts(r.turns())); diff != "" {
			t.Errorf("%q: the next turn (-want +got):\n%s", beside, diff)
		}
	}
}

// A person who says something right behind a result, or beside what a tool has
// read, begins a turn.
func TestPeopleBehindToolResults(t *testing.T) { inEach(t, testPeopleBehindToolResults) }

func testPeopleBehindToolResults(t *testing.T, a api) {
	loop := []string{"user: What breed is Rex?", "call: c", "result: c", "user: MEDIA"}
	for name, body := range map[string]string{
		"beside": a.shows(a.body(loop...), "Attached media from tool result:", "say it in one word"),
		"behind": a.shows(a.body(append(slices.Clone(loop), "user: say it in one word")...), "Attached media from tool result:"),
		"before": a.shows(a.body("user: What breed is Rex?", "call: c", "result: c", "user: say it in one word", "user: MEDIA")),
	} {
		r := a.rig(t)
		r.recall.set("one")
		if got := r.post(body); got.status != StatusInjected {
			t.Errorf("%s: status %s", name, got.status)
		}
		if asked := r.recall.asked(); len(asked) != 1 || asked[0].Newest != "say it in one word" {
			t.Errorf("%s: asked for %+v", name, asked)
		}
		if got := texts(r.turns()); len(got) != 1 || !strings.HasSuffix(got[0], "say it in one word / fine") {
			t.Errorf("%s: turns %q", name, got)
		}
	}
}

// The same where the upstream holds the turn that the step belongs to.
func TestToolMediaOfHeldTurns(t *testing.T) {
	r := held(t)
	r.recall.set("one")
	r.as("resp_1", responsesCalling)
	r.post(after("", "user: What breed is Rex?"))
	r.sent()
	r.as("resp_2", responsesAnswer("resp_2", "A beagle."))
	step := apis[3].shows(after("resp_1", "result: c", "user: MEDIA"))
	if got, body := r.post(step), r.one().body; got.status != StatusEmpty || body != step {
		t.Errorf("status %s, sent %s", got.status, body)
	}
	if diff := cmp.Diff([]string{"What breed is Rex? / A beagle."}, texts(r.turns())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked := r.recall.asked(); len(asked) != 1 {
		t.Errorf("searched %d times in one turn", len(asked))
	}
}
