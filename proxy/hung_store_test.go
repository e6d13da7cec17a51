package proxy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/ledger"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// hungStore answers nothing.
type hungStore struct{ *storagetest.Mem }

func (hungStore) RecordKeys(ctx context.Context, _ storage.Bucket, _ storage.Scope, _ int) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestHungStoreCostsTheFirstDeadlineOnce: while a user's ledger does not come,
// their first request waits longest.
func TestHungStoreCostsTheFirstDeadlineOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.Upstreams = []httpclient.UpstreamConfig{{Name: "mock", URL: "http://127.0.0.1:1", Paths: []string{"/"}}}
		h, err := New(cfg, Deps{Recall: &fakeRecall{}, Persist: &fakePersist{}, Local: hungStore{storagetest.Memory()}})
		if err != nil {
			t.Fatal(err)
		}
		scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
		x := &call{h: h, ctx: t.Context()}
		history := &dialect.Request{Messages: []dialect.Message{{Role: dialect.RoleUser}, {Role: dialect.RoleAssistant}, {Role: dialect.RoleUser}}, Turn: 2}
		for i := range 4 {
			began := time.Now()
			s := h.ledger.Find(ledger.Seed{Scope: scope, Secret: []byte("secret")}, history, nil)
			ctx, cancel := x.deadline(s, scope, time.Now())
			if got := awaitLedger(ctx, s); got != StatusTimeout {
				t.Fatalf("request %d: %s", i, got)
			}
			cancel()
			want := cfg.RecallDeadline
			if i == 0 {
				want = cfg.FirstDeadline
			}
			if waited := time.Since(began); waited != want {
				t.Errorf("request %d waited %s, want %s", i, waited, want)
			}
		}
		time.Sleep(time.Minute)
	})
}
