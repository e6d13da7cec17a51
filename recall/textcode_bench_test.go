package recall

import (
	"testing"

	"github.com/remora-proxy/remora/recall/textcode"
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
				textcode.Learn(texts)
			}
		})
		c := textcode.Learn(texts)
		var buf []byte
		b.Run(set+"/encode", func(b *testing.B) {
			var in, out int
			i := 0
			for b.Loop() {
				t := []byte(ms[i%len(ms)].Text)
				buf = c.Encode(buf[:0], t)
				in += len(t)
				out += len(buf)
				i++
			}
			b.ReportMetric(float64(out)/float64(in), "ratio")
			b.ReportMetric(float64(len(c.AppendTable(nil))/textcode.TableRow), "symbols")
			b.SetBytes(int64(in / i))
		})
		var codes [][]byte
		for i := range 1000 {
			codes = append(codes, c.Encode(nil, []byte(ms[i].Text)))
		}
		b.Run(set+"/decode", func(b *testing.B) {
			i, in := 0, 0
			for b.Loop() {
				buf, _ = c.Decode(buf[:0], codes[i%1000])
				in += len(buf)
				i++
			}
			b.SetBytes(int64(in / i))
		})
	}
}
