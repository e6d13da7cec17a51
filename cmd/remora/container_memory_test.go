package main

import (
	"strings"
	"testing"
)

func TestConfigFitsContainer(t *testing.T) {
	load := func(memory uint64, file string, env ...string) config {
		t.Helper()
		where := machine()
		where.container, where.memory = true, memory
		c, err := loadConfig(overrides{file: writeFile(t, file)}, environment(append(env, "REMORA_STORAGE_KEY_FILE", "/key")...), where)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	whole, small, tiny := load(0, "{}"), load(128<<20, "{}"), load(8<<20, "{}")
	if whole.memory != 0 || whole.recall.MaxBytes != 256<<20 || whole.store.memoryBytes != 128<<20 || whole.persist.MaxWrite <= small.persist.MaxWrite {
		t.Errorf("without a limit: %d, %d, %d, %d", whole.memory, whole.recall.MaxBytes, whole.store.memoryBytes, whole.persist.MaxWrite)
	}
	if small.memory != 56<<20 || small.store.memoryBytes != 48<<20 || small.storage.MemoryBytes != 48<<20 || small.recall.MaxBytes != 8<<20 ||
		small.proxy.Ledger.MaxBytes != 2<<20 {
		t.Errorf("in 128 MiB: %d, %d, %d, %d, %d", small.memory, small.store.memoryBytes, small.storage.MemoryBytes, small.recall.MaxBytes, small.proxy.Ledger.MaxBytes)
	}
	if tiny.store.memoryBytes != 32<<20 || tiny.memory <= 0 || tiny.recall.MaxBytes != 1<<20 {
		t.Errorf("in 8 MiB: %d, %d, %d", tiny.store.memoryBytes, tiny.memory, tiny.recall.MaxBytes)
	}
	if c := load(128<<20, `{"recall": {"maxBytes": 33554432}}`, "REMORA_STORAGE_MEMORY_BYTES", "41943040"); c.recall.MaxBytes != 32<<20 || c.store.memoryBytes != 40<<20 || c.memory != 64<<20 {
		t.Errorf("what is set: %d, %d, %d", c.recall.MaxBytes, c.store.memoryBytes, c.memory)
	}
	// What is set needs no key that is not, whatever the container's shares are.
	for _, part := range []string{`{"limits": {"bodyBytes": 33554432}}`, `{"limits": {"teeBytes": 33554432}}`, `{"recall": {"maxScopeBytes": 134217728}}`} {
		load(256<<20, part)
	}
	if c := load(128<<20, `{"storage": {"isolation": "inline"}}`); c.memory != 104<<20 {
		t.Errorf("in one process: %d", c.memory)
	}
	if large := load(16<<30, "{}"); shown(t, large) != shown(t, whole) {
		t.Error("16 GiB are no reason for other bounds")
	}
	if !strings.Contains(shown(t, small), "50331648") {
		t.Error("the bounds in effect are not shown")
	}
}
