package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// Files that an agent curates: notes that it writes, reads again and keeps in
// order itself, under names of its own. A file is a memory of kind curated. It
// is never recalled and never leaves with a request.

// Limits of files.
const (
	FilesRoot   = "/memories" // what all paths begin with
	MaxFile     = 64 << 10    // bytes of a file
	MaxFiles    = 1000        // of a user
	MaxFilePath = MaxTag - len(fileTag)
)

// fileTag is the prefix of the tag that names a file.
const fileTag = "file:"

// ErrExists: there is a file or a directory of that name.
var ErrExists error = &FieldError{"path", "exists already"}

// File is a file that an agent curates.
type File struct {
	ID        string `json:"id"`
	Path      string `json:"path"`
	Content   string `json:"content,omitempty"` // a list leaves it out
	Size      int    `json:"size"`              // bytes
	CreatedAt string `json:"createdAt"`
	UpdatedAt string `json:"updatedAt"`
	Version   uint64 `json:"version"`
}

// FilePath returns a path as files are named: without empty parts, dots and a
// slash at its end. Paths that leave FilesRoot, or try to, are a FieldError.
func FilePath(field, path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, FilesRoot); !ok || rest != "" && rest[0] != '/' {
		return "", invalid(field, "must begin with %s", FilesRoot)
	}
	lower := strings.ToLower(path)
	for _, encoded := range [...]string{"%2e", "%2f", "%5c", "\\"} {
		if strings.Contains(lower, encoded) {
			return "", invalid(field, "must not hold backslashes or encoded dots and slashes")
		}
	}
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return "", invalid(field, "must not hold .. as a part")
		}
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	clean := "/" + strings.Join(parts, "/")
	if len(clean) > MaxFilePath || !printable(clean) {
		return "", invalid(field, "must have at most %d bytes of printable UTF-8", MaxFilePath)
	}
	return clean, nil
}

// filePath is FilePath for a file: the root is none.
func filePath(field, path string) (string, error) {
	path, err := FilePath(field, path)
	if err == nil && path == FilesRoot {
		return "", invalid(field, "is the directory of all files")
	}
	return path, err
}

// fileID returns the id of a file: that of its path, unless a deleted one, which
// can be brought back, has it.
func fileID(path string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", path, n))
	return "f" + hex.EncodeToString(sum[:16])
}

// The pipeline trims texts and refuses empty ones, cuts long ones and says so
// only in the text. A file is kept between two joiners where that matters.
const joiner = "\u2060"

const mayBeCut = 4 << 10

func wrapFile(content string) string {
	if content != "" && len(content) <= mayBeCut && content == strings.TrimFunc(content, isEdge) {
		return content
	}
	return joiner + content + joiner
}

func isEdge(r rune) bool { return unicode.IsSpace(r) || string(r) == joiner }

// unwrapFile returns the content of a stored file, and whether it is all there.
func unwrapFile(text string) (content string, whole bool) {
	inner, wrapped := strings.CutPrefix(text, joiner)
	if !wrapped {
		return text, true
	}
	return strings.CutSuffix(inner, joiner)
}

func checkFile(content string) error {
	if len(content) > MaxFile || !utf8.ValidString(content) || strings.ContainsRune(content, 0) {
		return invalid("content", "must have at most %d bytes of UTF-8", MaxFile)
	}
	return nil
}

func pathOf(m *storage.Memory) string {
	if m.Kind != storage.KindCurated || m.DeletedAt != 0 {
		return ""
	}
	return taggedWith(m.Tags, fileTag)
}

// showFile returns a file without its content.
func showFile(m *storage.Memory) File {
	content, _ := unwrapFile(m.Text)
	return File{m.ID, pathOf(m), "", len(content), stamp(m.CreatedAt), stamp(m.UpdatedAt), m.Version}
}

// openFile returns a file with its content, redacted once more.
func (s *files) openFile(m *storage.Memory) File {
	out := showFile(m)
	out.Content, _ = unwrapFile(s.Redact(m.Text))
	out.Size = len(out.Content)
	return out
}

// files reads the names of a user's files, in order. Of two files with one path,
// as after undoing a deletion, the one that was changed last comes last.
func (s *files) files(ctx context.Context, scope storage.Scope) (out []File, err error) {
	q := storage.Query{Kinds: []storage.Kind{storage.KindCurated}}
	for page, err := range storage.ScanPages(ctx, s.Store, scope, q) {
		if err != nil {
			return nil, err
		}
		for i := range page.Memories {
			if m := &page.Memories[i]; pathOf(m) != "" {
				out = append(out, showFile(m))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b File) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.UpdatedAt, b.UpdatedAt))
	})
	return out, nil
}

// findFile returns the file of a path. others are all files, if it had to read
// them.
func (s *files) findFile(
	ctx context.Context, scope storage.Scope, path string,
) (m storage.Memory, others []File, err error) {
	m, err = s.Store.Memory(ctx, scope, fileID(path, 0))
	if err == nil && pathOf(&m) == path {
		return m, nil, nil
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
		return m, nil, err
	}
	if others, err = s.files(ctx, scope); err != nil {
		return m, nil, err
	}
	for _, f := range slices.Backward(others) {
		if f.Path == path {
			m, err = s.Store.Memory(ctx, scope, f.ID)
			return m, others, err
		}
	}
	return m, others, ErrNotFound
}

// Files lists a user's files by their paths, without their content.
func (s *files) Files(ctx context.Context, p Principal, t Target) ([]File, error) {
	scope, err := s.scope(p, t)
	if err != nil {
		return nil, err
	}
	all, err := s.files(ctx, scope)
	if err != nil {
		return nil, err
	}
	out := []File{}
	for i := range all {
		if i+1 == len(all) || all[i+1].Path != all[i].Path {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// ReadFile returns a file.
func (s *files) ReadFile(ctx context.Context, p Principal, t Target, path string) (File, error) {
	path, err := filePath("path", path)
	if err != nil {
		return File{}, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return File{}, err
	}
	m, _, err := s.findFile(ctx, scope, path)
	if err != nil {
		return File{}, err
	}
	return s.openFile(&m), nil
}

// WriteFile makes a file, or replaces its content. The content is redacted.
func (s *files) WriteFile(
	ctx context.Context, p Principal, t Target, path, content, why string,
) (File, error) {
	path, err := filePath("path", path)
	if err == nil {
		err = checkFile(content)
	}
	if err == nil {
		err = checkLength("why", why, MaxReason)
	}
	if err != nil {
		return File{}, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return File{}, err
	}
	m, others, err := s.findFile(ctx, scope, path)
	made, cause := errors.Is(err, ErrNotFound), persist.Cause{By: p.By, Why: why}
	if made {
		m, err = s.makeFile(ctx, scope, others, path, content)
	} else if err == nil {
		m, err = s.Pipeline.Edit(ctx, scope, m.ID, 0, cause, func(m *storage.Memory) error {
			m.Text = wrapFile(content)
			return nil
		})
	}
	if err != nil {
		return File{}, err
	}
	if _, whole := unwrapFile(m.Text); whole {
		return s.openFile(&m), nil
	}
	if made { // more than the pipeline keeps of a text
		_, err = s.Pipeline.ForgetMemories(ctx, scope, m.ID)
	} else {
		_, err = s.Pipeline.Undo(ctx, scope, m.ID, cause)
	}
	return File{}, cmp.Or(err, ErrTooLarge)
}
