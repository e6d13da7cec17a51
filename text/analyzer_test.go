package text

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAnalyze(t *testing.T) {
	an := NewAnalyzer(1 << 10)
	var a Analysis
	for _, tt := range []struct {
		in, want string
		lang     Language
	}{
		{"The cats were running. Did they sleep?", "cat run . sleep ?", English},
		{"I went and taught my children", "go teach child", English},
		{"getUserById fails in user_service.go", "getuserbyid user id fail user_service.go user servic go", English},
		{"Die Häuser sind schön", "haus schon", German},
		{"J'ai acheté des pommes pour l'école", "achet pomm ecol", French},
		{"Los perros están en la casa", "perr cas", Spanish},
		{"Кто построил теплицы?", "постро теплиц ?", Russian},
		{"東京に行く", "東 京 東京 行 行く", Unknown},
		{"ｆｕｌｌ ｗｉｄｔｈ", "full width", Unknown},
		{"port 5432 and v2.3", "port 5432 v2.3 v 2 3", English},
		{"\x00\xff\xfe \u200b", "", Unknown},
		{strings.Repeat("a", 5000), "", Unknown},
	} {
		an.Analyze(tt.in, English, &a)
		if got := strings.Join(a.Terms, " "); got != tt.want || a.Language != tt.lang {
			t.Errorf("%.40q: got %q (%d), want %q (%d)", tt.in, got, a.Language, tt.want, tt.lang)
		}
	}
}

func TestPreferencesInText(t *testing.T) {
	for text, want := range map[string]bool{
		"I prefer tea":                                 true,
		"Well, I'd really prefer tea.":                 true,
		"My preferences: tea, early mornings":          true,
		"Always answer in French.":                     true,
		"It is late. Never call me then!":              true,
		"Do you prefer tea?":                           false,
		"I wonder what all of the other people prefer": false,
		"She always sings":                             false,
		"I never sing":                                 false,
		"I sing, always in the morning":                false,
		"Please always answer in French":               true,
	} {
		var a Analysis
		NewAnalyzer(16).Analyze(text, English, &a)
		if got := a.Traits&HasPreference != 0; got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}

// An analyzer that numbers terms finds the same terms as one that doesn't,
// whatever the size of its cache.
func FuzzNumberingAnalyzer(f *testing.F) {
	for _, s := range []string{
		"", "?", "a", "I'd PREFER tea, please! It's user_service.go:8080 \"v2.3\"; (see a.b) - 3.14?\r\nOn 2019-05-06 Der Hund schläft. the end",
		"I’d say — “please” — Café\u0301.\r\nÜber 3rd a.b naïve \u0301x  \u0308\u1680 \u1680a 1\u00ad.5 🇩🇪🇫🇷 👩\u200d💻 ok?\r東京の cat. é\rI prefer tea… x\u200d.y שלום\"ה' \xe2\x80 z",
		"tea.\u200e Milk.\u0301 .\u00ad", "def\n\nghi\n  return 1\n\r\n\r.", strings.Repeat("x", MaxWord+1) + " end", "我们的 rest’s ＡＢＣ ünder l'enfant dell'arte",
		"Please Always tell Ada. please Never. I really do prefer it", "\x00\x7f!\"#$%&()*+-/<=>?@[]^`{|}~a.'b", "0\n\xc3", "tea\xe0\n",
	} {
		f.Add(s)
	}
	type numbering struct {
		*Analyzer
		terms *[]string
	}
	var all []numbering
	for _, words := range []int{2, 64, 1 << 12} {
		terms, numbers := []string{EndOfStatement, EndOfQuestion}, map[string]uint32{}
		all = append(all, numbering{terms: &terms, Analyzer: NewNumberingAnalyzer(words, func(term string) uint32 {
			n, ok := numbers[term]
			if !ok {
				n = uint32(len(terms))
				terms, numbers[term] = append(terms, term), n
			}
			return n
		})})
	}
	plain := NewAnalyzer(1 << 12)
	f.Fuzz(func(t *testing.T, text string) {
		var got, want Analysis
		for _, a := range all {
			for _, usual := range []Language{English, French} {
				a.Analyze(text, usual, &got)
				plain.Analyze(text, usual, &want)
				var terms []string
				for _, n := range got.Numbers {
					terms = append(terms, (*a.terms)[n])
				}
				if diff := cmp.Diff(want.Terms, terms, cmpopts.EquateEmpty()); diff != "" || got.Traits != want.Traits || got.Language != want.Language || got.hints != want.hints {
					t.Fatalf("%d words cached, %q: traits %b, want %b; language %d, want %d; terms (-plain +numbered)\n%s",
						len(a.cache), text, got.Traits, want.Traits, got.Language, want.Language, diff)
				}
			}
		}
	})
}

// A cached word, also one that was derived from its lower-case form, is the
// word that reading it gives.
func TestCachedWords(t *testing.T) {
	for l := range NumLanguages {
		a := NewAnalyzer(1 << 10)
		for w := range strings.FieldsSeq("I May Went Running Haus Was Prefer Always Yesterday March Mice A The Monday's iPhone L'ami Über 3rd 2019 Ada running may") {
			for range 2 {
				got, want := *a.word(l, w), readWord(l, w)
				want.hash = got.hash
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(cuePhraseEntry{}, word{})); diff != "" {
					t.Errorf("%s in language %d (-read +cached):\n%s", w, l, diff)
				}
			}
		}
	}
}

// What may change an earlier statement is marked, and so are statements of a
// class; words that begin a standing order are neither.
func TestChangesInText(t *testing.T) {
	for text, want := range map[string]Traits{
		"Never sing at night!":                 0,
		"I sing every night":                   0,
		"the concert is postponed to Friday":   StatesChange,
		"the concert is now on Friday":         StatesChange,
		"we put the quince up to 4.60":         StatesChange,
		"I no longer sing":                     StatesChange,
		"I don't sing anymore":                 StatesChange,
		"I'm not flying to Lisbon after all":   StatesChange,
		"Je ne bois plus de café":              StatesChange,
		"Ich esse kein Brot mehr":              StatesChange,
		"Я больше не пью кофе":                 StatesChange,
		"家长会推迟到5月15日了":                         StatesChange,
		"会議は6月10日に変更になりました":                    StatesChange,
		"워크숍이 연기됐어요":                           StatesChange,
		"تم تأجيل الندوة":                      StatesChange,
		"परीक्षा अब 12 मार्च को है":            StatesChange,
		"I live in Leeds":                      StatesClass,
		"I'm 41 years old":                     StatesClass,
		"I moved to Leeds":                     StatesClass | StatesChange,
		"我住在广州":                                StatesClass,
		"Ich bin nach Erfurt umgezogen":        StatesClass | StatesChange,
		"The gum is in the box of the library": 0,
	} {
		var a Analysis
		NewAnalyzer(16).Analyze(text, English, &a)
		if got := a.Traits & (StatesChange | StatesClass); got != want {
			t.Errorf("%q: got %b, want %b", text, got, want)
		}
	}
}
