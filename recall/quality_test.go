package recall

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

type dsTurn struct{ ID, Sess, Spk, Role, Text, Cap, Date string }
type dsQ struct {
	Q, Cat, Date string
	Ev           []int
}
type dsConv struct {
	ID    string
	Turns []dsTurn
	Qs    []dsQ
}
type dsSet struct {
	Name  string
	Convs []dsConv
}

func loadSet(t testing.TB, name string) dsSet {
	b, err := os.ReadFile("../../shared/data/recall/" + name + ".json")
	if err != nil {
		t.Skip("no data")
	}
	var s dsSet
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

var dateForms = []string{"3:04 pm on 2 January, 2006", "January-2-2006", "2006/01/02 (Mon) 15:04"}

func parseDate(s string) time.Time {
	for _, f := range dateForms {
		if d, err := time.Parse(f, s); err == nil {
			return d
		}
	}
	return time.Time{}
}

// split like persist
func splitText(s string) []string {
	var out []string
	for len(s) > 1024 {
		cut := strings.LastIndexAny(s[:1024], " \n")
		if cut < 512 {
			cut = 1024
		}
		out = append(out, strings.ToValidUTF8(s[:cut], ""))
		s = s[cut:]
	}
	return append(out, s)
}

type sliceSource []storage.Memory

func (s sliceSource) Scan(ctx context.Context, sc storage.Scope, q storage.Query) (storage.Page, error) {
	return storage.Page{Memories: s}, nil
}

// build returns memories and map turnID -> gold unit
func convMemories(c dsConv, round bool) (ms []storage.Memory, unitOf map[string]int, rounds []int) {
	unitOf = map[string]int{}
	rounds = make([]int, len(c.Turns))
	turn := -1
	seq := 0
	var last time.Time
	for i, t := range c.Turns {
		if !round || turn < 0 || t.Role == "user" || c.Turns[i-1].Sess != t.Sess {
			turn = i
			seq = 0
		}
		rounds[i] = turn
		d := parseDate(t.Date)
		if !d.After(last) {
			d = last.Add(time.Second)
		}
		last = d
		text := t.Text
		if t.Cap != "" {
			text += " [" + t.Cap + "]"
		}
		spk := t.Spk
		if spk == "user" || spk == "assistant" {
			spk = ""
		}
		for _, p := range splitText(text) {
			id := fmt.Sprintf("%016x", turn)
			unitOf[id] = turn
			ms = append(ms, storage.Memory{ID: fmt.Sprintf("%s-%d", id, seq), Kind: storage.KindEpisode, Conversation: t.Sess, Text: p, Trust: 1, EventTime: storage.TimeOf(d),
				Provenance: storage.Provenance{Turn: id, Role: storage.Role(t.Role), Speaker: spk, Seq: seq}})
			seq++
		}
	}
	return
}

type qres struct {
	frac, any map[int]float64
	ndcg, mrr float64
	cat       string
}

func evalSet(t testing.TB, cfg Config, s dsSet, round bool) ([]qres, []time.Duration) {
	var out []qres
	var lat []time.Duration
	for _, c := range s.Convs {
		ms, unitOf, rounds := convMemories(c, round)
		scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: c.ID}
		e := New(cfg, sliceSource(ms), nil, nil)
		for _, q := range c.Qs {
			now := parseDate(q.Date)
			if now.IsZero() {
				now = parseDate(c.Turns[len(c.Turns)-1].Date).Add(24 * time.Hour)
			}
			gold := map[int]bool{}
			for _, ev := range q.Ev {
				gold[rounds[ev]] = true
			}
			st := time.Now()
			res, err := e.Recall(context.Background(), Request{Scope: scope, Newest: q.Q, Now: now, TopK: 50, BudgetTokens: 1 << 30, NoGate: true})
			if err != nil {
				t.Fatal(err)
			}
			lat = append(lat, time.Since(st))
			var L []int
			seen := map[int]bool{}
			for _, m := range res.Memories {
				u := unitOf[m.Memory.Provenance.Turn]
				if !seen[u] {
					seen[u] = true
					L = append(L, u)
				}
			}
			r := qres{frac: map[int]float64{}, any: map[int]float64{}, cat: q.Cat}
			dcg, idcg := 0.0, 0.0
			hits := 0
			for i, u := range L {
				if gold[u] {
					hits++
					if r.mrr == 0 {
						r.mrr = 1 / float64(i+1)
					}
					if i < 10 {
						dcg += 1 / math.Log2(float64(i+2))
					}
				}
				for _, k := range []int{1, 5, 10, 20, 50} {
					if i+1 == k {
						r.frac[k] = float64(hits) / float64(len(gold))
					}
				}
			}
			for _, k := range []int{1, 5, 10, 20, 50} {
				if len(L) < k {
					r.frac[k] = float64(hits) / float64(len(gold))
				}
			}
			if r.frac[10] > 0 {
				r.any[10] = 1
			}
			for i := 0; i < min(10, len(gold)); i++ {
				idcg += 1 / math.Log2(float64(i+2))
			}
			r.ndcg = dcg / idcg
			out = append(out, r)
		}
		e.Close()
	}
	return out, lat
}

func summary(rs []qres) string {
	var f5, f10, f20, a10, nd, mrr float64
	for _, r := range rs {
		f5 += r.frac[5]
		f10 += r.frac[10]
		f20 += r.frac[20]
		a10 += r.any[10]
		nd += r.ndcg
		mrr += r.mrr
	}
	n := float64(len(rs))
	return fmt.Sprintf("n=%d frac@5 %.3f frac@10 %.3f frac@20 %.3f any@10 %.3f ndcg %.3f mrr %.3f", len(rs), f5/n, f10/n, f20/n, a10/n, nd/n, mrr/n)
}

func TestQuality(t *testing.T) {
	if os.Getenv("RQ") == "" {
		t.Skip()
	}
	cfg := DefaultConfig()
	cfg.FirstDeadline = time.Minute
	cfg.Deadline = time.Minute
	for _, d := range []struct {
		name  string
		round bool
	}{{"locomo_a", false}, {"beam100k_a", true}, {"lmepool", false}} {
		s := loadSet(t, d.name)
		rs, lat := evalSet(t, cfg, s, d.round)
		sort.Slice(lat, func(i, j int) bool { return lat[i] < lat[j] })
		fmt.Println(d.name, summary(rs), "p50", lat[len(lat)/2])
		if os.Getenv("RQ") == "cat" {
			cats := map[string][]qres{}
			for _, r := range rs {
				cats[r.cat] = append(cats[r.cat], r)
			}
			for c, rs := range cats {
				fmt.Println("   ", c, summary(rs))
			}
		}
	}
}
