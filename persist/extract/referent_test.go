package extract

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestReferents checks that a sentence that begins with a pronoun is kept with
// the whole words of the statement in it, and no more of the sentence.
func TestReferents(t *testing.T) {
	for message, want := range map[string]string{
		"My sister Mia called. She lives in Bergen, can you recommend a hotel?": "Mia lives in Bergen",
		"My sister Jo called. She lives in Bergen, can you recommend a hotel?":  "Jo lives in Bergen",
		"My brother Al called. His wife is a vet, what can I give her?":         "Al's wife is a vet",
		"My niece Mia is twelve. Her birthday is on 14 March.":                  "Mia's birthday is on 14 March",
	} {
		var got []string
		Statements(message, time.Time{}, func(c *Candidate) {
			quote, _, _ := Quotation(c.Text())
			got = append(got, strings.TrimRight(quote, ". "))
		})
		if len(got) == 0 || got[len(got)-1] != want {
			t.Errorf("%q: got %q, want %q last", message, got, want)
		}
	}
	for _, named := range [...]string{
		"My sister Jo called. She", "Ma sœur Jo est là. Elle", "Моя сестра Ян здесь. Она", "Mein Bruder Al ist da. Er", "Meine Nichte Jo ist da. Ihr Hund",
		"Ma nièce Jo est là. Son chien", "Mi hermana Jo está aquí. Ella", "Mijn zus Jo is hier. Zij",
	} {
		for _, rest := range [...]string{
			"???????????????????????????", " ?", " lives in Bergen????????????????????", " habite à Liège, tu connais un hôtel??", " живёт в Бергене, посоветуй отель????",
			" wohnt in Köln, weißt du was????", "'s ill – – – – ????", " vive en Málaga; ¿qué hotel????", " lives in Ålesund – œœœ, can you help?",
		} {
			message := named + rest
			Statements(message, time.Time{}, func(c *Candidate) {
				if whole := c.Text(); !utf8.ValidString(c.Quote) || !utf8.ValidString(whole) || !strings.Contains(message, c.Quote) {
					t.Errorf("%q: quotes %q as %q", message, c.Quote, whole)
				}
			})
		}
	}
}

// TestReferentsAcrossMessages checks that a pronoun means nobody whom somebody
// else spoke of, or a message that is fiction or not to be kept.
func TestReferentsAcrossMessages(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		before  Message
		message string
		want    bool
	}{
		{Message{Speaker: "ann", Text: "My niece Mia is twelve."}, "Her birthday is on 14 March.", true},
		{Message{Speaker: "bob", Text: "My niece Mia is twelve."}, "Her birthday is on 14 March.", false},
		{Message{Speaker: "ann", Text: "My niece Mia is twelve.", Fiction: true}, "Her birthday is on 14 March.", false},
		{Message{Speaker: "ann", Text: "Don't remember this: my niece Mia is twelve."}, "Her birthday is on 14 March.", false},
		{Message{Speaker: "ann", Text: "Let's pretend that my niece Mia is twelve."}, "Her birthday is on 14 March.", false},
		{Message{Speaker: "ann", Text: "Translate this: \"My niece Mia is twelve and she has gone to school in Ghent.\""}, "Her birthday is on 14 March.", false},
	} {
		for _, isNew := range [...]bool{false, true} {
			c.before.User, c.before.New, c.before.Time = true, isNew, at
			window := []Message{c.before, {User: true, New: true, Speaker: "ann", Text: c.message, Time: at}}
			r, err := Read(window, &Summary{}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := false
			for _, one := range r.Candidates {
				got = got || one.Message == 1 && strings.Contains(one.Text(), "Mia")
			}
			if got != c.want {
				t.Errorf("%q (new: %t), then %q: resolved %t", c.before.Text, isNew, c.message, got)
			}
		}
	}
}
