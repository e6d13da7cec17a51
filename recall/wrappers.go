package recall

import (
	_ "embed" // the names of wrappers
	"strings"

	"github.com/remora-proxy/remora/recall/fence"
)

// maxCode is the longest fenced code of a message that still counts as the human's words, in bytes.
const maxCode = 400

//go:embed wrappers.txt
var wrapperNames string

// wrappers are the elements in which agents hand over what no human typed.
var wrappers = strings.Fields(wrapperNames)

// HumanWords is what of a message a human typed: without the wrapper elements of agents and clients, recalled blocks, long
// fenced code, and quoted files. It may be empty: then there is nothing to recall for and nothing to remember.
func HumanWords(s string) string {
	if len(s) > maxText {
		// The human's words stand at the end of a message that is stuffed with context.
		s = strings.ToValidUTF8(s[:maxText/4]+"\n"+s[len(s)-maxText*3/4:], "")
	}
	s = fence.Strip(s)
	return cutCode(CutElements(s, wrappers))
}

// cutElement removes <name ...>...</name>, or to the end where it is not closed. It reads s once.
func cutElement(s, name string) string {
	opening, closing := "<"+name, "</"+name+">"
	var out strings.Builder
	at := 0 // s[:at] is done with
	for from := 0; ; {
		i := strings.Index(s[from:], opening)
		if i < 0 {
			break
		}
		i += from
		from = i + len(opening)
		if from == len(s) || s[from] != '>' && s[from] != ' ' && s[from] != '\n' {
			continue
		}
		j := strings.Index(s[from:], closing)
		if j < 0 { // nor is any that follows closed
			if name == "system-reminder" || name == "environment_context" {
				return out.String() + s[at:i]
			}
			break // not an element: prose about one
		}
		out.WriteString(s[at:i])
		out.WriteByte(' ')
		from += j + len(closing)
		at = from
	}
	if at == 0 {
		return s
	}
	return out.String() + s[at:]
}

// cutCode removes fenced code that is longer than a human would type. It reads s once.
func cutCode(s string) string {
	const fence = "```"
	var out strings.Builder
	at := 0
	for from := 0; ; {
		i := strings.Index(s[from:], fence)
		if i < 0 {
			break
		}
		i += from
		end := len(s)
		if j := strings.Index(s[i+len(fence):], fence); j >= 0 {
			end = i + len(fence) + j + len(fence)
		}
		if from = end; end-i > maxCode {
			out.WriteString(s[at:i])
			out.WriteByte(' ')
			at = end
		}
	}
	if at == 0 {
		return s
	}
	return out.String() + s[at:]
}
