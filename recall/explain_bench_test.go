package recall

import "testing"

// BenchmarkExplain measures what explaining a result costs, which a receipt
// asks for with every search.
func BenchmarkExplain(b *testing.B) {
	ms, qs := corpus(b, 10_000)
	for name, ask := range map[string]Request{"plain": {}, "cuts": {Cuts: true}, "explained": {Explain: true}} {
		b.Run(name, func(b *testing.B) {
			e, _ := newEngine(b, patient(), ms)
			recallIDs(b, e, Request{Newest: qs[0]})
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				ask.Scope, ask.Newest, ask.Lines = alice, qs[i%len(qs)], true
				if _, err := e.Recall(b.Context(), ask); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
