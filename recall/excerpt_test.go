package recall

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/text"
)

// long returns a long message with one sentence that matters at the given
// place.
func long(turn int, filler, telling string, at int) string {
	var all []string
	for i := range 28 {
		if i == at {
			all = append(all, telling)
		}
		all = append(all, fmt.Sprintf("%s %c%c%d.", filler, 'a'+turn, 'A'+i, 1000*turn+i))
	}
	return strings.Join(all, " ")
}

func TestLongMemoriesShareTheBudget(t *testing.T) {
	for _, tt := range []struct{ name, filler, telling, asked, means string }{
		{"English", "We talked about the weather of week", "The marathon in Lisbon starts at %d o'clock.", "When do the marathons of Lisbon start?", "marathon in Lisbon starts at"},
		{"Russian", "Мы говорили о погоде недели", "Марафон в Лиссабоне начинается в %d часов.", "Когда начинается марафон в Лиссабоне?", "Марафон в Лиссабоне начинается в"},
		{"Chinese", "我们谈论了天气情况", "里斯本马拉松比赛于%d点开始。", "里斯本马拉松比赛几点开始？", "里斯本马拉松比赛于"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			whole := make([]string, 5)
			for i := range whole {
				whole[i] = long(i, tt.filler, fmt.Sprintf(tt.telling, 7+i), 4*i)
			}
			e, _ := newEngine(t, patient(), texts(whole...))
			for _, lines := range []bool{false, true} {
				res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: tt.asked, Lines: lines})
				if err != nil {
					t.Fatal(err)
				}
				if len(res.Memories) < 4 {
					t.Fatalf("got %d memories, want most of the five", len(res.Memories))
				}
				bytes := 0
				for i, m := range res.Memories {
					text := m.Memory.Text
					bytes += len(text) + overhead(&m.Memory)
					part := strings.TrimSuffix(strings.TrimPrefix(text, "... "), omission)
					of := ""
					for _, w := range whole {
						if strings.Contains(w, part) {
							of = w
						}
					}
					if of == "" || len(text) >= len(of) {
						t.Fatalf("line %d is not part of a memory: %q", i, text)
					}
					if !strings.Contains(text, tt.means) {
						t.Errorf("line %d lacks what was asked for: %q", i, text)
					}
					if strings.HasPrefix(text, "... ") == strings.HasPrefix(of, part) || strings.HasSuffix(text, omission) == strings.HasSuffix(of, part) {
						t.Errorf("line %d does not mark where it was cut: %q", i, text)
					}
				}
				if limit := bytesPerToken * DefaultConfig().BudgetTokens; bytes > limit || bytes < limit*3/4 {
					t.Errorf("the lines take %d bytes of %d", bytes, limit)
				}
			}
		})
	}
}

func TestExcerptsEndWithWords(t *testing.T) {
	listed := "What I pack for the hike:\n"
	for i := 1; i < 60; i++ {
		listed += fmt.Sprintf("%d. Item%c%c of wool\n", i, 'a'+i%26, 'a'+i%7)
	}
	endless := strings.Repeat("and on it went with the hiking towards nowhere in particular ", 30)
	for _, whole := range []string{listed, endless} {
		e, _ := newEngine(t, patient(), texts(whole))
		for tokens := 100; tokens < 400; tokens += 7 {
			res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "hike", BudgetTokens: tokens, NoGate: true})
			if err != nil || len(res.Memories) != 1 {
				t.Fatalf("got %+v, %v", res, err)
			}
			part := strings.TrimSuffix(strings.TrimPrefix(res.Memories[0].Memory.Text, "... "), omission)
			behind := strings.TrimLeft(whole[strings.Index(whole, part)+len(part):], " \n")
			if before := part[len(part)-1]; query.IsDigit(before) && behind[0] == '.' || before == '.' || !strings.ContainsAny(whole[strings.Index(whole, part)+len(part):][:1], " \n") {
				t.Fatalf("%d tokens: ends in %q, before %.20q", tokens, part[len(part)-20:], behind)
			}
		}
	}
}

func TestShortMemoriesStayWhole(t *testing.T) {
	short := []string{"The marathon in Lisbon starts at nine.", "Tom runs the marathon in Lisbon, too.", "I trained for the marathon in Lisbon with Ann."}
	e, _ := newEngine(t, patient(), texts(append(short, long(9, "A marathon in Lisbon of week", "We ran.", 3))...))
	res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "When does the marathon in Lisbon start?", BudgetTokens: 250, NoGate: true})
	if err != nil {
		t.Fatal(err)
	}
	whole, cut := 0, 0
	for _, m := range res.Memories {
		if len(m.Memory.Text) >= minExcerpt {
			cut++
		}
		for _, s := range short {
			if m.Memory.Text == s {
				whole++
			}
		}
	}
	if whole != 3 || cut != 1 {
		t.Errorf("got %d short memories whole and %d long ones in part: %+v", whole, cut, res.Memories)
	}
}

func TestBudgetTooSmallForAnExcerpt(t *testing.T) {
	e, _ := newEngine(t, bare(), texts(strings.Repeat("apple juice ", 80), "apple one"))
	res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "apple juice", BudgetTokens: 40, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Memories) != 1 || res.Memories[0].Memory.Text != "apple one" || len(res.Cut) != 1 || res.Cut[0].Reason != CutBudget {
		t.Errorf("got %+v", res)
	}
}

// FuzzExcerpt checks that an excerpt fits, cuts no character, and contains a
// word of the query if a match that fits was found.
func FuzzExcerpt(f *testing.F) {
	f.Add("One thing. Another thing that matters! And a third?", "matters", 25)
	f.Add("里斯本马拉松比赛于9点开始。我们谈论了天气情况。", "马拉松", 20)
	f.Add("no-blanks-at-all-"+strings.Repeat("x", 300), "all", 150)
	f.Add("", "", 0)
	f.Add(strings.Repeat("\x80", 400)+"\xff"+strings.Repeat("\x80", 400), "\xff", 150)
	f.Add("One.\r\n\r\nTwo \"is said.\" Three.\x00"+strings.Repeat(" 1. 2.\r\n", 60), "said", 150)
	f.Fuzz(func(t *testing.T, text, word string, room int) {
		if room < minExcerpt-2*len(omission) || room >= len(text) {
			return
		}
		q := resolvedQuery{terms: []resolvedTerm{{Term: query.Term{Weight: 1}, sure: 1}}}
		var seen []match
		if word != "" {
			for at := 0; len(seen) < maxMatches; {
				i := strings.Index(text[at:], word)
				if i < 0 {
					break
				}
				seen = append(seen, match{from: int32(at + i), to: int32(at + i + len(word))})
				at += i + len(word)
			}
		}
		from, to := excerpt([]byte(text), seen, &q, room)
		if from < 0 || to > len(text) || to <= from || to-from > room || utf8.ValidString(text) && !utf8.ValidString(text[from:to]) {
			t.Fatalf("got %d to %d of %d, room %d", from, to, len(text), room)
		}
		if utf8.ValidString(text) && utf8.ValidString(word) && len(seen) > 0 && len(word) <= room && !strings.Contains(text[from:to], word) {
			t.Fatalf("%q does not contain %q", text[from:to], word)
		}
	})
}

// Shortening takes linear time: with quadratic time, this text of megabytes
// would take hours.
func TestExcerptsOfAnyTextAreFound(t *testing.T) {
	const size = 4 << 20
	for _, filler := range []string{"\n", " ", "\r\n", ". ", "1. ", "a. ", ".", "。", "\x80", "e\u0301", "\n\n   1", "\"", ".\"* "} {
		half := strings.Repeat(filler, size/len(filler))
		text := []byte(half + " found " + half)
		at := int32(len(half) + 1)
		from, to := excerpt(text, []match{{from: at, to: at + 5}}, &resolvedQuery{terms: []resolvedTerm{{Term: query.Term{Weight: 1}, sure: 1}}}, 20_000)
		if to-from > 20_000 || !strings.Contains(string(text[from:to]), "found") {
			t.Errorf("%q: got %d to %d", filler, from, to)
		}
	}
}

func TestSentencesEndWithWhatClosesThem(t *testing.T) {
	for _, tt := range []struct{ text, of, want string }{
		{`He said "stop." Then he left.`, "Then", "Then"},
		{"**Be quick.** Then leave.", "Then", "Then"},
		{"(It rained.)\tThen it stopped.", "stopped", "Then"},
		{"It rained.\r\nThen it stopped.", "stopped", "Then"},
		{"See remora.go for more.", "more", "See"},
		{"Steps:\n 1. Rinse it", "Rinse", "1."},
		{"In 2024. Then", "Then", "Then"},
		{"I saw Dr. Smith and Mrs. J. Doe today", "today", "I saw"},
		{"Bring fruit, e.g. apples, z.B. Birnen", "Birnen", "Bring"},
		{"The U.S. Senate met at 5 p.m. sharp", "sharp", "The U.S."},
		{"It costs 3.5 euros", "euros", "It costs"},
		{"So did I. Then we left", "left", "Then"},
		{"I met the Dr.Then we left... Then", "left", "I met"},
		{"He was there... Then we left", "left", "Then"},
		{"Версия д-р. Потом ушли", "ушли", "Потом"},
	} {
		if got := sentenceBegin([]byte(tt.text), strings.Index(tt.text, tt.of)); !strings.HasPrefix(tt.text[got:], tt.want) {
			t.Errorf("%q: the sentence of %q begins at %q", tt.text, tt.of, tt.text[got:])
		}
	}
}

// Words of the query are found with capitals and accents, but not inside other
// words.
func TestExcerptsHoldWordsOfAnyScript(t *testing.T) {
	for _, tt := range []struct{ asked, filler, telling string }{
		{"Когда Роман приедет?", "И романтика вечера в городе нам понравилась.", "Роман приедет в пятницу."},
		{"¿Cuándo cantamos la canción?", "Hablamos de la semana y del trabajo con los amigos.", "Canción nueva: el martes."},
		{"Wo stehen die Bücher?", "Wir sprachen mit der Familie über das Wetter der Woche.", "Bücher: im Regal."},
		{"Où est l'école?", "Nous avons parlé du temps de la semaine avec les amis.", "École : rue Monge."},
		{"Πότε είναι ο μαραθώνιος;", "Μιλήσαμε για τον καιρό της εβδομάδας.", "Μαραθώνιος: την Κυριακή."},
		{"Où est l'école?", "Nous avons parlé du temps de la semaine avec les amis.", "E\u0301cole : rue Monge."},
	} {
		whole := strings.Repeat(tt.filler+" ", 12) + tt.telling + strings.Repeat(" "+tt.filler, 12)
		e, _ := newEngine(t, patient(), texts(whole))
		res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: tt.asked, BudgetTokens: 200, NoGate: true})
		if err != nil || len(res.Memories) != 1 || !strings.Contains(res.Memories[0].Memory.Text, tt.telling) {
			t.Errorf("%s: got %+v, %v", tt.asked, res.Memories, err)
		}
	}
}

// A word in every sentence does not keep the excerpt away from the place that
// has the other words as well.
func TestExcerptsLookBehindFrequentWords(t *testing.T) {
	whole := strings.Repeat("We had apples again. ", 90) + "The apples of Lisbon cost nine." + strings.Repeat(" And more of it came.", 20)
	e, _ := newEngine(t, patient(), texts(whole))
	res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "What do apples of Lisbon cost?", BudgetTokens: 200, NoGate: true})
	if err != nil || len(res.Memories) != 1 || !strings.Contains(res.Memories[0].Memory.Text, "cost nine") {
		t.Errorf("got %+v, %v", res.Memories, err)
	}
}

// An excerpt never shows part of a grapheme cluster.
func TestExcerptsCutNoCluster(t *testing.T) {
	for _, cluster := range []string{"👨‍👩‍👧‍👦", "🇵🇹🇩🇪"[:8], "👍🏽", "e\u0301\u0323", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "한", "क्षि"} {
		text := []byte(strings.Repeat(cluster, 100) + "found" + strings.Repeat(cluster, 100))
		at := int32(100 * len(cluster))
		for room := 150; room < 150+2*len(cluster); room++ {
			from, to := excerpt(text, []match{{from: at, to: at + 5}}, &resolvedQuery{terms: []resolvedTerm{{Term: query.Term{Weight: 1}, sure: 1}}}, room)
			before, after, _ := strings.Cut(string(text[from:to]), "found")
			if len(before)%len(cluster) != 0 || len(after)%len(cluster) != 0 || to-from > room || len(before)+len(after) < room-4*len(cluster)-5 {
				t.Fatalf("%s in %d bytes: %q", cluster, room, text[from:to])
			}
		}
	}
}

// The first grapheme cluster of a text is not cut either.
func TestFirstClusterIsNotCut(t *testing.T) {
	family := "👨‍👩‍👧‍👦"
	said := []byte(family + "found")
	for i := 1; i < len(family); i++ {
		if got := text.ClusterEnd(said, i, len(said)); got != len(family) {
			t.Errorf("from byte %d: got %d, want %d", i, got, len(family))
		}
		if got := text.ClusterStart(said, i, 0); got != 0 {
			t.Errorf("to byte %d: got %d, want 0", i, got)
		}
	}
}
