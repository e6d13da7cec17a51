package fence

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

func TestAppendDay(t *testing.T) {
	check := func(ms int64) {
		t.Helper()
		want := time.UnixMilli(ms).UTC().Format("Mon 2006-01-02")
		if got := string(appendDay(nil, dayOf(storage.Time(ms)))); got != want {
			t.Fatalf("%d ms: %s, want %s", ms, got, want)
		}
	}
	for day := int64(-800_000); day < 3_000_000; day += 29 { // from the year -220 to the year 10,183
		check(day*dayMillis + day&1*(dayMillis-1))
	}
	for year := range 10_000 { // where months and leap days meet
		for _, day := range []int{-1, 0, 1} {
			check(time.Date(year, time.March, 1+day, 0, 0, 0, 0, time.UTC).UnixMilli())
			check(time.Date(year, time.January, 1+day, 0, 0, 0, 0, time.UTC).UnixMilli())
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		check(r.Int64N(1<<53) - 1<<52)
		check(int64(r.Uint64()))
	}
	check(math.MinInt64)
	check(math.MaxInt64)
}

// What stands before a text is that of its own line, whatever stood before the one above.
func TestPrefix(t *testing.T) {
	times := []storage.Time{0, 1, dayMillis - 1, dayMillis, -1, 1_778_000_000_000}
	speakers := []string{"", "user", "assistant", "A: B", "\u200b", "user\n"}
	r := rand.New(rand.NewPCG(1, 2))
	var p prefix
	for range 2000 {
		l := Line{Time: times[r.IntN(len(times))], Who: speakers[r.IntN(len(speakers))]}
		var alone prefix
		if got, want := string(p.of(&l)), string(alone.of(&l)); got != want {
			t.Fatalf("%+v: %q, want %q", l, got, want)
		}
	}
}
