//go:build unix

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// damageManifest zeroes the manifest's second half.
func damageManifest(t *testing.T, r *rig) {
	t.Helper()
	path := filepath.Join(r.sys.config.storage.Dir, "data", "MANIFEST")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[len(b)/2:])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// status asks once and returns what the answer says of memory.
func (r *rig) status(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, r.url+"/v1/chat/completions",
		strings.NewReader(`{"model":"fake-1","messages":[{"role":"user","content":"says person0: hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Remora-User", rigName(0))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.Header.Get("X-Remora-Status")
}
