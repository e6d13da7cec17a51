package storage

import (
	"errors"
	"strings"
	"testing"
)

// TestPages guards that a cursor that does not advance is an error, neither the end nor an endless loop.
func TestPages(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		next map[string]string // "!" fails
		want string
		err  error
	}{
		"one":              {map[string]string{"": ""}, "<>", nil},
		"some":             {map[string]string{"": "a", "a": "b", "b": ""}, "<><a><b>", nil},
		"fails":            {map[string]string{"": "a", "a": "!"}, "<><a>", broken},
		"does not advance": {map[string]string{"": "a", "a": "a"}, "<><a>", ErrUnavailable},
		"fails at first":   {map[string]string{"": "!"}, "<>", broken},
	} {
		t.Run(name, func(t *testing.T) {
			var read strings.Builder
			var got error
			for page, err := range Pages(func(after string) (string, string, error) {
				read.WriteString("<" + after + ">")
				if c.next[after] == "!" {
					return "", "", broken
				}
				return after, c.next[after], nil
			}) {
				if got != nil {
					t.Errorf("page %q after an error", page)
				}
				got = err
			}
			if read.String() != c.want || !errors.Is(got, c.err) {
				t.Errorf("read %s, %v; want %s, %v", read.String(), got, c.want, c.err)
			}
		})
	}
}
