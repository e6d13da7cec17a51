package api

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// filePriority is the priority of a file, which orders lists only.
const filePriority = 0.5

// maxFileIDs bounds how often a path may be deleted and made again in a day.
const maxFileIDs = 1000

// makeFile makes a file. others are those that are there.
func (s *files) makeFile(
	ctx context.Context, scope storage.Scope, others []File, path, content string,
) (m storage.Memory, err error) {
	if len(others) >= MaxFiles {
		return m, invalid("path", "there are %d files, as many as a user may have", MaxFiles)
	}
	if slices.ContainsFunc(others, func(f File) bool { return within(path, f.Path) }) {
		return m, invalid("path", "is a directory")
	}
	if slices.ContainsFunc(others, func(f File) bool { return within(f.Path, path) }) {
		return m, invalid("path", "has a file where a directory would be")
	}
	id, err := s.freeFileID(ctx, scope, path)
	if err != nil {
		return m, err
	}
	saved, err := s.Pipeline.Remember(ctx, scope, storage.Memory{
		ID: id, Kind: storage.KindCurated, Text: wrapFile(content), Tags: []string{fileTag + path},
		Source: "api", Priority: filePriority, Confidence: 1,
	})
	if err != nil {
		return m, err
	}
	s.places.note(scope, id)
	return saved[0].Memory, nil
}

// within reports whether a path lies in a directory.
func within(dir, path string) bool { return strings.HasPrefix(path, dir+"/") }

// freeFileID returns an id for the file of a path. What was deleted keeps its
// id as long as it can be brought back.
func (s *files) freeFileID(
	ctx context.Context, scope storage.Scope, path string,
) (string, error) {
	for n := range maxFileIDs {
		id := fileID(path, n)
		_, err := s.Store.Memory(ctx, scope, id)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return id, nil
		case err != nil && !errors.Is(err, storage.ErrDamaged):
			return "", err
		}
	}
	return "", ErrBusy
}

// DeleteFile discards a file, or all files of a directory. It can be undone for
// a day.
func (s *files) DeleteFile(
	ctx context.Context, p Principal, t Target, path, why string,
) (Removed, error) {
	path, err := filePath("path", path)
	if err == nil {
		err = checkLength("why", why, MaxReason)
	}
	if err != nil {
		return Removed{}, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return Removed{}, err
	}
	all, err := s.files(ctx, scope)
	if err != nil {
		return Removed{}, err
	}
	var ids []string
	for i := range all {
		if all[i].Path == path || within(path, all[i].Path) {
			ids = append(ids, all[i].ID)
		}
	}
	if len(ids) == 0 {
		return Removed{}, ErrNotFound
	}
	gone, err := s.Pipeline.Discard(ctx, scope, persist.Cause{By: p.By, Why: why}, ids...)
	if err != nil {
		return Removed{}, err
	}
	until := storage.TimeOf(s.Now().Add(persist.UndoTime))
	out := Removed{Deleted: []string{}, UndoUntil: stamp(until)}
	for i := range gone {
		out.Deleted = append(out.Deleted, gone[i].ID)
	}
	return out, nil
}

// RenameFile gives a file, or all files of a directory, another path. If there
// is something at that path, it is ErrExists. A directory whose renaming breaks
// off is renamed in part; repeating it fails with ErrExists.
func (s *files) RenameFile(
	ctx context.Context, p Principal, t Target, from, to, why string,
) error {
	from, err := filePath("from", from)
	if err == nil {
		to, err = filePath("to", to)
	}
	if err == nil {
		err = checkLength("why", why, MaxReason)
	}
	if err != nil {
		return err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return err
	}
	all, err := s.files(ctx, scope)
	if err != nil {
		return err
	}
	moved, err := renamed(all, from, to)
	if err != nil {
		return err
	}
	cause := persist.Cause{By: p.By, Why: why}
	named := func(tag string) bool { return strings.HasPrefix(tag, fileTag) }
	for i := range moved {
		_, err := s.Pipeline.Edit(ctx, scope, moved[i].ID, 0, cause, func(m *storage.Memory) error {
			m.Tags = append(slices.DeleteFunc(m.Tags, named), fileTag+moved[i].Path)
			return nil
		})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// renamed returns the files that are given another path, with that path.
func renamed(all []File, from, to string) (moved []File, err error) {
	if within(from, to) {
		return nil, invalid("to", "lies in what would be moved there")
	}
	for _, f := range all {
		switch {
		case f.Path == to || within(to, f.Path):
			return nil, ErrExists
		case within(f.Path, to):
			return nil, invalid("to", "has a file where a directory would be")
		case f.Path == from || within(from, f.Path):
			if f.Path = to + strings.TrimPrefix(f.Path, from); len(f.Path) > MaxFilePath {
				return nil, invalid("to", "makes a path longer than %d bytes", MaxFilePath)
			}
			moved = append(moved, f)
		}
	}
	if len(moved) == 0 {
		return nil, ErrNotFound
	}
	return moved, nil
}
