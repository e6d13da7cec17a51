// Package imports reads the exports of other tools: conversations that people
// had elsewhere, and memories that another tool kept of them. It parses and
// nothing more. What becomes of an item is the caller's decision.
//
// An export is a folder, a zip or one file, always seen as an fs.FS. JSON is
// read token by token, so that memory is bounded by the largest conversation
// and not by the export. Every bound is in bounds.go. What is beyond one is an
// error, never cut off in silence.
//
// Only what a person and an assistant said to each other is brought over. What
// was left out is counted by its reason, see Report. An export without a single
// item is an error, too: a silent zero looks like success.
//
// Errors name the file and the place in it. They never quote content.
//
// The package has no state: it may be used by several goroutines.
package imports

import (
	"encoding/json"
	"errors"
	"io/fs"
	"time"
)

// ErrNothing is the error of an export that has nothing to import. The message
// around it has the reason.
var ErrNothing = errors.New("nothing to import")

// ErrFormat is the error of an export in no known format. The message around it
// names those that are known.
var ErrFormat = errors.New("unknown format of export")

// Item is one thing that an import would bring: a conversation or a memory. The
// other one is nil.
type Item struct {
	Conversation *Conversation
	Memory       *Memory
}

// Conversation is one conversation. It has at least one message.
type Conversation struct {
	ID       string // the export's, or the name of the file; may be empty
	Title    string
	Project  string // the folder that an agent worked in, or a project's name
	Messages []Message
}

// Message is what one side said, without tools and thinking.
type Message struct {
	ID    string // empty where the export has none
	Role  string // "user" or "assistant"
	Text  string // never blank
	Time  time.Time
	Model string
}

// Memory is something that another tool remembered.
type Memory struct {
	ID   string // empty where the export has none
	Text string // never blank
	Kind string // "fact", "curated", "resource" or "episode", or empty if unknown
	Tags []string

	// CreatedAt and UpdatedAt are zero if unknown.
	CreatedAt, UpdatedAt time.Time

	User, Conversation, App, Project string

	Metadata map[string]any
	Raw      json.RawMessage // the whole line, in the format "remora" only
}

// Report counts what an import found.
type Report struct {
	Format        string
	Files         int // that were read
	Conversations int
	Messages      int
	Memories      int
	Rejected      map[string]int // how much was left out, by reason, see reasons.go
}

// Formats lists the formats that Read knows, in a fixed order.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Read reads an export from fsys and calls found for each item in order. An
// empty format is detected. Items are handed over as they are read, so some may
// have been found before an error. An error of found ends the import and is
// returned unchanged. The report covers what was found up to then.
func Read(fsys fs.FS, format string, found func(Item) error) (Report, error) {
	return read(fsys, format, found, standard)
}
