package text

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// timeVocabulary holds the words, without accents, by which people ask in a
// language other than English for what was: "gestern", "la semaine dernière",
// "hace dos semanas". A word may mean something else in another language
// ("hier"), so a text is read by the vocabulary of its own.
type timeVocabulary struct {
	yesterday, before, last, this, ago, after []string // ago precedes the number, after follows the unit
	units                                     [5][]string
	weekdays, months, numbers                 []string // from Monday, January, one
	telling                                   []string // what people do at any time: said, told, did
	known                                     map[string]bool
}

// Units, in the order of the rows.
const (
	unitDay = iota
	unitWeek
	unitMonth
	unitYear
	unitWeekend
)

var timeVocabularies = map[Language]*timeVocabulary{
	German: newTimeVocabulary(`gestern|vorgestern|letzte letzten letzter letztes letztem vergangene vergangenen vergangenes vorige vorigen voriges|diese dieser dieses diesen diesem|vor|
tag tage tagen|woche wochen|monat monate monaten monats|jahr jahre jahren jahres|wochenende
montag dienstag mittwoch donnerstag freitag samstag sonntag|januar februar marz april mai juni juli august september oktober november dezember
ein zwei drei vier funf sechs eine einem einer|besprochen gesprochen erzahlt gesagt gemacht getan geredet beschlossen entschieden diskutiert erledigt gearbeitet geschrieben wovon woruber woran passiert los`),
	French: newTimeVocabulary(`hier|avant-hier|derniere dernier dernieres derniers passee passe precedente|cette ce|il-y-a|
jour jours|semaine semaines|mois|an ans annee annees|week-end weekend
lundi mardi mercredi jeudi vendredi samedi dimanche|janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre
un deux trois quatre cinq six une|parle dit fait discute raconte decide travaille evoque passe parlait faisait`),
	Spanish: newTimeVocabulary(`ayer|anteayer antier|pasada pasado ultima ultimo|esta este|hace|
dia dias|semana semanas|mes meses|ano anos|finde
lunes martes miercoles jueves viernes sabado domingo|enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
un dos tres cuatro cinco seis una uno|hablamos hable hablado dije dijimos dicho conte contado hicimos hice hecho discutimos decidimos paso trabajamos comente comentamos`),
	Italian: newTimeVocabulary(`ieri|altroieri avantieri|scorsa scorso passata passato|questa questo||fa
giorno giorni|settimana settimane|mese mesi|anno anni|weekend
lunedi martedi mercoledi giovedi venerdi sabato domenica|gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
un due tre quattro cinque sei una uno|parlato detto fatto raccontato discusso deciso lavorato successo`),
	Portuguese: newTimeVocabulary(`ontem|anteontem|passada passado ultima ultimo|esta este nesta neste essa esse|ha faz|atras
dia dias|semana semanas|mes meses|ano anos|fim-de-semana
segunda terca quarta quinta sexta sabado domingo|janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro
um dois tres quatro cinco seis uma duas|falamos falei falado disse dissemos dito contei contado fizemos fiz feito discutimos decidimos aconteceu conversamos trabalhamos feira`),
	Dutch: newTimeVocabulary(`gisteren|eergisteren|vorige afgelopen laatste|deze dit||geleden
dag dagen|week weken|maand maanden|jaar jaren|weekend
maandag dinsdag woensdag donderdag vrijdag zaterdag zondag|januari februari maart april mei juni juli augustus september oktober november december
een twee drie vier vijf zes|gesproken gezegd verteld gedaan besproken besloten gewerkt waarover`),
}

// newTimeVocabulary parses four lines: the words of when, the units, weekdays
// and months, numbers and telling.
func newTimeVocabulary(row string) *timeVocabulary {
	lines := strings.Split(row, "\n")
	fields := func(line int) (all [][]string) {
		for _, f := range strings.Split(lines[line], "|") {
			all = append(all, strings.Fields(f))
		}
		return all
	}
	when, units, names, rest := fields(0), fields(1), fields(2), fields(3)
	t := &timeVocabulary{
		yesterday: when[0], before: when[1], last: when[2], this: when[3], ago: when[4], after: when[5],
		units: [5][]string(units), weekdays: names[0], months: names[1], numbers: rest[0], telling: rest[1], known: map[string]bool{},
	}
	for _, line := range lines {
		for w := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == '|' || r == '-' }) {
			t.known[w] = true
		}
	}
	return t
}

// timeSigns are the expressions of scripts without spaces; back means the last
// such unit, not this one. A sign precedes those that it contains.
var timeSigns = []struct {
	sign string
	what string
	back bool
}{
	{"一昨日", "before", true}, {"昨日", "yesterday", true}, {"先週", "week", true}, {"先月", "month", true}, {"去年", "year", true}, {"昨年", "year", true}, {"今週", "week", false}, {"今月", "month", false},
	{"前天", "before", true}, {"昨天", "yesterday", true}, {"上周", "week", true}, {"上週", "week", true}, {"上星期", "week", true}, {"上个星期", "week", true}, {"上个月", "month", true}, {"上個月", "month", true},
	{"这周", "week", false}, {"本周", "week", false}, {"这个月", "month", false},
}

var unitNames = [...]string{unitWeek: "week", unitMonth: "month", unitYear: "year", unitWeekend: "weekend"}

// otherLanguages reads the time expressions of a lower-case text in another
// language than English.
func (r *dateReader) otherLanguages(text string, l Language) {
	for _, s := range timeSigns {
		if !IsASCII(text) && strings.Contains(text, s.sign) {
			switch s.what {
			case "before":
				r.add(r.today-2, r.today-1)
			case "yesterday":
				r.add(r.today-1, r.today)
			default:
				r.named(s.what, s.back)
			}
			return
		}
	}
	t := timeVocabularies[l]
	if t == nil {
		return
	}
	words := strings.FieldsFunc(unaccented(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	if !slices.ContainsFunc(words, func(w string) bool { return t.known[w] }) {
		return
	}
	for i := range words {
		if len(r.found) == maxDates {
			return
		}
		t.read(r, words, i)
	}
}

// read reads the expression that begins at a word, if one does.
func (t *timeVocabulary) read(r *dateReader, words []string, i int) {
	at := func(k int) string {
		if k >= 0 && k < len(words) {
			return words[k]
		}
		return ""
	}
	is := func(list []string, k int) bool { return at(k) != "" && slices.Contains(list, at(k)) }
	unit := func(k int) int {
		return slices.IndexFunc(t.units[:], func(names []string) bool { return slices.Contains(names, at(k)) && at(k) != "" })
	}
	number := func(k int) int {
		if n := slices.Index(t.numbers, at(k)); n >= 0 {
			switch {
			case at(k) == "duas":
				return 2
			case n >= 6: // another form of one
				return 1
			}
			return n + 1
		}
		n, _ := strconv.Atoi(at(k))
		if n > 99 {
			return 0
		}
		return n
	}
	two := at(i) + "-" + at(i+1)
	switch {
	case is(t.before, i), slices.Contains(t.before, two), at(i) == "altro" && at(i+1) == "ieri":
		r.add(r.today-2, r.today-1)
	case is(t.yesterday, i) && !slices.Contains(t.before, at(i-1)+"-"+at(i)) && at(i-1) != "altro":
		r.add(r.today-1, r.today)
	case slices.Contains(t.units[unitWeekend], two) || at(i) == "fin" && at(i+2) == "semana" || at(i) == "fim" && at(i+2) == "semana" || at(i) == "fine" && at(i+1) == "settimana":
		r.named("weekend", true)
	case unit(i) > unitDay && (is(t.last, i-1) || is(t.last, i+1)) && !t.partOfWeekend(words, i):
		r.named(unitNames[unit(i)], true)
	case unit(i) > unitDay && is(t.this, i-1):
		r.named(unitNames[unit(i)], false)
	case number(i) > 0 && unit(i+1) >= 0 && (is(t.ago, i-1) || is(t.after, i+2) || len(t.ago) > 0 && t.ago[0] == at(i-3)+"-"+at(i-2)+"-"+at(i-1)):
		r.ago(number(i), unit(i+1))
	case is(t.weekdays, i):
		for d := r.today - 1; d >= r.today-7; d-- {
			if int((d+3)%7) == slices.Index(t.weekdays, at(i)) { // 1970-01-01 was a Thursday
				r.add(d, d+1)
			}
		}
	case is(t.months, i):
		t.month(r, words, i)
	}
}

// partOfWeekend reports whether the week at a word belongs to a weekend: "el
// fin de semana pasado".
func (t *timeVocabulary) partOfWeekend(words []string, i int) bool {
	return i >= 2 && (words[i-2] == "fin" || words[i-2] == "fim") || i >= 1 && words[i-1] == "fine"
}

// month reads a date around the name of a month: "14. März", "le 3 avril 2025",
// "14 de marzo", "im Mai".
func (t *timeVocabulary) month(r *dateReader, words []string, i int) {
	day, year := "", 0
	k := i - 1
	if k >= 0 && words[k] == "de" {
		k--
	}
	if k >= 0 {
		if n, err := strconv.Atoi(words[k]); err == nil && n >= 1 && n <= 31 {
			day = words[k]
		}
	}
	k = i + 1
	if k < len(words) && words[k] == "de" {
		k++
	}
	if k < len(words) && isYear(words[k]) {
		year, _ = strconv.Atoi(words[k])
	}
	r.ofMonth(year, slices.Index(t.months, words[i])+1, day)
}

// NamesOnlyTime reports whether a question in lower case, in another language
// than English, consists of words of time, of telling and of function words
// only, and whether it has one of telling: "was haben wir gestern besprochen?".
func NamesOnlyTime(lower string, l Language) (only, telling bool) {
	t := timeVocabularies[l]
	if t == nil {
		only = namesOnlyTimeSigns(lower)
		return only, only
	}
	for w := range strings.FieldsFuncSeq(unaccented(lower), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
		switch {
		case slices.Contains(t.telling, w):
			telling = true
		case t.known[w], isDigit(w[0]), len(w) < 3, unaccentedStops()[l][w]:
		default:
			return false, false
		}
	}
	return true, telling
}

// tellingSigns are words of telling in scripts without spaces, and those that
// come with them.
var tellingSigns = strings.Fields("何を 何について 話しましたか 話しました 話した 話し 言いましたか 言った しましたか した 教えた 伝えた 決めた 私 我们 我們 我 你 聊了 聊 说了 說了 说 說 做了 做 告诉 告訴 谈了 談了 讨论了 讨论 什么 什麼 过 過 の に は を か ね と 、 ？ ? 了 些 啥 ました まし ます")

// namesOnlyTimeSigns reports whether nothing is left of a question in a script
// without spaces but words of time and of telling.
func namesOnlyTimeSigns(lower string) bool {
	rest := lower
	for _, s := range timeSigns {
		rest = strings.ReplaceAll(rest, s.sign, "")
	}
	if len(rest) == len(lower) {
		return false
	}
	for _, s := range tellingSigns {
		rest = strings.ReplaceAll(rest, s, "")
	}
	return strings.TrimSpace(rest) == ""
}
