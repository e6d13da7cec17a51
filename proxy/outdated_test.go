package proxy

import (
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// TestOutdatedLinesSaySo: what was said of old and superseded since is not
// shown as if it held.
func TestOutdatedLinesSaySo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.recall.set("I live in Berlin.")
	r.recall.memories[0].Tags = []string{"project:p1", storage.OutdatedTag}
	r.post(chat("user: Where do I live?"))
	if got := r.one().body; !strings.Contains(got, "(in part outdated) I live in Berlin.") {
		t.Errorf("the upstream got %s", got)
	}
}
