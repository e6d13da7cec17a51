package agents

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Shells are the shells that variables can be written for.
func Shells() []string { return []string{"sh", "fish", "powershell"} }

// ShellOf returns the shell of a person, given SHELL and the operating system.
// Those that know export count as sh.
func ShellOf(shell, system string) string {
	switch name := strings.TrimSuffix(filepath.Base(shell), ".exe"); {
	case name == "fish":
		return "fish"
	case name == "pwsh" || name == "powershell", shell == "" && system == "windows":
		return "powershell"
	}
	return "sh"
}

// Line returns the line that sets a variable in a shell.
func (v Variable) Line(shell string) string {
	switch shell {
	case "fish":
		return fmt.Sprintf("set -gx %s %s", v.Name, Word(v.Value, shell))
	case "powershell":
		return fmt.Sprintf("$env:%s = '%s'", v.Name, strings.ReplaceAll(v.Value, "'", "''"))
	}
	return fmt.Sprintf("export %s=%s", v.Name, Word(v.Value, shell))
}

// Word returns a word of a command line, in quotes if the shell needs them.
func Word(word, shell string) string {
	switch shell {
	case "fish":
		return quoted(strings.ReplaceAll(word, `\`, `\\`), `\'`)
	case "powershell":
		return quoted(word, "''")
	}
	return quoted(word, `'\''`)
}

// Command returns the line that runs a program once, pointed at Remora, in sh.
func (a Agent) Command() string {
	var words []string
	for _, argument := range a.Arguments {
		words = append(words, Word(argument, "sh"))
	}
	return strings.Join(append([]string{a.Programs[0]}, words...), " ")
}

// quoted returns a word of a shell. escaped stands for a single quote in single
// quotes.
func quoted(word, escaped string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", escaped) + "'"
}
