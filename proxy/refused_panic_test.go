package proxy

import (
	"net/http"
	"testing"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/ledger"
)

// What reads an upstream's bytes for memory's sake may fail in any way, and the
// client has its answer all the same.
func TestReadersOfAnswersAreGuarded(t *testing.T) {
	r := newRig(t)
	x := &exchange{call: call{h: r.h, api: route{d: dialect.Responses{}}}, plan: plan{next: &ledger.Continuation{}}}
	if why := x.readRefusal(nil, nil); why != (refusalReason{}) {
		t.Error("a refusal that can't be read says why")
	}
	if got := x.readFirstEvent(nil, nil, false); got != eventError {
		t.Errorf("a stream that can't be read tells %d", got)
	}
	x.recordEncodedPosition(http.Header{"Content-Encoding": {"gzip"}}, nil)
	if got := r.h.stats.Panics.Load(); got != 3 {
		t.Errorf("%d panics are counted, want 3", got)
	}
}
