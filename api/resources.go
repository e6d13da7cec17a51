package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api/documents"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// Document is what a caller hands in to be found later, in passages.
type Document struct {
	URI       string   `json:"resource_uri"` // names it: the same again replaces it
	Name      string   `json:"name,omitempty"`
	MediaType string   `json:"mediaType,omitempty"` // "" = by its content
	Tags      []string `json:"tags,omitempty"`
	Body      []byte   `json:"-"`
}

// Resource is a document that is remembered.
type Resource struct {
	URI      string `json:"resource_uri"`
	Title    string `json:"title,omitempty"`
	Passages int    `json:"passages"`
	// Known counts the passages that were there before, and Removed those that
	// are not in the document any more.
	Known   int    `json:"known,omitempty"`
	Removed int    `json:"removed,omitempty"`
	Updated string `json:"updatedAt,omitempty"`
}

const maxURI = 512

func checkURI(uri string) error {
	if uri == "" || len(uri) > maxURI || !printable(uri) {
		return invalid("resource_uri", "must have 1 to %d bytes of printable UTF-8", maxURI)
	}
	return nil
}

// AddResource splits a document into passages and remembers them.
func (s *intake) AddResource(ctx context.Context, p Principal, t Target, d Document) (Resource, error) {
	if err := checkURI(d.URI); err != nil {
		return Resource{}, err
	}
	if err := checkTags("tags", d.Tags); err != nil {
		return Resource{}, err
	}
	if err := s.checkPlainTags("tags", d.Tags); err != nil {
		return Resource{}, err
	}
	if slices.ContainsFunc(d.Tags, internalTag) {
		return Resource{}, invalid("tags", "one of them begins like a tag of the engine")
	}
	if len(d.Body) > MaxDocument {
		return Resource{}, ErrTooLarge
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return Resource{}, err
	}
	doc, err := s.extract(ctx, &d)
	switch {
	case errors.Is(err, documents.ErrUnsupported):
		return Resource{}, ErrUnsupportedMedia
	case errors.Is(err, documents.ErrTooLarge):
		return Resource{}, ErrTooLarge
	case errors.Is(err, ErrBusy):
		return Resource{}, err
	case errors.Is(err, documents.ErrNoText):
		return Resource{}, invalid("body", "has no text")
	case err != nil:
		return Resource{}, invalid("body", "can't be read as what its media type says")
	}
	now := storage.TimeOf(s.Now())
	out := Resource{URI: d.URI, Title: s.Redact(doc.Title), Updated: stamp(now)}
	var ms []storage.Memory
	kept := map[string]bool{}
	for i, text := range documents.Passages(doc, MaxText) {
		m := storage.Memory{
			ID: resourceID(d.URI, i, text), Kind: storage.KindResource, Text: text, Tags: append(slices.Clone(d.Tags), storage.ResourceTag+d.URI),
			Priority: resourcePriority, Confidence: 1, Source: "api", EventTime: now + storage.Time(i), Provenance: storage.Provenance{Seq: i},
		}
		ms, kept[m.ID] = append(ms, m), true
	}
	old, err := s.passages(ctx, scope, d.URI)
	if err != nil {
		return Resource{}, err
	}
	for batch := range slices.Chunk(ms, resourceBatch) {
		saved, err := s.remember(ctx, scope, batch)
		if err != nil {
			return Resource{}, err
		}
		for i := range saved {
			if out.Passages++; saved[i].Known {
				out.Known++
			}
		}
	}
	old = slices.DeleteFunc(old, func(id string) bool { return kept[id] })
	for batch := range slices.Chunk(old, storage.MaxRecords) {
		e, err := s.Pipeline.ForgetMemories(ctx, scope, batch...)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return Resource{}, err
		}
		out.Removed += e.Memories
	}
	return out, nil
}

// extract reads the text of a document, of one at a time: a PDF may take many
// times its size.
func (s *intake) extract(ctx context.Context, d *Document) (documents.Document, error) {
	select {
	case s.extracting <- struct{}{}:
		defer func() { <-s.extracting }()
	case <-ctx.Done():
		return documents.Document{}, ErrBusy
	}
	return documents.Text(d.Body, d.MediaType, d.Name)
}

const (
	resourcePriority = 0.5
	resourceBatch    = 200
)

// remember saves what it can: a passage of which redaction leaves nothing, or
// that hides a secret, is left out.
func (s *intake) remember(ctx context.Context, scope storage.Scope, ms []storage.Memory) (saved []persist.Saved, err error) {
	saved, err = s.Pipeline.Remember(ctx, scope, ms...)
	if err == nil || !errors.Is(err, persist.ErrSecret) && !errors.Is(err, persist.ErrNoText) {
		return saved, err
	}
	saved = nil
	for i := range ms {
		one, err := s.Pipeline.Remember(ctx, scope, ms[i])
		if errors.Is(err, persist.ErrSecret) || errors.Is(err, persist.ErrNoText) {
			continue
		}
		if err != nil {
			return saved, err
		}
		saved = append(saved, one...)
	}
	return saved, nil
}

// resourceID returns the id of a passage: the same document gives the same ids.
func resourceID(uri string, n int, text string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", uri, n, text))
	return "r" + hex.EncodeToString(sum[:16])
}

// passages returns the ids of a document's passages.
func (s *intake) passages(ctx context.Context, scope storage.Scope, uri string) (ids []string, err error) {
	for page, err := range storage.ScanPages(ctx, s.Store, scope, storage.Query{Kinds: []storage.Kind{storage.KindResource}}) {
		if err != nil {
			return nil, err
		}
		for i := range page.Memories {
			if m := &page.Memories[i]; m.DeletedAt == 0 && taggedWith(m.Tags, storage.ResourceTag) == uri {
				ids = append(ids, m.ID)
			}
		}
	}
	return ids, nil
}

// Resources lists a user's documents, by their URIs.
func (s *intake) Resources(ctx context.Context, p Principal, t Target) ([]Resource, error) {
	scope, err := s.scope(p, t)
	if err != nil {
		return nil, err
	}
	byURI := map[string]*Resource{}
	out := []Resource{}
	var order []*Resource
	for page, err := range storage.ScanPages(ctx, s.Store, scope, storage.Query{Kinds: []storage.Kind{storage.KindResource}}) {
		if err != nil {
			return nil, err
		}
		for i := range page.Memories {
			m := &page.Memories[i]
			uri := taggedWith(m.Tags, storage.ResourceTag)
			if m.DeletedAt != 0 {
				continue
			}
			if byURI[uri] == nil {
				byURI[uri] = &Resource{URI: uri}
				order = append(order, byURI[uri])
			}
			byURI[uri].Passages++
			byURI[uri].Updated = max(byURI[uri].Updated, stamp(m.UpdatedAt))
		}
	}
	slices.SortFunc(order, func(a, b *Resource) int { return strings.Compare(a.URI, b.URI) })
	for _, r := range order {
		out = append(out, *r)
	}
	return out, nil
}

// DeleteResource discards the passages of a document, which can be undone for a
// day.
func (s *intake) DeleteResource(ctx context.Context, p Principal, t Target, uri, why string) (Removed, error) {
	if err := checkURI(uri); err != nil {
		return Removed{}, err
	}
	if err := checkLength("why", why, MaxReason); err != nil {
		return Removed{}, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return Removed{}, err
	}
	ids, err := s.passages(ctx, scope, uri)
	if err != nil {
		return Removed{}, err
	}
	if len(ids) == 0 {
		return Removed{}, ErrNotFound
	}
	gone, err := s.Pipeline.Discard(ctx, scope, persist.Cause{By: p.By, Why: why}, ids...)
	out := Removed{Deleted: []string{}, UndoUntil: stamp(storage.TimeOf(s.Now().Add(persist.UndoTime)))}
	for i := range gone {
		out.Deleted = append(out.Deleted, gone[i].ID)
	}
	return out, err
}
