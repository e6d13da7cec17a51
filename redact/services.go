package redact

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed gitleaks/rules.tsv
var serviceData string

// service is a kind of key without a prefix of its own, recognised by the name
// of its vendor in the identifier that it is assigned to: HEROKU_TOKEN,
// "datadog-api-key". The data is from gitleaks, whose licence is in the same
// folder.
type service struct {
	id      string
	names   []string
	entropy float64 // minimum, in bits per byte
	value   string  // pattern of the value, its first group
}

// services reads the embedded data. It is constant and a test reads it, so
// invalid data panics.
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

// displayNames returns the names without those that differ only in separators.
func (v service) displayNames() []string {
	plain := strings.NewReplacer("-", "", "_", "", ".", "")
	var out []string
	for _, n := range v.names {
		if n = plain.Replace(n); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// Limits between a vendor's name and the value, in bytes. They are those of the
// rule data.
const (
	maxServiceName  = 20 // what follows the vendor's name in the identifier
	maxServiceValue = 512
)

// serviceActions registers the keywords of all services, each name once.
func serviceActions(on func(action, ...string)) {
	rulesOf := map[string][]ruleID{}
	var names []string
	for i, v := range services() {
		for _, n := range v.names {
			if rulesOf[n] == nil {
				names = append(names, n)
			}
			rulesOf[n] = append(rulesOf[n], familyService+ruleID(i))
		}
	}
	for _, n := range names {
		on(serviceAction(rulesOf[n]), n)
	}
}

// serviceAction tries the values of all services with the same name. Patterns
// are compiled when a name first occurs before an operator: most processes
// never see most of them.
func serviceAction(rules []ruleID) action {
	patterns := make([]func() *regexp.Regexp, len(rules))
	for i, id := range rules {
		patterns[i] = sync.OnceValue(func() *regexp.Regexp {
			return regexp.MustCompile("(?i)^(?:" + services()[id-familyService].value + ")(?:[`'\"\\s;,)<>&}\\]]|\\\\[nr\"']|$)")
		})
	}
	return func(s *scanner, start, end int) {
		at, ok := s.serviceValue(start, end)
		if !ok {
			return
		}
		window := s.after(at, maxServiceValue)
		for i, id := range rules {
			if !s.enabled(id) {
				continue // another one of the same form may be enabled
			}
			m := patterns[i]().FindStringSubmatchIndex(window)
			if m == nil {
				continue
			}
			value := window[m[2]:m[3]]
			if entropy(value) >= max(services()[id-familyService].entropy, 2) && isKeyLike(value) && !isPlaceholderValue(value) {
				s.add(id, at+m[2], at+m[3])
				return
			}
		}
	}
}

// serviceValue parses what follows a vendor's name: the rest of the identifier,
// quotes, an operator. It returns the start of the value. An identifier that is
// only the vendor's name does not make a key of its value: "discord: 4690...".
func (m *assignmentMatcher) serviceValue(start, end int) (at int, ok bool) {
	t := m.text
	before := byteAt(t, start-1)
	if end < m.assignedEnd || isLetter(before) && (!isUpper(t[start]) || isUpper(before)) {
		return 0, false // within a word
	}
	at = m.runTo(end, maxServiceName, wordOr(" \t.-"))
	bare := strings.TrimSpace(t[end:at]) == "" && !isWord(before) && before != '-' && before != '.'
	at = m.runTo(at, 3, in(" \t\r\n'\""))
	rest := m.after(at, 4)
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
	at = m.runTo(at+width, 5, in("`'\" =\t\r\n\\"))
	return at, at < len(t)
}

// isKeyLike reports whether value is a key and not a word of the same length:
// it has digits, or is long and not made of words.
func isKeyLike(value string) bool {
	return strings.ContainsAny(value, "0123456789") || len(value) >= 20 && !hasWords(value)
}
