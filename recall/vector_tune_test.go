package recall

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

func TestTune(t *testing.T) {
	if os.Getenv("TUNE") == "" {
		t.Skip()
	}
	for _, d := range []struct {
		name  string
		round bool
	}{{"locomo_a", false}, {"beam100k_a", true}, {"lmepool", false}} {
		set := loadSet(t, d.name)
		var texts []string
		for _, c := range set.Convs {
			for _, x := range c.Turns {
				texts = append(texts, x.Text)
			}
		}
		em := trainEmbedder(384, 1, texts)
		cache := map[string][]float32{}
		var mu sync.Mutex
		vec := func(s string) []float32 {
			mu.Lock()
			defer mu.Unlock()
			if v, ok := cache[s]; ok {
				return v
			}
			v := em.vector(s)
			cache[s] = v
			return v
		}
		// vector alone
		n, frac := 0.0, 0.0
		for _, c := range set.Convs {
			ms, _, rounds := convMemories(c, d.round)
			for _, q := range c.Qs {
				gold := map[int]bool{}
				for _, ev := range q.Ev {
					gold[rounds[ev]] = true
				}
				if len(gold) == 0 {
					continue
				}
				qv := vec(q.Q)
				best := map[int]float64{}
				for _, m := range ms {
					var turn int
					fmt.Sscanf(m.Provenance.Turn, "%x", &turn)
					dot := 0.0
					for i, x := range vec(m.Text) {
						dot += float64(x * qv[i])
					}
					if o, ok := best[turn]; !ok || dot > o {
						best[turn] = dot
					}
				}
				var order []int
				for k := range best {
					order = append(order, k)
				}
				slices.SortFunc(order, func(a, b int) int {
					if best[a] > best[b] {
						return -1
					} else if best[a] < best[b] {
						return 1
					}
					return a - b
				})
				hits := 0
				for _, k := range order[:min(10, len(order))] {
					if gold[k] {
						hits++
					}
				}
				frac += float64(hits) / float64(len(gold))
				n++
			}
		}
		t.Logf("%s vectors alone frac@10 %.3f", d.name, frac/n)
		_ = context.Background
		_ = time.Now
		_ = storage.Scope{}
	}
}
