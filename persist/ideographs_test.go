package persist

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestIdeographicFactsStayDistinct checks that statements that differ in one
// character, which may be "not", are not repetitions of each other, and that
// equal ones are.
func TestIdeographicFactsStayDistinct(t *testing.T) {
	withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
		now := time.Now()
		for i, text := range []string{"我每天早上都喝一杯不加糖的黑咖啡。", "我喜欢在周末和朋友们一起去郊外爬山。", "我不喜欢在周末和朋友们一起去郊外爬山。", "我喜欢在周末和朋友们一起去郊外爬山！"} {
			p.settle(t, turnAt("t"+string(rune('a'+i)), text, "好的，我知道了。周末的天气看起来不错，可以早点出发。", now.Add(time.Duration(i)*time.Minute)))
		}
		got := current(factsOf(t, store, testScope))
		want := []string{`"我不喜欢在周末和朋友们一起去郊外爬山"`, `"我喜欢在周末和朋友们一起去郊外爬山"`}
		if !cmp.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
