package dialect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInsertIntoBuffer checks that insertions do not depend on the buffer, and
// do not overlap in it.
func TestInsertIntoBuffer(t *testing.T) {
	for name, test := range map[string]struct {
		d    Dialect
		body string
		last int // turns are the first message and this one
	}{
		"chat": {Chat{}, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, 2},
		"messages": {Messages{}, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},` +
			`{"role":"user","content":[{"type":"text","text":"c"}]}]}`, 2},
		"responses": {Responses{}, `{"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, 2},
		"string":    {Responses{}, `{"input":"a"}`, 0},
	} {
		t.Run(name, func(t *testing.T) { insertIntoBuffer(t, test.d, []byte(test.body), test.last) })
	}
}

func insertIntoBuffer(t *testing.T, d Dialect, body []byte, last int) {
	texts := []string{"one", strings.Repeat("\"two\"\n", 40), strings.Repeat("\u2028\x01", 30)} // the last is longer than estimated
	insert := func(buffer []byte) (out []string) {
		req, err := d.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		req.Buffer = buffer
		var all []Insertion
		for i, text := range texts {
			ins, err := d.Insert(req, last*(i%2), BeforeUser, text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, ins...)
		}
		for _, in := range all {
			out = append(out, fmt.Sprintf("%d: %s", in.At, in.Text))
		}
		return out
	}
	want := insert(nil)
	for _, n := range []int{0, 40, 100, 400, 500, 600, 1000, 4000} {
		if diff := cmp.Diff(want, insert(make([]byte, 0, n))); diff != "" {
			t.Errorf("buffer of %d bytes: %s", n, diff)
		}
	}
}
