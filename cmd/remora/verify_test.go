package main

import (
	"context"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// spoilt is a store whose scans are not what was written.
type spoilt struct {
	*storagetest.Mem
	spoil func(page *storage.Page)
}

func (s spoilt) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	page, err := s.Mem.Scan(ctx, scope, q)
	if scope.User == "1" {
		s.spoil(&page)
	}
	return page, err
}

func TestVerifyStore(t *testing.T) {
	mem := storagetest.Memory()
	for _, user := range []string{"1", "2"} {
		err := mem.Put(t.Context(), []storage.Write{{
			Scope:    storage.Scope{Tenant: "t", App: "a", Project: "p", User: user},
			Memories: []storage.Memory{{ID: "a", Text: "first"}, {ID: "b", Text: "second"}},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name  string
		spoil func(page *storage.Page)
		told  string
		amiss string // "" = nothing
	}{
		{"whole", func(*storage.Page) {}, "4 memories of 2 scopes verified", ""},
		{"missing", func(p *storage.Page) { p.Memories = p.Memories[1:] }, "3 memories of 2 scopes verified", "missing: 1 memories"},
		{"damaged", func(p *storage.Page) { p.Memories, p.Damaged = p.Memories[1:], 1 }, "3 memories of 2 scopes verified", "damaged: 1 memories, missing: 0 memories"},
		{"altered", func(p *storage.Page) { p.Memories[0].Text = "older" }, "4 memories of 2 scopes verified", "not as they were written: 1 scopes"},
	} {
		told, err := verifyStore(t.Context(), spoilt{mem, test.spoil})
		if told != test.told {
			t.Errorf("%s: got %q, want %q", test.name, told, test.told)
		}
		if (err != nil) != (test.amiss != "") || err != nil && !strings.Contains(err.Error(), test.amiss) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.amiss)
		}
	}
}
