package query

import (
	"strings"
	"testing"

	"github.com/remora-proxy/remora/text"
)

func TestReadIntent(t *testing.T) {
	for text, want := range map[string]Intent{
		"when did i move?":                                    WantsTime,
		"what year was it?":                                   WantsTime,
		"how long did it take?":                               WantsTime | WantsNumber,
		"how many cats?":                                      WantsNumber,
		"who is my boss?":                                     WantsName,
		"what did you recommend for dinner?":                  WantsAssistant,
		"remind me of the plan":                               WantsAssistant,
		"in our last conversation":                            WantsAssistant,
		"we discussed the shed":                               WantsAssistant,
		"how can i fix the tap?":                              WantsAdvice,
		"what should i cook?":                                 WantsAdvice,
		"should i sell the car?":                              WantsAdvice,
		"could you show me a plan?":                           WantsAdvice,
		"can you suggest a film?":                             WantsAdvice | WantsAssistant,
		"help me pack":                                        WantsAdvice,
		"any tips for rome?":                                  WantsAdvice,
		"which tips are there?":                               WantsName,
		"in order to fly, what should i pack?":                WantsAdvice,
		"can you list the order in which i met them?":         WantsName | WantsAssistant,
		"can you walk through our plans across our chats?":    0,
		"can you give me a summary?":                          WantsAssistant,
		"how did you help me pack?":                           0,
		"do you like soup":                                    0,
		"the movie is about a dog":                            0,
		"you and the very long way to the sea of suggestions": 0,
	} {
		if got := ReadIntent([]byte(text)); got != want {
			t.Errorf("%q: got %b, want %b", text, got, want)
		}
	}
}

func TestHumanWordsDropRecalledBlocks(t *testing.T) {
	if got := HumanWords("<remora-memory-4f1c0a9be77d>\n- x\n</remora-memory-4f1c0a9be77d>\n<file>x</file>hello"); strings.TrimSpace(got) != "hello" {
		t.Errorf("got %q, want hello", got)
	}
}

func FuzzAppendLower(f *testing.F) {
	f.Add("@[`{AZaz")
	f.Add("Café ÀÉ the QUICK brown Fox")
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := string(appendLower([]byte("A"), s, text.IsASCII(s))), "A"+strings.ToLower(s); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	})
}

func TestGivesAge(t *testing.T) {
	for said, want := range map[string]bool{
		"I'm 34.": true, `"I'm 21 and honestly never learnt statistics"`: true, "I am a 45 year old nurse": true, "I was born in 1988": true, "my birthday is on 3 May": true,
		"I turned 40 yesterday": true, "Ich bin 1975 geboren.": true, "ich bin 50 Jahre alt": true, "J’ai 29 ans": true, "tengo 42 años y vivo en Valencia": true, "ho 35 anni": true,
		"tenho 51 anos": true, "34歳です。": true, "我今年三十": false, "我今年30岁": true, "Ik ben 30 jaar": true, "Nací en 1990": true,
		"I'm 180 cm": false, "I'm 5 minutes late": false, "My dog Bruno is 9 years old": false, "We were 12 people": false, "ich bin 10 Minuten zu spät": false, "娘は3歳です": false,
		"my sister was born in 1990": false, "I ran 34 km": false, "the birthday cake was good": false,
	} {
		if got := GivesAge(strings.ToLower(HeadAndTail(said))); got != want {
			t.Errorf("%q: got %t, want %t", said, got, want)
		}
	}
}

// A nationality is not a name.
func TestGivesName(t *testing.T) {
	for said, want := range map[string]bool{
		"I'm Anna.": true, "Ciao, mi chiamo Giulia e ho 35 anni.": true, "Hi! I'm Maria, I cook a lot": true, "I'm German but I write English.": false, "I'm Muslim.": false, "I’m Jonas": true,
		"The dog is big, call me Sam": true, "I'm tired": false, "my dog's name is Rex": false, "Hola, me llamo Lucía": true,
	} {
		if got := GivesName(said); got != want {
			t.Errorf("%q: got %t, want %t", said, got, want)
		}
	}
}

// An age is found at both ends of a long text.
func TestGivesAgeInLongTexts(t *testing.T) {
	long := strings.Repeat("12 apples and pears. ", 1000)
	for said, want := range map[string]bool{"I was born in 1990. " + long: true, long + "I was born in 1990.": true, long + "I was born in 1990. " + long: false} {
		if got := GivesAge(strings.ToLower(HeadAndTail(said))); got != want {
			t.Errorf("%.20q: got %t, want %t", said, got, want)
		}
	}
}

// Every line of the table names a language and a sign that are known.
func TestConstraintTable(t *testing.T) {
	areas := 0
	for line := range strings.Lines(constraintsText) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0, f[0] == "#":
		case f[0] == ":", f[0] == "::":
			areas++
		case len(f[0]) != 3 || !strings.Contains("?!+~&=*-", f[0][2:]) || areas == 0:
			t.Errorf("%q: no sign", line)
		default:
			if _, ok := constraintLanguages[f[0][:2]]; !ok {
				t.Errorf("%q: no language", line)
			}
		}
	}
	if areas > 32 {
		t.Errorf("got %d areas, which take a bit each of 32", areas)
	}
}
