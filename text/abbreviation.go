package text

// maxAbbreviation is the longest word that can be an abbreviation, in bytes.
const maxAbbreviation = 6

// abbreviated reports whether the point after a word seldom ends a sentence. A
// word too many joins two sentences, one too few splits a name. "etc", "usw"
// and "Inc" often end sentences, so they are left out.
func abbreviated(word string) bool {
	switch word {
	case "Dr", "dr", "Mr", "mr", "Mrs", "mrs", "Ms", "Prof", "prof", "St", "Jr", "vs", "cf", "approx", "Fig", "fig",
		"Nr", "nr", "Hr", "Fr", "bzw", "ca", "evtl", "ggf", "vgl", "Vgl", "Mme", "Mlle", "Sr", "Sra", "Srta", "Dra", "Dott", "Sig", "Ing":
		return true
	}
	return false
}

// EndsInAbbreviation reports whether a point after a text would only abbreviate
// its last word: "Dr", "J", "e.g", "U.S".
func EndsInAbbreviation(text []byte) bool {
	from, points := len(text), 0
	for from > 0 && (isLetter(text[from-1]) || text[from-1] == '.') {
		if from--; len(text)-from > maxAbbreviation {
			return false
		}
		if text[from] == '.' {
			points++
		}
	}
	word := text[from:]
	switch {
	case len(word) == 0, from > 0 && (text[from-1] >= 0x80 || isDigit(text[from-1])):
		return false
	case points > 0:
		return initials(word)
	case len(word) == 1:
		return word[0] >= 'A' && word[0] <= 'Z' && word[0] != 'I' // "so did I."
	}
	return abbreviated(string(word))
}

// initials reports whether a word consists of parts of one or two letters,
// separated by points: "z.B", "Ph.D", "U.S.A".
func initials(word []byte) bool {
	part := 0
	for i, c := range word {
		switch {
		case c != '.':
			if part++; part > 2 {
				return false
			}
		case part == 0 || i == len(word)-1: // "..."
			return false
		default:
			part = 0
		}
	}
	return true
}

func isLetter(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }

// abbreviations are those that [Sentences] never splits after, in lower case.
// It goes further than EndsInAbbreviation, and has words that often end
// sentences, too: two statements in one do less harm than one torn apart.
var abbreviations = WordSet(`e.g i.e etc vs approx mr mrs ms dr prof st no nr ca z.b d.h u.a bzw usw p.ex sr sra inc ltd
jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun`)
