package recall

import (
	"strings"

	"github.com/remora-proxy/remora/recall/fence"
)

// maxCode is the longest fenced code of a message that still counts as the human's words, in bytes.
const maxCode = 400

// wrappers are the elements in which agents hand over what no human typed.
var wrappers = []string{
	"system-reminder", "environment_context", "environment_details", "user_instructions", "user-instructions", "context",
	"file", "files", "file_content", "file_contents", "document", "documents", "attachment", "attachments", "tool_result",
	"tool_response", "function_results", "local-command-stdout", "local-command-stderr", "command-name", "command-message",
	"bash-stdout", "bash-stderr", "bash-input", "permissions", "instructions", "turn_aborted", "collaboration_mode",
	"additional_context", "session_context", "ide_context", "ide_selection", "ide_opened_file", "project_context", "workspace_info",
}

// humanWords cuts away what agents and clients put around a human's message: wrapper elements, recalled blocks, long
// fenced code, and quoted files. What is left may be empty: then there is nothing to recall for.
func humanWords(s string) string {
	if len(s) > maxText {
		// The human's words stand at the end of a message that is stuffed with context.
		s = strings.ToValidUTF8(s[:maxText/4]+"\n"+s[len(s)-maxText*3/4:], "")
	}
	s = fence.Strip(s)
	if strings.Contains(s, "<") {
		for _, w := range wrappers {
			s = cutElement(s, w)
		}
	}
	return cutCode(s)
}

// cutElement removes <name ...>...</name>, or to the end where it is not closed.
func cutElement(s, name string) string {
	for from := 0; ; {
		i := strings.Index(s[from:], "<"+name)
		if i < 0 {
			return s
		}
		i += from
		rest := s[i+1+len(name):]
		if rest == "" || rest[0] != '>' && rest[0] != ' ' && rest[0] != '\n' {
			from = i + 1
			continue
		}
		closing := "</" + name + ">"
		if j := strings.Index(rest, closing); j >= 0 {
			s = s[:i] + " " + rest[j+len(closing):]
		} else if name == "system-reminder" || name == "environment_context" {
			return s[:i]
		} else {
			from = i + 1 // not an element: prose about one
		}
	}
}

// cutCode removes fenced code that is longer than a human would type.
func cutCode(s string) string {
	for from := 0; ; {
		i := strings.Index(s[from:], "```")
		if i < 0 {
			return s
		}
		i += from
		j := strings.Index(s[i+3:], "```")
		end := len(s)
		if j >= 0 {
			end = i + 3 + j + 3
		}
		if end-i <= maxCode {
			from = end
			continue
		}
		s = s[:i] + " " + s[end:]
		from = i
	}
}
