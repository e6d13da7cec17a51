package config

import (
	"strings"
	"testing"
)

func TestConfigFitsContainer(t *testing.T) {
	load := func(memory uint64, file string, env ...string) Config {
		t.Helper()
		where := testPlace()
		where.container, where.memory = true, memory
		c, err := Load(Overrides{File: writeFile(t, file)}, environment(append(env, "REMORA_STORAGE_KEY_FILE", "/key")...), where)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	whole, small, tiny := load(0, "{}"), load(128<<20, "{}"), load(8<<20, "{}")
	if whole.MemoryLimit != 0 || whole.Recall.MaxBytes != 256<<20 || whole.Store.MemoryBytes != 128<<20 || whole.Persist.MaxWrite <= small.Persist.MaxWrite {
		t.Errorf("without a limit: %d, %d, %d, %d", whole.MemoryLimit, whole.Recall.MaxBytes, whole.Store.MemoryBytes, whole.Persist.MaxWrite)
	}
	if small.MemoryLimit != 56<<20 || small.Store.MemoryBytes != 48<<20 || small.Storage.MemoryBytes != 48<<20 || small.Recall.MaxBytes != 8<<20 ||
		small.Proxy.Ledger.MaxBytes != 2<<20 {
		t.Errorf("in 128 MiB: %d, %d, %d, %d, %d", small.MemoryLimit, small.Store.MemoryBytes, small.Storage.MemoryBytes, small.Recall.MaxBytes, small.Proxy.Ledger.MaxBytes)
	}
	if tiny.Store.MemoryBytes != 32<<20 || tiny.MemoryLimit <= 0 || tiny.Recall.MaxBytes != 1<<20 {
		t.Errorf("in 8 MiB: %d, %d, %d", tiny.Store.MemoryBytes, tiny.MemoryLimit, tiny.Recall.MaxBytes)
	}
	if c := load(128<<20, `{"recall": {"maxBytes": 33554432}}`, "REMORA_STORAGE_MEMORY_BYTES", "41943040"); c.Recall.MaxBytes != 32<<20 || c.Store.MemoryBytes != 40<<20 || c.MemoryLimit != 64<<20 {
		t.Errorf("explicit settings: %d, %d, %d", c.Recall.MaxBytes, c.Store.MemoryBytes, c.MemoryLimit)
	}
	// A setting never forces another one to be set, however small the
	// container.
	for _, part := range []string{`{"limits": {"bodyBytes": 33554432}}`, `{"limits": {"teeBytes": 33554432}}`, `{"recall": {"maxScopeBytes": 134217728}}`} {
		load(256<<20, part)
	}
	if c := load(128<<20, `{"storage": {"isolation": "inline"}}`); c.MemoryLimit != 104<<20 {
		t.Errorf("in one process: %d", c.MemoryLimit)
	}
	if large := load(16<<30, "{}"); shown(t, large) != shown(t, whole) {
		t.Error("16 GiB changed the defaults")
	}
	if !strings.Contains(shown(t, small), "50331648") {
		t.Error("the effective limits are not shown")
	}
}
