package quality

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// cuts are the ranks at which figures are taken; deepest is the last.
var cuts = []int{1, 5, 8, 10, 20, 50}

const (
	deepest = 50
	ndcgAt  = 10
)

// judgement sums the figures over questions.
type judgement struct {
	n              int
	frac, any, all map[int]float64
	ndcg, mrr      float64
}

func newJudgement() *judgement {
	return &judgement{frac: map[int]float64{}, any: map[int]float64{}, all: map[int]float64{}}
}

// add judges one ranking: frac@k is the share of gold among the first k, any@k
// and all@k whether one or all are there, NDCG@10 is binary with
// 1/log2(rank+1), MRR is one over the rank of the first gold.
func (f *judgement) add(ranking []int, gold map[int]bool) {
	f.n++
	found, dcg, ideal := 0, 0.0, 0.0
	at := map[int]int{} // gold among the first k
	for i, unit := range ranking[:min(len(ranking), deepest)] {
		if gold[unit] {
			if found++; found == 1 {
				f.mrr += 1 / float64(i+1)
			}
			if i < ndcgAt {
				dcg += 1 / math.Log2(float64(i+2))
			}
		}
		at[i+1] = found
	}
	for i := range min(len(gold), ndcgAt) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	f.ndcg += dcg / ideal
	for _, k := range cuts {
		hits := at[min(k, len(ranking))]
		f.frac[k] += float64(hits) / float64(len(gold))
		if hits > 0 {
			f.any[k]++
		}
		if hits == len(gold) {
			f.all[k]++
		}
	}
}

// object is the means as JSON.
func (f *judgement) object() map[string]any {
	o := map[string]any{"n": f.n}
	n := float64(max(f.n, 1))
	for _, k := range cuts {
		o[fmt.Sprintf("frac@%d", k)] = cli.Number(f.frac[k] / n)
		o[fmt.Sprintf("any@%d", k)] = cli.Number(f.any[k] / n)
		o[fmt.Sprintf("all@%d", k)] = cli.Number(f.all[k] / n)
	}
	o["ndcg@10"], o["mrr"] = cli.Number(f.ndcg/n), cli.Number(f.mrr/n)
	return o
}

// percentile of durations that it sorts; 0 of none.
func percentile(d []time.Duration, p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(int(p*float64(len(d))), len(d)-1)]
}
