package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// Scrapes that hang take no more than their own places.
func TestHungScrapes(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	h := atMost(2, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { began <- struct{}{}; <-release }))
	ended := make(chan struct{})
	scrape := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Code
	}
	for range 2 {
		go func() { scrape(); ended <- struct{}{} }()
		<-began
	}
	if code := scrape(); code != http.StatusServiceUnavailable {
		t.Errorf("a third scrape: code %d, want 503", code)
	}
	close(release)
	<-ended
	<-ended
	go func() { <-began }()
	if code := scrape(); code != http.StatusOK {
		t.Errorf("after that: code %d, want 200", code)
	}
}

// Nobody waits for the size of a directory.
func TestMeasuredSize(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	busy := measuredSize{dir: dir}
	busy.busy.Store(true) // as on a disk that hangs
	busy.size.Store(5)
	if n := busy.now(); n != 5 {
		t.Errorf("while it is measured: %d, want what it was before", n)
	}
	size := measuredSize{dir: dir}
	eventually(t, "a size", func() bool { return size.now() >= 1<<16 })
}
