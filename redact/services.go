package redact

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Keys without a prefix of their own, told by the name of their vendor in the identifier that they are assigned to:
// HEROKU_TOKEN, "datadog-api-key". The rule data is gitleaks'; its licence lies beside it.

//go:embed gitleaks/rules.tsv
var serviceData string

// service is one of these rules.
type service struct {
	id      string
	names   []string
	entropy float64 // least, in bits per byte
	value   string  // pattern of the value, its first group
}

// services reads the embedded data. It is constant, and a test reads it, so a line that can't be read is a panic.
var services = sync.OnceValue(func() []service {
	var all []service
	for column := range rows(serviceData) {
		entropy, err := strconv.ParseFloat(column[2], 64)
		if err != nil {
			panic("redact: " + err.Error())
		}
		all = append(all, service{id: column[0], names: strings.Split(column[1], ","), entropy: entropy, value: column[3]})
	}
	return all
})

// shown are the names for a reader: without those that differ in separators only.
func (v service) displayNames() []string {
	plain := func(r rune) rune {
		if strings.ContainsRune("-_.", r) {
			return -1
		}
		return r
	}
	var out []string
	for _, n := range v.names {
		if n = strings.Map(plain, n); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// Bounds between a vendor's name and the value, in bytes. They are those of the rule data.
const (
	maxServiceName  = 20 // what follows the vendor's name in the identifier
	maxServiceValue = 512
)

// serviceAction tries the values of all services that a name stands for. Patterns are compiled when a name is first met
// with an operator behind it: most processes never see most of them.
func serviceAction(rules []ruleID, which []service) action {
	patterns := make([]func() *regexp.Regexp, len(which))
	for i, v := range which {
		patterns[i] = sync.OnceValue(func() *regexp.Regexp {
			return regexp.MustCompile("(?i)^(?:" + v.value + ")(?:[`'\"\\s;,)<>&}\\]]|\\\\[nr\"']|$)")
		})
	}
	return func(s *scanner, start, end int) {
		if end < s.assignedEnd || start > 0 && isLetter(s.text[start-1]) && !(isUpper(s.text[start]) && !isUpper(s.text[start-1])) {
			return // within a word
		}
		at, ok := s.valueStart(start, end)
		if !ok {
			return
		}
		window := s.text[at:min(len(s.text), at+maxServiceValue)]
		for i, v := range which {
			if !s.enabled(rules[i]) {
				continue // another of the same form may be on
			}
			m := patterns[i]().FindStringSubmatchIndex(window)
			if m == nil {
				continue
			}
			value := window[m[2]:m[3]]
			if entropy(value) < max(v.entropy, 2) || !isKeyLike(value) || isPlaceholderValue(value) {
				continue
			}
			s.add(rules[i], at+m[2], at+m[3])
			return
		}
	}
}

// serviceValue parses what follows a vendor's name: the rest of the identifier, quotes, an operator. An identifier that
// is the vendor's name and nothing else does not make a key of its value: "discord: 4690..." is anything of Discord's.
func (m *assignmentMatcher) valueStart(start, end int) (at int, ok bool) {
	t := m.text
	at = end
	for at < len(t) && at-end < maxServiceName && (isWord(t[at]) || strings.IndexByte(" \t.-", t[at]) >= 0) {
		at++
	}
	bare := strings.TrimSpace(t[end:at]) == "" && !(start > 0 && (isWord(t[start-1]) || t[start-1] == '-' || t[start-1] == '.'))
	for quotes := at; at < len(t) && at-quotes < 3 && strings.IndexByte(" \t\r\n'\"", t[at]) >= 0; at++ {
	}
	rest := t[at:min(len(t), at+4)]
	width := 0
	for _, op := range [...]string{":::=", "::=", ":=", "||", "=>", "?=", "=", ">", ":", ","} {
		if strings.HasPrefix(rest, op) {
			width = len(op)
			break
		}
	}
	if width == 0 || bare || isFake(t, start) || isMetadata(t, end) {
		return 0, false
	}
	at += width
	for from := at; at < len(t) && at-from < 5 && strings.IndexByte("`'\" =\t\r\n\\", t[at]) >= 0; at++ {
	}
	return at, at < len(t)
}

// serviceActions adds the keywords of all services, each name once.
func serviceActions(on func(action, ...string)) {
	rulesOf := map[string][]ruleID{}
	var order []string
	for i, v := range services() {
		for _, n := range v.names {
			if rulesOf[n] == nil {
				order = append(order, n)
			}
			rulesOf[n] = append(rulesOf[n], familyService+ruleID(i))
		}
	}
	for _, n := range order {
		which := make([]service, len(rulesOf[n]))
		for i, id := range rulesOf[n] {
			which[i] = services()[id-familyService]
		}
		on(serviceAction(rulesOf[n], which), n)
	}
}
