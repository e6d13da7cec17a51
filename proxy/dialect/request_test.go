package dialect

import (
	"fmt"
	"strings"
	"testing"
)

// TestRelease checks that a released array is not used by its request any more,
// and that longer conversations do not need it.
func TestRelease(t *testing.T) {
	body := func(n int) []byte {
		return []byte(`{"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, n-1) + `{"role":"user","content":"y"}]}`)
	}
	for _, n := range []int{1, pooledMessages, pooledMessages + 1, 3 * pooledMessages} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			for range 3 {
				req, err := Chat{}.Parse(body(n))
				if err != nil {
					t.Fatal(err)
				}
				if len(req.Messages) != n || req.Turn != n-1 || req.Messages[0].Hash != req.Messages[max(n-2, 0)].Hash {
					t.Fatalf("%d messages, the newest turn %d, of %d", len(req.Messages), req.Turn, n)
				}
				req.Release()
				req.Release()
				if req.Messages != nil {
					t.Error("the request still has the array")
				}
			}
		})
	}
	(*Request)(nil).Release()
}
