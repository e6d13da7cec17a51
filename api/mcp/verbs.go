package mcp

import (
	"context"

	"github.com/remora-proxy/remora/api"
)

// Verbs are those of the control plane that tools need, for one caller. Errors
// are those of package api.
type Verbs interface {
	Search(ctx context.Context, t api.Target, q api.Search) (api.Results, error)
	Add(ctx context.Context, t api.Target, d api.Draft) (api.Added, error)
	List(
		ctx context.Context, t api.Target, f api.Filter, cursor string, limit int,
	) (api.Memories, error)
	Get(ctx context.Context, t api.Target, id string) (api.Memory, error)
	Update(ctx context.Context, t api.Target, id string, d api.Patch) (api.Memory, error)
	Delete(ctx context.Context, t api.Target, why string, ids ...string) (api.Removed, error)
	DeleteAll(ctx context.Context, t api.Target, f api.Filter, why string) (api.Removed, error)
	Context(ctx context.Context, t api.Target, q api.ContextRequest) (api.Context, error)
	Users(ctx context.Context, t api.Target, after string, limit int) (api.Users, error)

	Files(ctx context.Context, t api.Target) ([]api.File, error)
	ReadFile(ctx context.Context, t api.Target, path string) (api.File, error)
	WriteFile(ctx context.Context, t api.Target, path, content, why string) (api.File, error)
	DeleteFile(ctx context.Context, t api.Target, path, why string) (api.Removed, error)
	RenameFile(ctx context.Context, t api.Target, from, to, why string) error
}

// source is what memories say that were saved through a tool.
const source = "mcp"

// Local returns the verbs of a service in this process.
func Local(s *api.Service, p api.Principal) Verbs { return &local{s, p} }

type local struct {
	s *api.Service
	p api.Principal
}

// tags returns tags as they are stored: a name in one may be somebody's.
func (l *local) tags(tags []string) []string {
	var out []string
	for _, tag := range tags {
		out = append(out, l.s.Redact(tag))
	}
	return out
}

func (l *local) Search(ctx context.Context, t api.Target, q api.Search) (api.Results, error) {
	q.Tags = l.tags(q.Tags)
	return l.s.Search(ctx, l.p, t, q)
}

func (l *local) Add(ctx context.Context, t api.Target, d api.Draft) (api.Added, error) {
	d.Tags = l.tags(d.Tags)
	return l.s.Add(ctx, l.p, t, d, source)
}

func (l *local) List(
	ctx context.Context, t api.Target, f api.Filter, cursor string, limit int,
) (api.Memories, error) {
	f.Tags = l.tags(f.Tags)
	return l.s.List(ctx, l.p, t, f, cursor, limit)
}

func (l *local) Get(ctx context.Context, t api.Target, id string) (api.Memory, error) {
	return l.s.Get(ctx, l.p, t, id, false)
}

func (l *local) Update(
	ctx context.Context, t api.Target, id string, d api.Patch,
) (api.Memory, error) {
	if d.Tags != nil {
		tags := l.tags(*d.Tags)
		d.Tags = &tags
	}
	return l.s.Update(ctx, l.p, t, id, 0, d)
}

func (l *local) Delete(
	ctx context.Context, t api.Target, why string, ids ...string,
) (api.Removed, error) {
	return l.s.Delete(ctx, l.p, t, why, ids...)
}

func (l *local) DeleteAll(
	ctx context.Context, t api.Target, f api.Filter, why string,
) (api.Removed, error) {
	f.Tags = l.tags(f.Tags)
	return l.s.DeleteAll(ctx, l.p, t, f, why)
}

func (l *local) Context(
	ctx context.Context, t api.Target, q api.ContextRequest,
) (api.Context, error) {
	return l.s.Context(ctx, l.p, t, q)
}

func (l *local) Users(
	ctx context.Context, t api.Target, after string, limit int,
) (api.Users, error) {
	return l.s.Users(ctx, l.p, t, after, limit)
}

func (l *local) Files(ctx context.Context, t api.Target) ([]api.File, error) {
	return l.s.Files(ctx, l.p, t)
}

func (l *local) ReadFile(ctx context.Context, t api.Target, path string) (api.File, error) {
	return l.s.ReadFile(ctx, l.p, t, path)
}

func (l *local) WriteFile(
	ctx context.Context, t api.Target, path, content, why string,
) (api.File, error) {
	return l.s.WriteFile(ctx, l.p, t, path, content, why)
}

func (l *local) DeleteFile(
	ctx context.Context, t api.Target, path, why string,
) (api.Removed, error) {
	return l.s.DeleteFile(ctx, l.p, t, path, why)
}

func (l *local) RenameFile(ctx context.Context, t api.Target, from, to, why string) error {
	return l.s.RenameFile(ctx, l.p, t, from, to, why)
}
