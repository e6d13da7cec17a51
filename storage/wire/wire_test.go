package wire

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type value struct {
	Flag    bool
	Signed  int
	Count   uint64
	Ratio   float64
	Name    string
	Names   []string
	Blob    []byte
	Inner   string
	Trailer byte
}

func code(c *Coder, v *value) {
	c.Bool(&v.Flag)
	Int(c, &v.Signed)
	Uint(c, &v.Count)
	c.Float(&v.Ratio)
	String(c, &v.Name)
	Strings(c, &v.Names)
	c.Blob(&v.Blob)
	c.Nested(func(c *Coder) {
		c.ShareStrings()
		String(c, &v.Inner)
	})
	c.Byte(&v.Trailer)
}

func full() value {
	return value{
		Flag: true, Signed: -3, Count: math.MaxUint64, Ratio: .5, Name: "name",
		Names: []string{"a", "", "b"}, Blob: []byte{0, 1}, Inner: "inner", Trailer: 9,
	}
}

func TestRoundTrip(t *testing.T) {
	for _, want := range []value{{}, full()} {
		w := Writer([]byte("head"))
		code(w, &want)
		var got value
		r := Reader(w.Bytes()[len("head"):])
		if code(r, &got); !r.Done() {
			t.Errorf("%+v: not read to its end", want)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// TestTruncated guards that no proper prefix of an encoding reads as a whole
// value.
func TestTruncated(t *testing.T) {
	v := full()
	w := Writer(nil)
	code(w, &v)
	for n := range w.Bytes() {
		var got value
		r := Reader(w.Bytes()[:n])
		if code(r, &got); r.Done() || !r.Failed() {
			t.Errorf("%d of %d bytes read as a whole value", n, len(w.Bytes()))
		}
	}
}

// FuzzReader guards that arbitrary bytes neither panic nor read as something
// that encodes differently.
func FuzzReader(f *testing.F) {
	v := full()
	w := Writer(nil)
	code(w, &v)
	f.Add(w.Bytes())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var got value
		r := Reader(b)
		if code(r, &got); !r.Done() || got.Ratio != got.Ratio {
			return
		}
		w := Writer(nil)
		code(w, &got)
		var again value
		r = Reader(w.Bytes())
		if code(r, &again); !r.Done() || !cmp.Equal(got, again) {
			t.Errorf("read %+v, then %+v", got, again)
		}
	})
}
