package persist

import (
	"slices"
	"strings"
)

// weighty words say nothing by themselves, and yet make another statement of one that has the same telling words: who or what
// it is with, whether it is or was, how much of it.
var weighty = setOf(`was were had did will would could should may might must
	all any some each few many more most only other another same
	from for with up down off out over
	war waren hatte wird wurde soll muss von mit fur aus nach nur bei
	etait pour par avec pendant
	era fue tenia para por con desde hasta`)

// sameSense says whether the telling words of two statements that share most of them come in the same order, with the same
// negations and weighty words among them: "from Hamburg to Munich" is another way than back, and "tea over coffee" another
// taste. One may hold more telling words than the other.
func sameSense(a, b string) bool {
	x, y := senseOf(a), senseOf(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	for _, w := range y {
		switch {
		case len(x) > 0 && x[0] == w:
			x = x[1:]
		case w == "-" || weighty[w]:
			return false
		}
	}
	return len(x) == 0
}

// senseOf returns the words of a statement that sameSense goes by; - stands for any negation.
func senseOf(norm string) []string {
	all := strings.Fields(norm)
	out := all[:0:0]
	for i, w := range all {
		switch {
		case negates(w, func(k int) string {
			if i+k < len(all) {
				return all[i+k]
			}
			return ""
		}):
			out = append(out, "-")
		case polar[w], w == "longer" && i > 0 && all[i-1] == "no":
		case weighty[w]:
			out = append(out, w)
		case !lexicon().stop[w]:
			out = append(out, stemmed(w))
		}
	}
	return out
}

var supposing = setOf("if wenn falls si")

// unreal says whether a sentence tells what would be if something were otherwise: "If I lived in Paris, I would ..."
func unreal(ws []word) bool {
	if !slices.ContainsFunc(ws, func(w word) bool { return supposing[w.folded] }) { // most
		return false
	}
	supposes, would := false, false
	for i := range ws {
		w, next := ws[i].folded, folded(ws, i+1)
		switch {
		case supposing[w]:
			supposes = supposes || first[next] || next == "my" || next == "our"
		case w == "would" || w == "could":
			would = true
		default:
			raw := strings.ToLower(ws[i].raw)
			for _, end := range [...]string{"würde", "würden", "wäre", "wären", "hätte", "hätten", "könnte", "könnten"} {
				would = would || raw == end
			}
			if i > 1 && supposes {
				would = would || strings.HasSuffix(raw, "rais") || strings.HasSuffix(raw, "rait") || strings.HasSuffix(raw, "ría") || strings.HasSuffix(raw, "ríamos")
			}
		}
	}
	return supposes && would
}
