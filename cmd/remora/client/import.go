package client

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// Import reads an export of another tool: a file, a zip or a folder.
type Import struct {
	Path   string
	Format string // "" = detected
	DryRun bool   // counts, and stores nothing
}

// Run implements [Verb].
func (v *Import) Run(ctx context.Context, s *Session) error {
	file, name, err := v.open(s)
	if err != nil {
		return err
	}
	defer file.remove()
	q := url.Values{"name": {name}, "dryRun": {fmt.Sprint(v.DryRun)}}
	if v.Format != "" {
		q.Set("format", v.Format)
	}
	importing := func() *progress { return s.progress("importing", -1, false) }
	if _, piped := s.transport.(Pipe); piped { // which sends no file
		file.bar = importing()
	} else {
		file.bar, file.then = s.progress("sending", file.size, true), importing
	}
	var raw json.RawMessage
	err = s.call(ctx, ask{method: http.MethodPost, path: "/v1/import", query: q, upload: file.upload}, &raw)
	file.answered()
	if field, ok := errors.AsType[*api.FieldError](err); ok && field.Field == "body" {
		return fmt.Errorf("nothing was imported: %s %s", filepath.Base(v.Path), field.Why)
	}
	if err != nil {
		return err
	}
	var r api.ImportReport
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	if s.JSON {
		err = s.raw(raw)
	} else {
		showImport(s.Out, &r)
	}
	switch {
	case err != nil:
		return err
	case r.Turns == 0 && r.Memories == sum(r.Refused):
		return errors.New("nothing was imported: all that was found was left out, see above")
	case r.DryRun:
		fmt.Fprintln(s.Err, "a dry run: nothing was stored")
	}
	return nil
}

func sum(counts map[string]int) (n int) {
	for _, v := range counts {
		n += v
	}
	return n
}

func showImport(w io.Writer, r *api.ImportReport) {
	field(w, "format", r.Format)
	field(w, "files", fmt.Sprint(r.Files))
	field(w, "conversations", fmt.Sprint(r.Conversations))
	field(w, "messages", fmt.Sprint(r.Messages))
	field(w, "turns", fmt.Sprint(r.Turns))
	memories := fmt.Sprint(r.Memories)
	if r.Memories > 0 && !r.DryRun {
		memories += fmt.Sprintf(": %d are new, %d were known", r.Saved, r.Known)
	}
	field(w, "memories", memories)
	field(w, "from", minute(r.From))
	field(w, "to", minute(r.To))
	for _, of := range []struct {
		what   string
		counts map[string]int
	}{{"left out", r.Rejected}, {"refused", r.Refused}} {
		for _, reason := range slices.Sorted(maps.Keys(of.counts)) {
			field(w, of.what, fmt.Sprintf("%d: %s", of.counts[reason], reason))
		}
	}
}

// packed is a file to send, which may be a folder's zip.
type packed struct {
	*upload
	made string // a file to remove
}

func (p *packed) remove() {
	_ = p.Close()
	if p.made != "" {
		_ = os.Remove(p.made)
	}
}

// open opens what is to be imported, and returns its name.
func (v *Import) open(s *Session) (*packed, string, error) {
	full, err := filepath.Abs(v.Path) // the other end may have another directory
	if err != nil {
		return nil, "", err
	}
	info, err := os.Stat(full)
	switch {
	case err != nil:
		return nil, "", err
	case info.IsDir():
		return v.pack(s, full)
	case !info.Mode().IsRegular():
		return nil, "", fmt.Errorf("%s is neither a folder nor a file", v.Path)
	case info.Size() > api.MaxImport:
		return nil, "", fmt.Errorf("%s is larger than %d MiB, which is the most that is imported", v.Path, api.MaxImport>>20)
	}
	u, err := openUpload(full)
	if err != nil {
		return nil, "", err
	}
	return &packed{upload: u}, filepath.Base(full), nil
}

// pack makes a zip of what can be read in a folder.
func (v *Import) pack(s *Session, dir string) (_ *packed, name string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = root.Close() }()
	f, err := os.CreateTemp("", "remora-import-*.zip") // with mode 0600
	if err != nil {
		return nil, "", err
	}
	bar := s.progress("packing", -1, true)
	n, err := zipFolder(f, root.FS(), bar)
	bar.done()
	err = errors.Join(err, f.Close())
	if err == nil && n == 0 {
		err = fmt.Errorf("nothing was imported: no file in %s is JSON", v.Path)
	}
	var u *upload
	if err == nil {
		u, err = openUpload(f.Name())
	}
	if err != nil {
		return nil, "", errors.Join(err, os.Remove(f.Name()))
	}
	return &packed{u, f.Name()}, filepath.Base(dir) + ".zip", nil
}

// zipFolder writes the files of a folder that an export may consist of, and
// returns how many. Links are not followed.
func zipFolder(w io.Writer, dir fs.FS, bar *progress) (n int, err error) {
	z := zip.NewWriter(w)
	err = fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !readable(name) {
			return err
		}
		in, err := dir.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		out, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return err
		}
		n++
		copied, err := io.Copy(out, in)
		bar.add(int(copied))
		return err
	})
	return n, errors.Join(err, z.Close())
}

// readable reports whether a file is of a type that exports have.
func readable(name string) bool {
	switch strings.ToLower(path.Ext(strings.TrimSuffix(name, ".gz"))) {
	case ".json", ".jsonl", ".ndjson":
		return !strings.HasPrefix(path.Base(name), "._")
	}
	return false
}
