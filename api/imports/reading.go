package imports

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// reading is one call of Read.
type reading struct {
	fsys   fs.FS
	bounds bounds
	found  func(Item) error
	names  []string // of all files, sorted by path
	zipped bool
	left   int64 // bytes that may still be read, if zipped
	report Report
}

// read is Read with other bounds.
func read(fsys fs.FS, name string, found func(Item) error, b bounds) (Report, error) {
	r := &reading{fsys: fsys, bounds: b, found: found, left: b.maxTotal}
	r.report.Rejected = map[string]int{}
	err := r.run(name)
	if f, ok := errors.AsType[*foundError](err); ok {
		err = f.err
	}
	return r.report, err
}

func (r *reading) run(name string) error {
	if name != "" && formatNamed(name) == nil {
		return fmt.Errorf("%w: %s is not one of %s", ErrFormat, quoted(name), known())
	}
	if err := r.list(); err != nil {
		return err
	}
	if name == "" {
		var err error
		if name, err = r.detect(); err != nil {
			return err
		}
	}
	r.report.Format = name
	f := formatNamed(name)
	names := r.pick(f)
	if len(names) == 0 {
		return fmt.Errorf("%w: there is no file of the format %s (%s)", ErrNothing, name, f.looks)
	}
	if err := f.read(r, names); err != nil {
		return err
	}
	if r.report.Conversations == 0 && r.report.Memories == 0 {
		return fmt.Errorf("%w: %s", ErrNothing, r.report.why())
	}
	return nil
}

// conversation hands over a conversation, unless nothing is left of it.
func (r *reading) conversation(t *thread) error {
	if len(t.Messages) == 0 {
		r.reject(reasonEmpty)
		return nil
	}
	if err := r.found(Item{Conversation: &t.Conversation}); err != nil {
		return &foundError{err}
	}
	r.report.Conversations++
	r.report.Messages += len(t.Messages)
	return nil
}

// memory hands over a memory, unless it is blank.
func (r *reading) memory(m Memory) error {
	if strings.TrimSpace(m.Text) == "" {
		r.reject(reasonEmpty)
		return nil
	}
	if err := r.found(Item{Memory: &m}); err != nil {
		return &foundError{err}
	}
	r.report.Memories++
	return nil
}

// reject counts something that is left out.
func (r *reading) reject(reason string) { r.report.Rejected[reason]++ }

// why explains a report without items.
func (r Report) why() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: read files: %d, found no conversations and no memories", r.Format, r.Files)
	var reasons []string
	for reason, n := range r.Rejected {
		reasons = append(reasons, reason+" "+strconv.Itoa(n))
	}
	if slices.Sort(reasons); len(reasons) > 0 {
		s.WriteString("; left out: " + strings.Join(reasons, ", "))
	}
	return s.String()
}

// foundError is an error of the caller's function.
type foundError struct{ err error }

func (e *foundError) Error() string { return e.err.Error() }
func (e *foundError) Unwrap() error { return e.err }
