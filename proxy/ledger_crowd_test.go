package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Users that come once, in a crowd, leave nothing that could be cut down. The longest unused go, however lately they came.
func TestCrowdsStayWithinTheLedger(t *testing.T) {
	cfg := DefaultLedgerConfig()
	cfg.MaxBytes = 1 << 20
	now := time.Now()
	l := newLedger(cfg, nil, func() time.Time { return now })
	long := strings.Repeat("x", storage.MaxScopePart-8)
	for i := range 5000 {
		now = now.Add(time.Millisecond)
		s := l.of(storage.Scope{Tenant: long, App: long, Project: long, User: fmt.Sprintf("%s%08d", long, i)})
		l.write(s, chainHash{Lo: uint64(i + 1)}, &variant{conv: "c"}, "c", 0, l.forgets.Load())
	}
	if held := int64(len(l.scopes)) * 4 * int64(len(long)); l.bytes > cfg.MaxBytes || held > cfg.MaxBytes {
		t.Errorf("%d scopes in %d bytes, of names alone %d; want at most %d", len(l.scopes), l.bytes, held, cfg.MaxBytes)
	}
	if _, kept := l.scopes[storage.Scope{Tenant: long, App: long, Project: long, User: fmt.Sprintf("%s%08d", long, 4999)}]; !kept {
		t.Error("the newest went first")
	}
}
