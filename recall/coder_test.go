package recall

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkCoder(b *testing.B) {
	for _, set := range []string{"locomo_a", "beam100k_a"} {
		ms, _ := corpusOf(b, 10_000, set)
		var texts [][]byte
		n := 0
		for _, m := range ms {
			if n < learnFrom {
				texts = append(texts, []byte(m.Text))
				n += len(m.Text)
			}
		}
		b.Run(set+"/learn", func(b *testing.B) {
			for b.Loop() {
				learn(texts)
			}
		})
		c := learn(texts)
		var buf []byte
		b.Run(set+"/encode", func(b *testing.B) {
			var in, out int
			i := 0
			for b.Loop() {
				t := []byte(ms[i%len(ms)].Text)
				buf = c.encode(buf[:0], t)
				in += len(t)
				out += len(buf)
				i++
			}
			b.ReportMetric(float64(out)/float64(in), "ratio")
			b.ReportMetric(float64(len(c.symbols)), "symbols")
			b.SetBytes(int64(in / i))
		})
		var codes [][]byte
		for i := range 1000 {
			codes = append(codes, c.encode(nil, []byte(ms[i].Text)))
		}
		b.Run(set+"/decode", func(b *testing.B) {
			i, in := 0, 0
			for b.Loop() {
				buf, _ = c.decode(buf[:0], codes[i%1000])
				in += len(buf)
				i++
			}
			b.SetBytes(int64(in / i))
		})
	}
}

// What is coded comes back, whatever the text; codes that are cut off or made
// up are refused or give some text, never a fault.
func TestCoderGivesTextsBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := make([]string, 3000)
	for i := range words {
		words[i] = fmt.Sprintf("%c%c%c%c", 'b'+i%20, 'a'+i/20%13, 'k'+i/260%12, 'a'+i%7)
	}
	text := func() []byte {
		var b []byte
		for range r.IntN(60) {
			b = append(append(b, ' '), words[int(r.ExpFloat64()*400)%len(words)]...)
			if r.IntN(30) == 0 {
				b = append(b, byte(r.IntN(256)), 0, "9.x:"[r.IntN(4)])
			}
		}
		return b
	}
	var texts [][]byte
	for range 4000 {
		texts = append(texts, text())
	}
	c := learn(texts)
	if len(c.symbols) < 1000 {
		t.Fatalf("%d symbols, too few for codes of two bytes", len(c.symbols))
	}
	var decoded []byte
	for range 2000 {
		want := text()
		codes := c.encode(nil, want)
		got, ok := c.decode([]byte("before"), codes)
		if !ok || string(got) != "before"+string(want) {
			t.Fatalf("%q comes back as %q, %v", want, got, ok)
		}
		if len(codes) == 0 {
			continue
		}
		_, _ = c.decode(decoded[:0], codes[:r.IntN(len(codes))])
		for range 5 {
			codes[r.IntN(len(codes))] = byte(r.IntN(256))
		}
		decoded, _ = c.decode(decoded[:0], codes)
	}
	if _, ok := c.decode(nil, []byte{1, literal}); ok {
		t.Error("a code is cut off and nobody noticed")
	}
}
