package fence

import (
	"slices"
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
		if end == 0 || plain && !opened(out) {
			out = append(out, rs[i])
			i++
			continue
		}
		tag := opened(out)
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
		if id := i + 1; tag && i < len(rs) && rs[i] == ' ' { // "</remora memory 4f1c>"
			for id < len(rs) && (unicode.IsDigit(rs[id]) || unicode.IsLetter(rs[id])) {
				id++
			}
			if id < len(rs) && fold(rs[id]) == '>' {
				out, i = append(out, rs[i:id]...), id
			}
		}
		if i < len(rs) && fold(rs[i]) == '>' {
			out = append(out, ')')
			i++
		}
	}
	return string(out)
}

// opened reports whether what comes next is the name of a tag: "<", "</", "< /"
// come before it.
func opened(out []rune) bool {
	j := len(out) - 1
	for j >= 0 && (out[j] == ' ' || out[j] == '\\' || fold(out[j]) == '/') {
		j--
	}
	return j >= 0 && fold(out[j]) == '<'
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

// roleTags are element names that mean something to chat templates or agents,
// and do not look like it. See special for those that do.
var roleTags = map[string]bool{
	"s": true, "bos": true, "eos": true, "pad": true, "unk": true, "sys": true, "inst": true, "sep": true, "cls": true, "mask": true, "eod": true, "eot": true,
	"system": true, "user": true, "assistant": true, "human": true, "bot": true, "ai": true, "gpt": true, "model": true, "developer": true, "tool": true, "tools": true,
	"think": true, "thinking": true, "thought": true, "reasoning": true, "prompt": true, "message": true, "instruction": true, "instructions": true, "instruct": true,
	"invoke": true, "function": true, "functions": true, "observation": true, "permissions": true, "endoftext": true, "startoftext": true, "context": true,
}

// placeholders are what the built-in rules of redaction write in brackets. They
// stay, and so do those of Options.Placeholder.
var placeholders = map[string]bool{
	"API_KEY": true, "CARD": true, "CODE": true, "CREDENTIALS": true, "EMAIL": true, "IBAN": true, "IP": true, "JWT": true, "NATIONAL_ID": true, "PASSWORD": true,
	"PHONE": true, "PRIVATE_KEY": true, "SECRET": true, "SSN": true, "TOKEN": true, "USER": true, "WEBHOOK": true,
}

// defuseTokens replaces the brackets of special tokens by parentheses. They are
// known by their shape: a bracket next to a bar (<|im_start|>, [|system|]),
// doubled brackets around a role (<<SYS>>), or a name in brackets that is a
// role or looks like no word (see special).
func defuseTokens(s string, placeholder func(string) bool) string {
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
			if next(1) == '|' || next(1) == '<' && tagAt(rs, i+2, '>', nil) > 0 {
				rs[i] = '('
				continue
			}
			if end := tagAt(rs, i+1, '>', nil); end > 0 {
				rs[i] = '('
				if end < len(rs) && fold(rs[end]) == '>' {
					rs[end] = ')'
					if end+1 < len(rs) && fold(rs[end+1]) == '>' {
						rs[end+1] = ')'
					}
				}
			}
		case '|':
			if next(1) == '>' || next(1) == ']' {
				rs[i+1] = ')'
			}
		case '[':
			if next(1) == '|' {
				rs[i] = '('
			} else if end := tagAt(rs, i+1, ']', placeholder); end > 0 {
				rs[i] = '('
				if end < len(rs) && fold(rs[end]) == ']' {
					rs[end] = ')'
				}
			}
		}
	}
	return string(rs)
}

// special reports whether a name in brackets looks like a token of a chat
// template and not like a word or an element of HTML: words joined by
// underscores or hyphens (start_of_turn, end▁of▁sentence), capitals (TOOL_CALLS,
// gMASK), a word with a number (unused12), or a byte (0x0A).
func special(raw []rune, closing rune) bool {
	joined, digits, letters, capitals, run := false, 0, 0, 0, 0
	for _, r := range raw {
		switch {
		case isJoint(r):
			joined, run = true, 0
		case unicode.IsDigit(r):
			digits++
			run = 0
		default:
			letters++
			if run++; !unicode.IsUpper(r) {
				run = 0
			}
			capitals = max(capitals, run)
		}
	}
	if closing == ']' {
		return capitals > 1 || joined && letters > 3 && digits == 0 || strings.HasPrefix(string(raw), "unused")
	}
	return letters > 1 && (joined || capitals == letters || capitals > 1 && letters-capitals < capitals) || letters > 2 && digits > 0 ||
		len(raw) == 4 && raw[0] == '0' && fold(raw[1]) == 'x'
}

func isJoint(r rune) bool { return r == '_' || r == '-' || r == ':' || r == '.' || r == '\u2581' }

// maxToken is the longest name of a special token, in characters.
const maxToken = 48

// tagAt returns the end of the name of a special token that starts at rs[i],
// after an optional slash, or 0 if there is none. The closing bracket, a blank
// before attributes, or the end of the text follows a role; the closing bracket
// follows any other.
func tagAt(rs []rune, i int, closing rune, placeholder func(string) bool) int {
	slash := false
	for i < len(rs) && (rs[i] == ' ' || fold(rs[i]) == '/') {
		slash = slash || rs[i] != ' '
		i++
	}
	from := i
	var name []rune
	for i < len(rs) && i-from < maxToken && (unicode.IsLetter(rs[i]) || unicode.IsDigit(rs[i]) || isJoint(rs[i]) || unicode.Is(unicode.Mn, rs[i])) {
		name = append(name, fold(rs[i]))
		i++
	}
	ends := i == len(rs) || fold(rs[i]) == closing
	if raw := string(rs[from:i]); closing == ']' && !slash && (placeholders[raw] || placeholder != nil && placeholder("["+raw+"]")) {
		return 0
	}
	role := roleTags[strings.TrimPrefix(string(name), "antml:")]
	if i > from && (role && (ends || rs[i] == ' ') || ends && special(rs[from:i], closing) || roleInWords(name, closing) && (ends || rs[i] == ' ')) {
		return i
	}
	return 0
}

// roleInWords reports whether one of the words of a name is a role:
// system-reminder, user_instructions, tool_result, antml:function_calls.
func roleInWords(name []rune, closing rune) bool {
	if closing == ']' {
		return false
	}
	words := strings.FieldsFunc(string(name), isJoint)
	return len(words) > 1 && slices.ContainsFunc(words, func(w string) bool { return roleTags[w] && len(w) > 1 })
}

// roleWords begin lines of the plain-text transcripts that models were trained
// to obey.
var roleWords = []string{"human", "assistant", "system", "user", "developer", "tool", "ai", "bot", "model", "instruction", "instructions", "response", "observation"}

// defuseRoleLine removes the colon, and the signs before the name, from a line
// that begins with a speaker of a transcript ("Human: ...", "### Instruction:
// ...").
func defuseRoleLine(line string) string {
	rest := strings.TrimLeft(line, "#*>-=@~_ ")
	for _, w := range roleWords {
		if len(rest) <= len(w) || !strings.EqualFold(rest[:len(w)], w) {
			continue
		}
		after := strings.TrimLeft(rest[len(w):], "* ")
		for _, colon := range [...]string{":", "：", "﹕", "︓"} {
			if text, ok := strings.CutPrefix(after, colon); ok {
				return rest[:len(w)] + " -" + text
			}
		}
		if after == "" && rest != line {
			return rest
		}
	}
	return line
}
