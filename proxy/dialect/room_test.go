package dialect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Insertions are the same wherever they are written, and stand beside each other.
func TestInsertIntoRoom(t *testing.T) {
	body := []byte(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`)
	texts := []string{"one", strings.Repeat("\"two\"\n", 40), strings.Repeat("\u2028\x01", 30)} // the last is longer than it is taken to be
	insert := func(room []byte) (out []string) {
		req, err := Chat{}.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		req.Room = room
		var all []Insertion
		for i, text := range texts {
			ins, err := Chat{}.Insert(req, 2*(i%2), BeforeUser, text)
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
	for _, n := range []int{0, 40, 100, 400, 500, 600, 4000} {
		if diff := cmp.Diff(want, insert(make([]byte, 0, n))); diff != "" {
			t.Errorf("room for %d bytes: %s", n, diff)
		}
	}
}
