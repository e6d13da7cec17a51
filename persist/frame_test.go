package persist

import (
	"slices"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// TestDeclinedTurnsAreNotStored checks that a turn whose user asks not to keep
// it leaves no passage either.
func TestDeclinedTurnsAreNotStored(t *testing.T) {
	for text, want := range map[string]bool{
		"Please don't store this, but I live in Paris.":                      true,
		"This is confidential, don't store it: I have diabetes.":             true,
		"I live in Paris. Don't remember that.":                              true,
		"Off the record: I hate my boss and I live in Rome.":                 true,
		"Don’t remember this: I live in Oslo.":                               true,
		"Don't remember that I live in Paris.":                               true,
		"Do not save this: my salary is 90000 euros.":                        true,
		"Ich wohne in Köln. Merk dir das bitte nicht.":                       true,
		"Don't keep any of this in your memory, please.":                     true,
		"Keep this between us: I'm leaving the firm.":                        true,
		"Das bleibt unter uns: Ich kündige im Mai.":                          true,
		"Speichere das bitte nicht, ich habe Diabetes.":                      true,
		"Ne note pas ça : je quitte mon mari.":                               true,
		"N'enregistrez pas cela, je suis malade.":                            true,
		"No anotes esto: me voy de la empresa.":                              true,
		"Non ricordarlo: lascio il lavoro.":                                  true,
		"Non salvare questo, sto divorziando.":                               true,
		"Não guarde isso: vou pedir demissão.":                               true,
		"Onthoud dit niet: ik ga scheiden.":                                  true,
		"Не запоминай это: я увольняюсь.":                                    true,
		"不要记住这个：我打算离婚。":                                                      true,
		"これは保存しないで：来年辞めます。":                                                  true,
		"이건 기억하지 마: 곧 퇴사해요.":                                                 true,
		"لا تحفظ هذا: سأترك العمل.":                                          true,
		"Ich merke mir das nicht so leicht, ich wohne in Köln.":              false,
		"Speicher das nicht im Cache, wir nutzen Redis.":                     false,
		"No guardes el archivo en la carpeta, usa la otra.":                  false,
		"We split the bill between us, 40 euros each.":                       false,
		"我不记得他的名字了，他住在北京。":                                                   false,
		"I don't remember that, but I live in Paris.":                        false,
		"Don't save the file to disk. I prefer tabs over spaces.":            false,
		"Don't store it in a global variable.":                               false,
		"We never save this to disk.":                                        false,
		"Do you remember this: I live in Oslo?":                              false,
		"```\n# do not store this\n```\nWhat does this comment mean for us?": false,
	} {
		withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
			p.settle(t, userTurn("t1", text))
			page, err := store.Scan(t.Context(), testScope, storage.Query{})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(page.Memories) == 0; got != want {
				t.Errorf("%q: declined %v, want %v", text, got, want)
			}
			if got := p.Stats().Dropped[DropDeclined]; (got == 1) != want {
				t.Errorf("%q: %d turns counted as declined", text, got)
			}
		})
	}
}

// TestRolePlaySpansMessages checks that statements in a role are not the
// user's, over several messages, until the play is over.
func TestRolePlaySpansMessages(t *testing.T) {
	got := factsOfDialog(t,
		"Let's role-play. You are a tavern keeper, I'm Sir Roland and I live in Camelot.", "Welcome, Sir Roland! Take a seat by the fire and have an ale.",
		"My horse is called Thunder and I'm allergic to dragons.", "Thunder is in the stable, and no dragon comes in here.",
		"I have three brothers in Avalon.", "They were here last week, and drank all the mead.",
		"OK, end of the role play. I'm allergic to walnuts.", "Noted.",
		"My car is a blue Golf.", "Nice.",
	)
	want := []string{`"I'm allergic to walnuts."`, `"My car is a blue Golf."`}
	if !slices.Equal(got, want) && !slices.Equal(got, want[1:]) { // what ends the play may count as part of it
		t.Errorf("got %q", got)
	}
	if got := factsOfDialog(t, "My role is head of platform at Siemens.", "I see.", "My car is a blue Golf.", "Nice."); len(got) != 2 {
		t.Errorf("a role of one's own: got %q", got)
	}
}
