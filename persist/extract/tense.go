package extract

import "strings"

var (
	pastWords = setOf(`was were went had did got came saw took made bought met left ate ran flew drove told said gave found spent won lost felt held kept paid
		sold sent slept spoke taught thought wore wrote broke fell forgot began became rode sang read heard hurt
		war waren hatte hatten wurde wurden ging kam gab etait etais etaient avait avais fue fui fueron era estuve estuvo tuve tuvo hice hizo`)
	presentWords = setOf(`is are be will would shall should can could may might must have has need needs want wants plan planning going due ends starts begins leaves arrives opens closes expires
		ist sind werde wird muss soll kann mochte will est sont sera doit veux es son sera debe quiero tengo tiene`)
	perfectAuxiliaries = setOf("have has habe hat haben bin ai avons ont he hemos ha") // before a participle
	untilWords         = setOf("for until till by to fur bis zum pour jusqu'a para hasta")
	formsOfBe          = setOf("is are was were be been being")
	notPast            = setOf("need speed feed bed red hundred wed indeed exceed seed weed shed sled")
)

// isPast reports whether the verb nearest to a day, preferably before it, is in
// the past tense: "On Monday I washed the car". The date of such a day does not
// follow from the words: "I bought tickets for the show on Friday". A day that
// something was moved or booked for is in the future.
func isPast(ws []word, day int) bool {
	if before := folded(ws, day-1); untilWords[before] || among(" the den dem le la el los ", before) && untilWords[folded(ws, day-2)] {
		return false
	}
	for i := day - 1; i >= 0 && i > day-maxClause; i-- {
		if past, known := tense(ws, i); known {
			return past
		}
	}
	for i := day + 1; i < len(ws) && i < day+maxClause; i++ {
		if past, known := tense(ws, i); known {
			return past
		}
	}
	return false
}

// maxClause is how far from a day its verb is searched, in words.
const maxClause = 16

// tense returns whether a word puts its clause in the past tense; known is
// false if it does not tell.
func tense(ws []word, i int) (past, known bool) {
	w := ws[i].folded
	switch {
	case w == "got" && i > 0 && (perfectAuxiliaries[ws[i-1].folded] || i > 1 && perfectAuxiliaries[ws[i-2].folded]): // "I've got an exam on Friday"
		return false, true
	case w == "am": // a preposition in German
		return false, i > 0 && ws[i-1].folded == "i"
	case pastWords[w]:
		return true, true
	case participle(ws[i].raw) && i > 0 && perfectAuxiliaries[ws[i-1].folded], len(w) > 4 && strings.HasPrefix(w, "ge") && (strings.HasSuffix(w, "t") || strings.HasSuffix(w, "en")) && auxiliaryBefore(ws, i):
		return true, true
	case presentWords[w]:
		return false, true
	case len(w) > 4 && strings.HasSuffix(w, "ed") && !notPast[w]:
		if i > 0 && formsOfBe[ws[i-1].folded] {
			return pastWords[ws[i-1].folded], true
		}
		return !untilWords[folded(ws, i+1)], true
	}
	return false, false
}

// participle reports whether a word may be a past participle in English, French
// or Spanish.
func participle(raw string) bool {
	w := strings.ToLower(raw)
	for _, end := range [...]string{"ed", "é", "ée", "és", "ado", "ido"} {
		if strings.HasSuffix(w, end) {
			return true
		}
	}
	return false
}

// auxiliaryBefore finds the auxiliary of a German perfect before its
// participle.
func auxiliaryBefore(ws []word, i int) bool {
	for j := i - 1; j >= 0 && j > i-maxClause; j-- {
		if perfectAuxiliaries[ws[j].folded] {
			return true
		}
	}
	return false
}
