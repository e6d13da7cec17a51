package fence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// letters of the fence's name, as a disguise must spell them.
const letters = "remoramemory"

// maxGap is how many separators may stand between two letters of a disguised
// name.
const maxGap = 3

// defuseName replaces every spelling of the fence's name by two plain words,
// and the angle brackets around it by parentheses. Neither Strip nor a reader
// who ignores case, width and script takes the result for a fence.
func defuseName(s string) string {
	if !mayHoldName(s) {
		return s
	}
	rs := []rune(s)
	var out []rune
	for i := 0; i < len(rs); {
		end, plain := matchName(rs, i)
		if end == 0 || plain {
			out = append(out, rs[i])
			i++
			continue
		}
		// Brackets right before the name: "<", "</", "< /".
		for j := len(out) - 1; j >= 0 && (out[j] == ' ' || out[j] == '\\' || fold(out[j]) == '/' || fold(out[j]) == '<'); j-- {
			if fold(out[j]) == '<' {
				out[j] = '('
			}
		}
		out = append(out, []rune("remora memory")...)
		i = end
		for i < len(rs) && (rs[i] == '-' || rs[i] == '_' || unicode.Is(unicode.Pd, rs[i])) {
			i++
		}
		if i < len(rs) && (unicode.IsLetter(rs[i]) || unicode.IsDigit(rs[i])) {
			out = append(out, ' ')
		}
		for n := 0; i < len(rs) && n < 80 && (unicode.IsDigit(rs[i]) || unicode.IsLetter(rs[i])); n++ {
			if end, _ := matchName(rs, i); end > 0 {
				break // another name within the id
			}
			out = append(out, rs[i])
			i++
		}
		if i < len(rs) && fold(rs[i]) == '>' {
			out = append(out, ')')
			i++
		}
	}
	return string(out)
}

// mayHoldName is a cheap necessary condition for a spelling of the name: s
// isn't ASCII, or has the name's letters one after another with nothing but
// signs between them.
func mayHoldName(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || s[i]|0x20 == letters[0] && spellsName(s[i:]) {
			return true
		}
	}
	return false
}

func spellsName(s string) bool {
	matched := 0
	for i := 0; i < len(s) && matched < len(letters); i++ {
		switch c := s[i] | 0x20; {
		case c == letters[matched]:
			matched++
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			return false
		}
	}
	return matched == len(letters)
}

// matchName returns where the spelling of the name that starts at rs[i] ends, 0
// if there is none, and whether it is harmless: two plain words of prose.
func matchName(rs []rune, i int) (end int, plain bool) {
	if fold(rs[i]) != 'r' {
		return 0, false
	}
	at := i
	for k := 0; k < len(letters); k++ {
		if k > 0 {
			gap := 0
			for at < len(rs) && gap < maxGap && fold(rs[at]) != rune(letters[k]) && !unicode.IsLetter(rs[at]) && !unicode.IsDigit(rs[at]) {
				at++
				gap++
			}
		}
		if at >= len(rs) || fold(rs[at]) != rune(letters[k]) {
			return 0, false
		}
		at++
		// Combining accents belong to the letter before.
		for at < len(rs) && unicode.Is(unicode.Mn, rs[at]) {
			at++
		}
	}
	got := string(rs[i:at])
	return at, strings.EqualFold(got, "remora memory") && isASCII(got)
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// roleTags are element names that mean something to chat templates or agents.
var roleTags = map[string]bool{
	"s": true, "bos": true, "eos": true, "pad": true, "unk": true, "sys": true, "inst": true,
	"start_of_turn": true, "end_of_turn": true, "system": true, "system-reminder": true, "system_reminder": true,
	"user": true, "assistant": true, "human": true, "model": true, "developer": true, "tool": true, "think": true,
	"thinking": true, "instructions": true, "user_instructions": true, "environment_context": true, "tool_result": true,
	"tool_response": true, "tool_call": true, "tool_use": true, "function_calls": true, "function_results": true,
	"invoke": true, "permissions": true,
}

// defuseTokens replaces the brackets of role tokens by parentheses.
func defuseTokens(s string) string {
	if !strings.ContainsAny(s, "<[|") && isASCII(s) {
		return s
	}
	rs := []rune(s)
	for i := range rs {
		next := func(k int) rune {
			if i+k < len(rs) {
				return fold(rs[i+k])
			}
			return 0
		}
		switch fold(rs[i]) {
		case '<':
			if next(1) == '|' || next(1) == '<' && tagAt(rs, i+2, '>') > 0 {
				rs[i] = '('
				continue
			}
			if end := tagAt(rs, i+1, '>'); end > 0 {
				rs[i] = '('
				if end < len(rs) && fold(rs[end]) == '>' {
					rs[end] = ')'
					if end+1 < len(rs) && fold(rs[end+1]) == '>' {
						rs[end+1] = ')'
					}
				}
			}
		case '|':
			if next(1) == '>' {
				rs[i+1] = ')'
			}
		case '[':
			if end := tagAt(rs, i+1, ']'); end > 0 && (next(1) == 'i' || next(1) == '/' || next(1) == 's') {
				rs[i] = '('
				if end < len(rs) && rs[end] == ']' {
					rs[end] = ')'
				}
			}
		}
	}
	return string(rs)
}

// tagAt returns the end of the role tag's name that starts at rs[i], after an
// optional slash, or 0 if there is none. The closing bracket, a blank before
// attributes, or the end of the text follows.
func tagAt(rs []rune, i int, closing rune) int {
	for i < len(rs) && (rs[i] == ' ' || fold(rs[i]) == '/') {
		i++
	}
	var name []rune
	for i < len(rs) && len(name) < 24 {
		r := fold(rs[i])
		if !unicode.IsLetter(r) && r != '_' && r != '-' && r != ':' {
			break
		}
		name = append(name, r)
		i++
	}
	if !roleTags[strings.TrimPrefix(string(name), "antml:")] {
		return 0
	}
	if i == len(rs) || fold(rs[i]) == closing || rs[i] == ' ' {
		return i
	}
	return 0
}

// roleWords begin lines of the plain-text transcripts that models were trained
// to obey.
var roleWords = []string{"human", "assistant", "system", "user", "developer", "tool", "ai", "instruction", "instructions", "response"}

// defuseRoleLine removes the colon, and the signs before the name, from a line
// that begins with a speaker of a transcript ("Human: ...", "### Instruction:
// ...").
func defuseRoleLine(line string) string {
	rest := strings.TrimLeft(line, "#*>-= ")
	for _, w := range roleWords {
		if len(rest) <= len(w) || !strings.EqualFold(rest[:len(w)], w) {
			continue
		}
		after := strings.TrimLeft(rest[len(w):], "* ")
		if strings.HasPrefix(after, ":") {
			return rest[:len(w)] + " -" + after[1:]
		}
		if after == "" && rest != line {
			return rest
		}
	}
	return line
}
