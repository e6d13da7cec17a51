package recall

import "strings"

// CutElements cuts elements of these names away, <name ...>...</name>, as HumanWords does with those that it knows. It
// reads message once, and once more for each name that an element in it may have.
func CutElements(message string, names []string) string {
	for _, n := range opened(message, names) {
		message = cutElement(message, n)
	}
	return message
}

// opened are those of names that elements in message may have, in their order.
func opened(message string, names []string) []string {
	if len(names) == 0 || strings.IndexByte(message, '<') < 0 {
		return nil
	}
	var first [256]bool
	for _, n := range names {
		if n != "" {
			first[n[0]] = true
		}
	}
	found := make([]bool, len(names))
	for rest := message; ; {
		i := strings.IndexByte(rest, '<')
		if i < 0 {
			break
		}
		if rest = rest[i+1:]; rest == "" || !first[rest[0]] {
			continue
		}
		for i, n := range names {
			// What is cut leaves a blank, so another element may end this one's name.
			if !found[i] && strings.HasPrefix(rest, n) && len(n) < len(rest) && strings.IndexByte("> \n<", rest[len(n)]) >= 0 {
				found[i] = true
			}
		}
	}
	var out []string
	for i, is := range found {
		if is {
			out = append(out, names[i])
		}
	}
	return out
}
