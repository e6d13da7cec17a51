package recall

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

func TestReadDates(t *testing.T) {
	now := time.Date(2025, 6, 18, 15, 0, 0, 0, time.UTC) // a Wednesday
	for _, tt := range []struct{ text, from, to string }{
		{"what did i do yesterday?", "2025-06-17", "2025-06-18"},
		{"the day before yesterday we met", "2025-06-16", "2025-06-17"},
		{"what happened on 8 may 2023?", "2023-05-08", "2023-05-09"},
		{"what happened on may 8th, 2023?", "2023-05-08", "2023-05-09"},
		{"in may", "2025-05-01", "2025-06-01"},
		{"may i ask something?", "", ""},
		{"in december", "2024-12-01", "2025-01-01"},
		{"where was i in 2023?", "2023-01-01", "2024-01-01"},
		{"the meeting of 2025-03-05", "2025-03-05", "2025-03-06"},
		{"last week", "2025-06-09", "2025-06-16"},
		{"what did we plan for this week", "2025-06-16", "2025-06-23"},
		{"last month", "2025-05-01", "2025-06-01"},
		{"last year", "2024-01-01", "2025-01-01"},
		{"last weekend", "2025-06-14", "2025-06-16"},
		{"last friday", "2025-06-13", "2025-06-14"},
		{"what was it on monday", "2025-06-16", "2025-06-17"},
		{"last summer", "2024-06-01", "2024-09-01"},
		{"two days ago", "2025-06-16", "2025-06-17"},
		{"3 weeks ago", "2025-05-25", "2025-06-01"},
		{"in the last two weeks", "2025-06-04", "2025-06-19"},
		{"on the 3rd", "2025-06-03", "2025-06-04"},
		{"on the 25th", "2025-05-25", "2025-05-26"},
		{"what is my cat's name?", "", ""},
		{strings.Repeat("x ", 500) + "and what did i say yesterday", "2025-06-17", "2025-06-18"},
	} {
		day := func(d int64) string { return time.Unix(d*86400, 0).UTC().Format(time.DateOnly) }
		got := readDates(tt.text, now, langEnglish)
		switch {
		case tt.from == "" && len(got) > 0:
			t.Errorf("%.40q: got %d dates, want none", tt.text, len(got))
		case tt.from != "" && (len(got) != 1 || day(got[0].from) != tt.from || day(got[0].to) != tt.to):
			t.Errorf("%.40q: got %v, want %s to %s", tt.text, got, tt.from, tt.to)
		}
	}
	if got := readDates("yesterday", time.Time{}, langEnglish); got != nil {
		t.Errorf("without a clock: got %v, want nothing", got)
	}
}

// A day of the month is the latest that there was.
func TestReadDaysThatFewMonthsHave(t *testing.T) {
	for _, tt := range []struct{ now, text, want string }{
		{"2025-03-05", "on the 31st", "2025-01-31"},
		{"2025-03-05", "on the 29th", "2025-01-29"},
		{"2024-03-05", "on the 29th", "2024-02-29"},
		{"2025-01-05", "on the 31st", "2024-12-31"},
		{"2025-12-31", "on the 31st", "2025-12-31"},
		{"2025-07-01", "on the 31st", "2025-05-31"},
		{"2025-11-22", "on november 28", "2024-11-28"},
		{"2025-11-22", "on november 22", "2025-11-22"},
	} {
		now, err := time.Parse(time.DateOnly, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		got := readDates(tt.text, now, langEnglish)
		if len(got) != 1 || got[0].to != got[0].from+1 || time.Unix(got[0].from*86400, 0).UTC().Format(time.DateOnly) != tt.want {
			t.Errorf("%s, said on %s: got %v, want %s", tt.text, tt.now, got, tt.want)
		}
	}
}

// TestWordsThatTellNoTime: a query is not searched for dates over words that begin like a month or a weekday.
func TestWordsThatTellNoTime(t *testing.T) {
	text := "maybe the friends at the market think of a novel, and decide in a month which passport to separate"
	if got := readTimeHints(text); got != 0 {
		t.Errorf("got %b, want none", got)
	}
}

func TestReadIntent(t *testing.T) {
	for text, want := range map[string]intent{
		"when did i move?":                                    wantsTime,
		"what year was it?":                                   wantsTime,
		"how long did it take?":                               wantsTime | wantsNumber,
		"how many cats?":                                      wantsNumber,
		"who is my boss?":                                     wantsName,
		"what did you recommend for dinner?":                  wantsAssistant,
		"remind me of the plan":                               wantsAssistant,
		"in our last conversation":                            wantsAssistant,
		"we discussed the shed":                               wantsAssistant,
		"how can i fix the tap?":                              wantsAdvice,
		"what should i cook?":                                 wantsAdvice,
		"should i sell the car?":                              wantsAdvice,
		"could you show me a plan?":                           wantsAdvice,
		"can you suggest a film?":                             wantsAdvice | wantsAssistant,
		"help me pack":                                        wantsAdvice,
		"any tips for rome?":                                  wantsAdvice,
		"which tips are there?":                               wantsName,
		"in order to fly, what should i pack?":                wantsAdvice,
		"can you list the order in which i met them?":         wantsName | wantsAssistant,
		"can you walk through our plans across our chats?":    0,
		"can you give me a summary?":                          wantsAssistant,
		"how did you help me pack?":                           0,
		"do you like soup":                                    0,
		"the movie is about a dog":                            0,
		"you and the very long way to the sea of suggestions": 0,
	} {
		if got := readIntent([]byte(text)); got != want {
			t.Errorf("%q: got %b, want %b", text, got, want)
		}
	}
}

func TestAnalyze(t *testing.T) {
	an := newAnalyzer(cachedWords)
	var a analysis
	for _, tt := range []struct {
		in, want string
		lang     language
	}{
		{"The cats were running. Did they sleep?", "cat run . sleep ?", langEnglish},
		{"I went and taught my children", "go teach child", langEnglish},
		{"getUserById fails in user_service.go", "getuserbyid user id fail user_service.go user servic go", langEnglish},
		{"Die Häuser sind schön", "haus schon", langGerman},
		{"J'ai acheté des pommes pour l'école", "achet pomm ecol", langFrench},
		{"Los perros están en la casa", "perr cas", langSpanish},
		{"Кто построил теплицы?", "постро теплиц ?", langRussian},
		{"東京に行く", "東 京 東京 行 行く", langUnknown},
		{"ｆｕｌｌ ｗｉｄｔｈ", "full width", langUnknown},
		{"port 5432 and v2.3", "port 5432 v2.3 v 2 3", langEnglish},
		{"\x00\xff\xfe \u200b", "", langUnknown},
		{strings.Repeat("a", 5000), "", langUnknown},
	} {
		an.analyze(tt.in, langEnglish, &a)
		if got := strings.Join(a.terms, " "); got != tt.want || a.language != tt.lang {
			t.Errorf("%.40q: got %q (%d), want %q (%d)", tt.in, got, a.language, tt.want, tt.lang)
		}
	}
}

func TestHumanWords(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain", "plain"},
		{"<system-reminder>secret\nplans</system-reminder>hi", "hi"},
		{"<system-reminder>not closed", ""},
		{"<environment_context>\n<cwd>/x</cwd></environment_context> fix it", "fix it"},
		{"<user_instructions>be nice</user_instructions>\nwhat now?", "what now?"},
		{"<file path=\"a.go\">package a</file> explain", "explain"},
		{"<filed> stays, a < b and <file", "<filed> stays, a < b and <file"},
		{"<remora-memory-4f1c0a9be77d>\n- x\n</remora-memory-4f1c0a9be77d>\nhello", "hello"},
		{"look: ```go\nx := 1\n``` ok", "look: ```go\nx := 1\n``` ok"},
		{"look: ```" + strings.Repeat("x := 1\n", 100) + "``` ok", "look:   ok"},
		{"look: ```" + strings.Repeat("x := 1\n", 100), "look:"},
	} {
		if got := strings.TrimSpace(HumanWords(tt.in)); got != tt.want {
			t.Errorf("%.40q: got %q, want %q", tt.in, got, tt.want)
		}
	}
}

// Which elements there may be is looked for once; what is cut is what cutting each by its name, one after another, cuts.
func TestElementsAreCutByName(t *testing.T) {
	names := []string{"a", "ab", "b c", "system-reminder", ""}
	pieces := []string{"<", "</", ">", " ", "\n", "a", "ab", "b c", "system-reminder", "<a>", "</a>", "<ab x>", "</ab>", "x", "<b c>", "</b c>"}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var b strings.Builder
		for range 1 + rnd.IntN(12) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		in := b.String()
		want := in
		for _, n := range names[:4] {
			want = cutElement(want, n)
		}
		if got := CutElements(in, names); got != want {
			t.Fatalf("%q: got %q, want %q", in, got, want)
		}
	}
}

// A fact and the passage that it was taken from say the same: one of them is enough. A fact stands by itself where its
// turn says something else, and where the turn is gone.
func TestFactsDoNotRepeatTheirTurns(t *testing.T) {
	ms := texts(
		"we talked for hours about the garden and the weather, and then it turned out that Ines is allergic to peanuts and so is her brother",
		"the invoice service is deployed by Marguerite",
	)
	fact := func(id, turn, text string) storage.Memory {
		m := said(9, text)
		m.ID, m.Kind, m.Provenance.Turn = id, storage.KindFact, turn
		return m
	}
	own := fact("f1", ms[0].Provenance.Turn, "user: \"Ines is allergic to peanuts\"")
	orphan := fact("f2", "00000077", "user: \"Ines is allergic to cats\"")
	e, _ := newEngine(t, patient(), append(ms, own, orphan))
	got := recallIDs(t, e, Request{Newest: "what is Ines allergic to?", NoGate: true})
	shown := 0
	for _, id := range got {
		if id == own.ID || id == ms[0].ID {
			shown++
		}
	}
	if shown != 1 || !slices.Contains(got, orphan.ID) {
		t.Errorf("got %v, want one of %s and %s, and %s", got, own.ID, ms[0].ID, orphan.ID)
	}
}

// What was said about the project that a request is about ranks before the same said elsewhere, which is still found.
// It holds for an index that was rebuilt, too.
func TestProjectsRankAndHideNothing(t *testing.T) {
	ms := texts("we deploy with the heron script", "we deploy with the egret script")
	for i := range ms {
		ms[i].Conversation = fmt.Sprint("c", i)
		ms[i].Tags = []string{storage.ProjectTag + fmt.Sprint("p", i)}
	}
	ix := newIndex(1, newAnalyzer(cachedWords))
	e, _ := newEngine(t, patient(), ms)
	for i := range ms {
		got := recallIDs(t, e, Request{Newest: "which script do we deploy with?", Project: fmt.Sprint("p", i), NoGate: true})
		if len(got) != 2 || got[0] != ms[i].ID {
			t.Errorf("project %d: got %v", i, got)
		}
	}
	for i := range ms {
		ix.put([]passage{{memory: &ms[i], terms: []string{"deploy"}}})
	}
	again := ix.rebuilt(10, nil)
	for c, conv := range ix.convs.list {
		if conv.project == 0 || again.convs.list[c].project != conv.project {
			t.Errorf("conversation %d: project %d after a rebuild, want %d", c, again.convs.list[c].project, conv.project)
		}
	}
}
