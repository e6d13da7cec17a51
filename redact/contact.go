package redact

import (
	"strings"
)

// Addresses and numbers that are written so that programs don't read them, or as another program encoded them.

// writtenAt are the ways to write an @, writtenDot those to write a dot. Around those in brackets a blank may stand.
var (
	obfuscatedAts  = []string{"(at)", "[at]", "{at}", "<at>", " at ", "%40", "&#64;", "&#x40;", `\u0040`}
	obfuscatedDots = []string{" (dot) ", " [dot] ", "(dot)", "[dot]", "{dot}", " dot ", "&#46;", "%2e", "."}
)

// obfuscatedEmail finds an address around something that stands for its @. " at " is a word, too: it takes a written dot.
func (m *addressMatcher) obfuscatedEmail(start, end int) {
	t := m.text
	spelled := t[start] == ' '
	if bracket := t[start]; bracket == '(' || bracket == '[' || bracket == '{' || bracket == '<' {
		if start > 0 && t[start-1] == ' ' {
			start--
		}
		if byteAt(t, end) == ' ' {
			end++
		}
	}
	from := m.back(start, 64, func(c byte) bool { return isAlnum(c) || strings.IndexByte("._%+-", c) >= 0 })
	if from == start || !isAlnum(t[from]) {
		return
	}
	labels, i, stop, last := 0, end, 0, ""
	for labels < 8 {
		label := m.runTo(i, 63, func(c byte) bool { return isAlnum(c) || c == '-' })
		if label == i {
			break
		}
		labels, stop, last = labels+1, label, t[i:label]
		dot := 0
		for _, w := range obfuscatedDots {
			if rest := t[label:]; len(rest) > len(w) && strings.EqualFold(rest[:len(w)], w) {
				dot = len(w)
				break
			}
		}
		if dot == 0 || spelled && labels == 1 && dot == 1 {
			break
		}
		i = label + dot
	}
	if labels >= 2 && isTopLevel(last) {
		m.add(ruleEmail, from, stop)
	}
}

// phoneLink finds the number of a link that opens a chat with it.
func (m *numberMatcher) phoneLink(_, end int) {
	i := m.runTo(end, 3, func(c byte) bool { return c == '+' || c == '%' || c == '2' || c == 'B' })
	if stop := m.run(i, isDigit); stop-i >= minPhoneDigits && stop-i <= maxPhoneDigits {
		m.add(rulePhone, i, stop)
	}
}
