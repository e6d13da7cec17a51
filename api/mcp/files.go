package mcp

import (
	"errors"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// memoryTools returns Anthropic's memory tool, memory_20250818, as one tool. It
// keeps files under /memories. Its texts are those of Anthropic's documentation,
// which models know; where that is silent, those of Anthropic's SDKs.
func memoryTools() []tool {
	path := text(maxGivenPath)
	return []tool{{
		name: "memory", title: "Memory files", hints: replaces, run: onFiles(fileCall.memory),
		description: "Keep files of your own in the directory /memories, which you see again in later " +
			"conversations. View the directory before you begin a task, and record progress, decisions " +
			"and what you have learned. Keep the files up to date, coherent and organized; rename or " +
			"delete those that no longer matter.",
		input: object(
			must("command", oneOf("view", "create", "str_replace", "insert", "delete", "rename").about(
				"view: a directory, or a file with numbered lines. create: a new file. str_replace: "+
					"replace a text that occurs once in a file. insert: put text after a line. delete: "+
					"a file or a directory. rename: either.")),
			may("path", path.about("The file or directory, such as /memories/notes.md. Not for rename.")),
			may("view_range", listOf(typed("integer"), 2).with("minItems", 2).
				about("For view: the first and the last line to show; -1 = the end.")),
			may("file_text", text(api.MaxFile).about("For create: the content of the file.")),
			may("old_str", text(api.MaxFile).about("For str_replace: the text to replace, verbatim.")),
			may("new_str", text(api.MaxFile).about("For str_replace: the text in its place.")),
			may("insert_line", whole(0, api.MaxFile).
				about("For insert: the line after which to insert; 0 = at the beginning.")),
			may("insert_text", text(api.MaxFile).about("For insert: the text to insert.")),
			may("old_path", path.about("For rename: the path as it is.")),
			may("new_path", path.about("For rename: the path from now on.")),
		),
	}}
}

// maxGivenPath bounds a path as it is given, in bytes; empty parts may be cut.
const maxGivenPath = 1024

// memory runs a command of the memory tool.
func (c fileCall) memory() (reply, error) {
	command, err := c.args.required("command")
	if err != nil {
		return reply{}, err
	}
	run, ok := map[string]func(fileCall) (string, error){
		"view": fileCall.view, "create": fileCall.create, "str_replace": fileCall.strReplace,
		"insert": fileCall.insert, "delete": fileCall.deletePath, "rename": fileCall.rename,
	}[command]
	if !ok {
		return reply{}, wrong("command", "must be view, create, str_replace, insert, delete or rename")
	}
	said, err := run(c)
	return reply{text: said}, err
}

// saying returns an error in the words of Anthropic's tool.
func saying(text string) error { return &saidError{text} }

// missing returns the error of a path at which there is nothing.
func missing(path string) error { return saying("Error: The path " + path + " does not exist") }

// missingValid is missing as view and str_replace word it.
func missingValid(prefix, path string) error {
	return saying(prefix + "The path " + path + " does not exist. Please provide a valid path.")
}

// path reads an argument that is a path: as it was given, which answers repeat,
// and as files are named.
func (c fileCall) path(name string) (given, clean string, err error) {
	given, err = c.args.required(name)
	if err != nil {
		return "", "", err
	}
	if len(given) > maxGivenPath {
		return "", "", wrong(name, "is too long")
	}
	if !strings.HasPrefix(given, api.FilesRoot) {
		return "", "", saying("Error: Path must start with /memories, got: " + given)
	}
	clean, err = api.FilePath(name, given)
	if err != nil && leaves(given) {
		return "", "", saying("Error: Path " + given + " would escape /memories directory")
	}
	return given, clean, err
}

// leaves reports whether a path leaves the directory of files, or tries to.
func leaves(path string) bool {
	lower := strings.ToLower(path)
	for _, mark := range [...]string{"..", "\\", "%2e", "%2f", "%5c"} {
		if strings.Contains(lower, mark) {
			return true
		}
	}
	return !strings.HasPrefix(path+"/", api.FilesRoot+"/")
}

// content reads an argument that is a file's content, or part of it: any
// string. ok is false if it is not there.
func (c fileCall) content(name string) (v string, ok bool, err error) {
	raw, _ := c.args.find([]string{name})
	if raw == nil {
		return "", false, nil
	}
	v, ok = scalar(raw)
	if !ok { // a model that means JSON
		return string(raw), true, nil
	}
	return v, true, nil
}

// mustContent is content for an argument that must be there.
func (c fileCall) mustContent(name string) (string, error) {
	v, ok, err := c.content(name)
	if err == nil && !ok {
		err = wrong(name, "is required")
	}
	return v, err
}

// alone has changes of the caller's files wait for one another. A tool reads a
// file before it writes it.
func (c fileCall) alone() (unlock func(), err error) {
	t := c.target
	whose := strings.Join([]string{c.who, t.Tenant, t.App, t.Project, t.User}, "\x00")
	return c.face.locks.lock(c, whose)
}

func (c fileCall) create() (string, error) {
	given, path, err := c.path("path")
	if err != nil {
		return "", err
	}
	content, err := c.mustContent("file_text")
	if err != nil {
		return "", err
	}
	unlock, err := c.alone()
	if err != nil {
		return "", err
	}
	defer unlock()
	exists := saying("Error: File " + given + " already exists")
	if path == api.FilesRoot {
		return "", exists
	}
	if _, err := c.verbs.ReadFile(c, c.target, path); err == nil {
		return "", exists
	} else if !errors.Is(err, api.ErrNotFound) {
		return "", err
	}
	if _, err := c.verbs.WriteFile(c, c.target, path, content, why); err != nil {
		return "", err
	}
	return "File created successfully at: " + given, nil
}

func (c fileCall) deletePath() (string, error) {
	given, path, err := c.path("path")
	if err != nil {
		return "", err
	}
	if path == api.FilesRoot {
		return "", saying("Error: Cannot delete the /memories directory itself")
	}
	unlock, err := c.alone()
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := c.verbs.DeleteFile(c, c.target, path, why); errors.Is(err, api.ErrNotFound) {
		return "", missing(given)
	} else if err != nil {
		return "", err
	}
	return "Successfully deleted " + given, nil
}

func (c fileCall) rename() (string, error) {
	givenOld, from, err := c.path("old_path")
	if err != nil {
		return "", err
	}
	givenNew, to, err := c.path("new_path")
	if err != nil {
		return "", err
	}
	exists := saying("Error: The destination " + givenNew + " already exists")
	switch api.FilesRoot {
	case to:
		return "", exists
	case from:
		return "", saying("Error: Cannot rename the /memories directory itself")
	}
	unlock, err := c.alone()
	if err != nil {
		return "", err
	}
	defer unlock()
	switch err := c.verbs.RenameFile(c, c.target, from, to, why); {
	case errors.Is(err, api.ErrExists):
		return "", exists
	case errors.Is(err, api.ErrNotFound):
		return "", missing(givenOld)
	case err != nil:
		return "", err
	}
	return "Successfully renamed " + givenOld + " to " + givenNew, nil
}
