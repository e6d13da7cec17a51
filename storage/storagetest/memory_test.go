package storagetest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
)

func TestMemoryContract(t *testing.T) {
	Run(t, func(t *testing.T) Opened { return openMem(Memory()) })
}

func openMem(m *Mem) Opened {
	return Opened{
		Store: m, Local: m,
		Close: func() error { m.Fail(true); return nil },
		Reopen: func(t *testing.T) Opened {
			m.Fail(false)
			return openMem(m)
		},
	}
}

func TestMemoryDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Memory()
		m.Delay(time.Minute)
		start := time.Now()
		if _, err := m.Scan(t.Context(), scopeOf("u"), storage.Query{}); err != nil {
			t.Error(err)
		}
		if got := time.Since(start); got != time.Minute {
			t.Errorf("a delayed call took %v, want a minute", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		calls(ctx, openMem(m), func(name string, err error) { wantErr(t, name, err, context.DeadlineExceeded) })
	})
}
