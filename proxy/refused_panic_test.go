package proxy

import (
	"net/http"
	"testing"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/ledger"
)

// What reads an upstream's bytes for memory's sake may fail in any way, and the client has its answer all the same.
func TestReadersOfAnswersAreGuarded(t *testing.T) {
	r := newRig(t)
	x := &exchange{h: r.h, d: dialect.Responses{}, next: &ledger.Continuation{}}
	if template, length, content := x.whyRefused(nil, nil); template || length || content {
		t.Error("a refusal that can't be read says why")
	}
	if got := x.tells(nil, nil, false); got != toldError {
		t.Errorf("a stream that can't be read tells %d", got)
	}
	x.reachedEncoded(http.Header{"Content-Encoding": {"gzip"}}, nil)
	if got := r.h.stats.Panics.Load(); got != 3 {
		t.Errorf("%d panics are counted, want 3", got)
	}
}
