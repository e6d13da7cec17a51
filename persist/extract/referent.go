package extract

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/remora-proxy/remora/text"
)

// A fact names whom it is about: "Her birthday is on 14 March." is kept as
// "Mia's birthday is on 14 March." where the sentences before it speak of one
// person whom "her" can mean, and is no fact otherwise.

//go:embed persons.txt
var personsText string

// persons are the lists of persons.txt.
var persons = sync.OnceValue(func() map[string]map[string]bool {
	lists := map[string]map[string]bool{}
	for line := range strings.Lines(personsText) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || name == "#" {
			continue
		}
		if lists[name] == nil {
			lists[name] = map[string]bool{}
		}
		for w := range strings.FieldsSeq(rest) {
			lists[name][foldPronoun(w)] = true
		}
	}
	return lists
})

// foldPronoun folds a word, and of "she=my_friend" only what is before the "=".
func foldPronoun(w string) string {
	of, mine, paired := strings.Cut(w, "=")
	if paired {
		return fold(of) + "=" + mine
	}
	return fold(w)
}

type gender uint8

const (
	female gender = 1 << iota
	male
	anyGender = female | male
)

// person is somebody whom a sentence speaks of.
type person struct {
	gender gender
	called string // the name, or "my sister"
	whole  string // "my sister Mia"
}

// personsIn returns the persons that a sentence speaks of: whose whom the
// speaker calls theirs, and who is named.
func personsIn(s string, ws []word) (all []person) {
	lists := persons()
	for i := 0; i < len(ws); i++ {
		w := &ws[i]
		own := lists["own"][w.folded]
		if own || lists["a"][w.folded] {
			noun := i + 1
			if noun < len(ws) && genderOf(&ws[noun]) == 0 && !ws[noun].clause {
				noun++ // "my younger sister"
			}
			if noun >= len(ws) || genderOf(&ws[noun]) == 0 {
				continue
			}
			p := person{gender: genderOf(&ws[noun])}
			name := noun + 1
			for name < len(ws) && lists["called"][ws[name].folded] {
				name++
			}
			last := noun
			if name < len(ws) && named(&ws[name]) && !lexicon().weekdays[ws[name].folded] && !lexicon().months[ws[name].folded] {
				for last = name; last+1 < len(ws) && named(&ws[last+1]) && !ws[last+1].clause; {
					last++ // a surname
				}
				p.called = s[ws[name].start:ws[last].end]
			}
			switch {
			case own:
				if p.whole = s[w.start:ws[last].end]; p.called == "" {
					p.called = p.whole
				}
			case p.called == "":
				continue // "a sister"
			default:
				p.whole = p.called
			}
			all = append(all, p)
			i = last
		} else if named(w) && w.known == unknownWord && (i == 0 || !lists["place"][ws[i-1].folded]) && (i > 0 || len(ws) > 1 && lists["verb"][ws[1].folded]) {
			all = append(all, person{anyGender, w.raw, w.raw})
		}
	}
	return all
}

// aboutOf returns the persons whom the last sentence of what somebody typed
// speaks of that speaks of any, or those before it.
func aboutOf(typed string, before []person) []person {
	var space [stackWords]word
	for n, s := range text.Sentences(typed) {
		if n == maxSpans {
			break
		}
		if of := personsIn(s, appendWords(space[:0], s)); len(of) > 0 {
			before = of
		}
	}
	return before
}

// mentions are the persons whom each speaker spoke of last. What is said in a role
// play, as fiction or not to be kept leaves none behind.
type mentions struct {
	about   map[string][]person // by the speaker
	playing bool                // role play is going on in the messages that were read before
}

// read reads a message of the user that is not new.
func (k *mentions) read(m *Message) {
	typed, _ := typedText(m.Text, ownWords(m.Text))
	playing := k.playing || m.Fiction
	k.playing = rolePlayAfter(typed, k.playing)
	if playing || k.playing || frameOf(typed) != framePlain {
		delete(k.about, m.Speaker)
		return
	}
	k.about[m.Speaker] = aboutOf(typed, k.about[m.Speaker])
}

// keep keeps the persons whom a new message spoke of, whose sentences are spans.
func (k *mentions) keep(m *Message, own ownText, about []person, spans []span, playing bool) {
	unreal := playing || slices.ContainsFunc(spans, func(sp span) bool { return sp.reject == RejectFiction || sp.reject == RejectDeclined })
	if !unreal && len(about) > 0 {
		typed, _ := typedText(own.message, own.text)
		unreal = frameOf(typed) != framePlain
	}
	if unreal {
		about = nil
	}
	k.about[m.Speaker] = about
}

func genderOf(w *word) gender {
	switch lists := persons(); {
	case lists["female"][w.folded]:
		return female
	case lists["male"][w.folded]:
		return male
	case lists["person"][w.folded]:
		return anyGender
	}
	return 0
}

// meant returns the one person whom a pronoun of a gender can mean.
func meant(all []person, g gender) (p person, ok bool) {
	for _, one := range all {
		if one.gender&g == 0 || ok && one.called == p.called {
			continue
		}
		if ok {
			return person{}, false
		}
		p, ok = one, true
	}
	return p, ok
}

// pronoun reads the pronoun that a statement begins with: whom it may mean, and
// what says the same of the speaker, "my" for "her", or of a friend, for "she".
func pronoun(ws []word) (g gender, own string, ok bool) {
	if len(ws) < 2 {
		return 0, "", false
	}
	w, next := ws[0].folded, ws[1].folded
	lists := persons()
	switch {
	case w == "il" && (next == "y" || next == "faut" || next == "fait" || next == "pleut" || next == "est"),
		w == "el" && !strings.ContainsRune(ws[0].raw, 'é'), w == "sie" && (strings.HasSuffix(next, "n") || next == "sind"):
		return 0, "", false
	case lists["theirs"][w]:
		return 0, "", true
	}
	for _, list := range [...]struct {
		name string
		gender
	}{{"she", female}, {"he", male}, {"her", female}, {"his", male}, {"hers", anyGender}} {
		for form := range lists[list.name] {
			if of, mine, _ := strings.Cut(form, "="); of == w {
				return list.gender, strings.ReplaceAll(mine, "_", " "), true
			}
		}
	}
	return 0, "", false
}

// referring makes a candidate of a sentence that begins with a pronoun, which
// stands at ws[main]: it names the person whom the pronoun means. ok is false
// where it begins with none.
func referring(s string, ws []word, main int, known []person) (sp span, about person, ok bool) {
	g, own, ok := pronoun(ws[main:])
	if !ok {
		return span{}, person{}, false
	}
	if ws[main].folded == "il" && tongueOf(s, ws) != nil {
		return span{}, person{}, false // Italian, where it is an article
	}
	p, found := meant(known, g)
	if !found {
		return span{reject: RejectUnclear}, person{}, true
	}
	from := ws[main].end
	if at := strings.IndexAny(ws[main].raw, "'’"); at > 0 { // "she's"
		from = ws[main].start + at
	}
	rest := s[from:]
	judged := judge(own + rest)
	if judged.candidate == nil || judged.candidate.Requested {
		return span{reject: RejectUnclear}, p, true
	}
	// What follows the statement in the sentence is left out.
	said, ok := strings.CutPrefix(judged.candidate.Quote, own)
	if !ok || said == "" || !strings.HasPrefix(rest, said) {
		return span{reject: RejectUnclear}, p, true
	}
	said = strings.TrimRight(said, "?,;:-– ")
	quote := s[ws[main].start:from] + said
	whole := p.called + said
	switch possessive := !strings.Contains(own, " "); {
	case possessive && own == "my":
		whole = p.called + "'s" + said
	case possessive:
		whole = p.called + ": " + quote
	}
	c := &Candidate{Quote: quote, named: whole, kind: judged.candidate.kind, words: words(whole)}
	return span{candidate: c}, p, true
}
