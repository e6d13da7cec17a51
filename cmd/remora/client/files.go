package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

// FilesRoute is where a [Pipe] leads to the files that agents curate. REST has
// no verbs for them: nothing but MCP uses them.
const FilesRoute = "POST /.local/files"

// fileCall is a verb on files.
type fileCall struct {
	Verb, Path, To, Content, Why string
	Target                       api.Target
}

// Verbs on files.
const (
	verbList   = "list"
	verbRead   = "read"
	verbWrite  = "write"
	verbDelete = "delete"
	verbRename = "rename"
)

// maxFileCall bounds a call, whose content is escaped, in bytes.
const maxFileCall = 8*api.MaxFile + 64<<10

// FilesHandler serves FilesRoute to holders of the admin token.
func FilesHandler(s *api.Service) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		var out any
		p, err := s.Authenticate(ctx, request.Credential(r), "")
		if err == nil && !p.Admin {
			err = api.ErrForbidden
		}
		var c fileCall
		if err == nil {
			err = request.Decode(r, maxFileCall, true, &c)
		}
		if err == nil {
			switch c.Verb {
			case verbList:
				out, err = s.Files(ctx, p, c.Target)
			case verbRead:
				out, err = s.ReadFile(ctx, p, c.Target, c.Path)
			case verbWrite:
				out, err = s.WriteFile(ctx, p, c.Target, c.Path, c.Content, c.Why)
			case verbDelete:
				out, err = s.DeleteFile(ctx, p, c.Target, c.Path, c.Why)
			case verbRename:
				err = s.RenameFile(ctx, p, c.Target, c.Path, c.To, c.Why)
			default:
				err = api.ErrOff
			}
		}
		if err != nil {
			request.Fail(w, s.Log, err)
			return
		}
		request.Write(w, http.StatusOK, out)
	})
}

// file makes a call and decodes the answer.
func file[T any](ctx context.Context, c Tools, t api.Target, call fileCall) (out T, err error) {
	call.Target = *c.target(t)
	var raw json.RawMessage
	err = c.call(ctx, ask{method: http.MethodPost, path: strings.TrimPrefix(FilesRoute, "POST "), body: call}, &raw)
	if field, ok := errors.AsType[*api.FieldError](err); ok && field.Error() == api.ErrExists.Error() {
		return out, api.ErrExists
	}
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(raw, &out)
}

// Files lists the files of an agent.
func (c Tools) Files(ctx context.Context, t api.Target) ([]api.File, error) {
	return file[[]api.File](ctx, c, t, fileCall{Verb: verbList})
}

// ReadFile returns a file with its content.
func (c Tools) ReadFile(ctx context.Context, t api.Target, path string) (api.File, error) {
	return file[api.File](ctx, c, t, fileCall{Verb: verbRead, Path: path})
}

// WriteFile writes a file.
func (c Tools) WriteFile(ctx context.Context, t api.Target, path, content, why string) (api.File, error) {
	return file[api.File](ctx, c, t, fileCall{Verb: verbWrite, Path: path, Content: content, Why: why})
}

// DeleteFile discards a file or a directory, which can be undone for a day.
func (c Tools) DeleteFile(ctx context.Context, t api.Target, path, why string) (api.Removed, error) {
	return file[api.Removed](ctx, c, t, fileCall{Verb: verbDelete, Path: path, Why: why})
}

// RenameFile renames a file or a directory.
func (c Tools) RenameFile(ctx context.Context, t api.Target, from, to, why string) error {
	_, err := file[json.RawMessage](ctx, c, t, fileCall{Verb: verbRename, Path: from, To: to, Why: why})
	return err
}
