package agents

import (
	"strconv"
	"strings"
)

// codexURL returns where a configuration of Codex has the requests of its
// provider go, "" = to the provider itself, or what is unknown here.
func codexURL(text string) string {
	values := tomlStrings(text)
	if provider := values["model_provider"]; provider != "" && provider != "openai" {
		return values["model_providers."+provider+".base_url"]
	}
	return values["openai_base_url"]
}

// tomlStrings returns the strings of a TOML file by their dotted keys, with
// those of the tables that they are in. It reads as much of TOML as it takes to
// tell them from comments and from the parts of other values: strings of several
// lines, and what is in arrays and inline tables, are left out.
func tomlStrings(text string) map[string]string {
	values, table := map[string]string{}, ""
	for text != "" {
		text = strings.TrimLeft(text, " \t\r\n")
		end := valueEnd(text)
		switch line := text[:end]; {
		case strings.HasPrefix(line, "["):
			name, _, _ := strings.Cut(strings.TrimLeft(line, "["), "]")
			table = tomlKey(name) + "."
		default:
			key, value, _ := strings.Cut(line, "=")
			if value, ok := tomlString(strings.TrimSpace(value)); ok {
				values[table+tomlKey(key)] = value
			}
		}
		text = text[end:]
	}
	return values
}

// tomlKey returns a key without spaces and quotes around its parts.
func tomlKey(key string) string {
	parts := strings.Split(key, ".")
	for i, part := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(part), `"'`)
	}
	return strings.Join(parts, ".")
}

// tomlString returns the string that a value begins with, if it is one of a
// single line.
func tomlString(value string) (string, bool) {
	if value == "" || value[0] != '"' && value[0] != '\'' || strings.HasPrefix(value, `"""`) || strings.HasPrefix(value, "'''") {
		return "", false
	}
	quoted := value[:stringEnd(value)]
	if quoted[0] == '"' {
		plain, err := strconv.Unquote(quoted)
		return plain, err == nil
	}
	return strings.Trim(quoted, "'"), true
}

// valueEnd returns where the line ends that text begins with, or the last line
// of its value.
func valueEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\n':
			if depth <= 0 {
				return i
			}
		case '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case '"', '\'':
			i += stringEnd(text[i:]) - 1
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
	}
	return len(text)
}

// stringEnd returns where the string ends that text begins with.
func stringEnd(text string) int {
	quote, several := text[:1], strings.HasPrefix(text, `"""`) || strings.HasPrefix(text, "'''")
	if several {
		quote = text[:3]
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		case text[i] == '\n' && !several:
			return i
		case text[i] == '\\' && quote[0] == '"':
			i++
		}
	}
	return len(text)
}
