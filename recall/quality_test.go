package recall

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
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
		if os.Getenv("CI") == "true" {
			t.Fatalf("the data of the scripted run are missing: %v", err)
		}
		t.Skip("skipped: no conversations")
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

// build returns memories and the gold unit of every turn ID.
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

func evalSet(t testing.TB, cfg Config, s dsSet, round bool) []qres {
	var out []qres
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
			res, err := e.Recall(context.Background(), Request{Scope: scope, Newest: q.Q, Now: now, TopK: 50, BudgetTokens: 1 << 30, NoGate: true})
			if err != nil {
				t.Fatal(err)
			}
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
	return out
}

// The floors lie slightly below the measured values (docs/recall-figures.md),
// so that a new word in a stop list does not fail the test.
func TestQualityFloors(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	for _, d := range []struct {
		name              string
		round             bool
		frac10, ndcg, mrr float64
	}{
		{"locomo_a", false, 0.85, 0.685, 0.655},
		{"beam100k_a", true, 0.65, 0.54, 0.57},
		{"lmepool", false, 0.83, 0.73, 0.745},
	} {
		rs := evalSet(t, patient(), loadSet(t, d.name), d.round)
		var frac, ndcg, mrr float64
		for _, r := range rs {
			frac += r.frac[10] / float64(len(rs))
			ndcg += r.ndcg / float64(len(rs))
			mrr += r.mrr / float64(len(rs))
		}
		t.Logf("%s: frac@10 %.3f NDCG@10 %.3f MRR %.3f", d.name, frac, ndcg, mrr)
		if frac < d.frac10 || ndcg < d.ndcg || mrr < d.mrr {
			t.Errorf("%s: got frac@10 %.3f, NDCG@10 %.3f, MRR %.3f, want at least %.3f, %.3f, %.3f", d.name, frac, ndcg, mrr, d.frac10, d.ndcg, d.mrr)
		}
	}
}
