package quality

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/recall"
)

// RunRecall measures how well memories are found: every conversation of a data
// set becomes the memory of one user, through the pipeline that live turns
// take, and its questions are asked of it.
func RunRecall(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var data, unit, weights string
	var asJSON bool
	var embeddings embeddingFlags
	flags := flag.NewFlagSet("recall", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&data, "data", "", "`file` with conversations and questions, or LoCoMo's own")
	flags.StringVar(&unit, "unit", unitTurn, "what is ranked: turn (a message), round (a user message with the reply), session")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	flags.StringVar(&weights, "weights", "", weightsUsage)
	embeddings.register(flags)
	if err := cli.ParseFlags(flags, args); err != nil {
		return err
	}
	if data == "" {
		return cli.UsageError("recall: -data is missing")
	}
	if unit != unitTurn && unit != unitRound && unit != unitSession {
		return cli.UsageError(fmt.Sprintf("recall: unit %q is not turn, round or session", unit))
	}
	d, err := readDataset(data)
	if err != nil {
		return err
	}
	cfg := patientConfig()
	if err := readWeights(&cfg, weights); err != nil {
		return err
	}
	client, err := embeddings.client(&cfg)
	if err != nil {
		return err
	}
	if client != nil {
		defer client.Close()
	}
	r, err := measureRecall(ctx, cfg, d, unit)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(r.object())
	}
	return r.print(stdout)
}

// recallReport is what runRecall found.
type recallReport struct {
	dataset, unit string
	overall       *judgement
	categories    map[string]*judgement
	latency       []time.Duration // of requests as the proxy makes them
	indexBytes    int64
	vectors       map[recall.VectorStatus]int // requests by what embeddings did
	blocks        blockReport
}

// blockReport is what the blocks hold that the proxy would insert for the
// questions, in sums over them.
type blockReport struct {
	lines, bytes int
	evidence     float64 // share of the units that are evidence
}

func (b *blockReport) add(memories []recall.Scored, units []int, gold map[int]bool) error {
	shown := map[int]bool{}
	for _, s := range memories {
		unit, err := unitOf(s, units)
		if err != nil {
			return err
		}
		if b.bytes += len(s.Memory.Text); gold[unit] {
			shown[unit] = true
		}
	}
	b.lines += len(memories)
	b.evidence += float64(len(shown)) / float64(len(gold))
	return nil
}

func measureRecall(ctx context.Context, cfg recall.Config, d dataset, unit string) (*recallReport, error) {
	r := &recallReport{dataset: d.Name, unit: unit, overall: newJudgement(), categories: map[string]*judgement{}}
	m, err := openMemory(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.close() }()
	for _, c := range d.Convs {
		if err := r.conversation(ctx, m, d, c); err != nil {
			return nil, err
		}
	}
	for m.engine.Stats().Uncoded > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	r.indexBytes = m.engine.Stats().Bytes
	return r, nil
}

func (r *recallReport) conversation(ctx context.Context, m *memory, d dataset, c conversation) error {
	turns, units := turnsOf(d, c, r.unit)
	if err := m.add(ctx, turns); err != nil {
		return err
	}
	if err := m.embedded(ctx, scopeOf(d, c)); err != nil {
		return err
	}
	for _, q := range c.Questions {
		gold := map[int]bool{}
		for _, e := range q.Evidence {
			gold[units[e]] = true
		}
		if len(gold) == 0 {
			continue
		}
		req := recall.Request{Scope: scopeOf(d, c), Newest: q.Text, Now: askedAt(c, q)}
		ranking, err := rank(ctx, m.engine, req, units)
		if err != nil {
			return err
		}
		r.overall.add(ranking, gold)
		if r.categories[q.Category] == nil {
			r.categories[q.Category] = newJudgement()
		}
		r.categories[q.Category].add(ranking, gold)
		start := time.Now()
		res, err := m.engine.Recall(ctx, req)
		if err != nil {
			return fmt.Errorf("recall: %w", err)
		}
		r.latency = append(r.latency, time.Since(start))
		if err := r.blocks.add(res.Memories, units, gold); err != nil {
			return err
		}
		if r.vectors == nil {
			r.vectors = map[recall.VectorStatus]int{}
		}
		r.vectors[res.Vectors]++
	}
	return nil
}

// askedAt is the clock of a question: its date, or the day after the
// conversation's end.
func askedAt(c conversation, q question) time.Time {
	if at := parseDate(q.Date); !at.IsZero() {
		return at
	}
	var last time.Time
	for _, m := range c.Messages {
		if at := parseDate(m.Date); at.After(last) {
			last = at
		}
	}
	if last.IsZero() {
		last = undated
	}
	return last.Add(24 * time.Hour)
}

// rank asks with gate and budget off and returns the units in the order of
// their best passage.
func rank(ctx context.Context, e *recall.Engine, req recall.Request, units []int) ([]int, error) {
	req.NoGate, req.TopK, req.BudgetTokens = true, recall.MaxTopK, 1<<40
	res, err := e.Recall(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	var ranking []int
	for _, s := range res.Memories {
		unit, err := unitOf(s, units)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ranking, unit) {
			ranking = append(ranking, unit)
		}
	}
	return ranking, nil
}

func unitOf(s recall.Scored, units []int) (int, error) {
	var i int
	if _, err := fmt.Sscanf(s.Memory.Provenance.Turn, "%x", &i); err != nil {
		return 0, fmt.Errorf("recall: turn %q is not of this run", s.Memory.Provenance.Turn)
	}
	return units[i-1], nil
}

func (r *recallReport) object() map[string]any {
	o := r.overall.object()
	o["dataset"], o["unit"], o["index_bytes"] = r.dataset, r.unit, r.indexBytes
	n := float64(max(r.overall.n, 1))
	o["block_lines"], o["block_bytes"], o["block_evidence"] = cli.Number(float64(r.blocks.lines)/n), cli.Number(float64(r.blocks.bytes)/n), cli.Number(r.blocks.evidence/n)
	o["p50_us"] = cli.Number(percentile(r.latency, 0.5).Seconds() * 1e6)
	o["p99_us"] = cli.Number(percentile(r.latency, 0.99).Seconds() * 1e6)
	if r.vectors[recall.VectorsOff] < len(r.latency) {
		o["vectors"] = r.vectors
	}
	categories := map[string]any{}
	for name, f := range r.categories {
		categories[name] = f.object()
	}
	o["categories"] = categories
	return o
}

func (r *recallReport) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s by %s\n", r.dataset, r.unit)
	fmt.Fprint(t, "category\tn\t")
	for _, kind := range []string{"frac", "any", "all"} {
		for _, k := range cuts {
			fmt.Fprintf(t, "%s@%d\t", kind, k)
		}
	}
	fmt.Fprint(t, "ndcg@10\tmrr\t\n")
	row := func(name string, f *judgement) {
		n := float64(max(f.n, 1))
		fmt.Fprintf(t, "%s\t%d\t", name, f.n)
		for _, kind := range []map[int]float64{f.frac, f.any, f.all} {
			for _, k := range cuts {
				fmt.Fprintf(t, "%.3f\t", kind[k]/n)
			}
		}
		fmt.Fprintf(t, "%.3f\t%.3f\t\n", f.ndcg/n, f.mrr/n)
	}
	for _, name := range slices.Sorted(maps.Keys(r.categories)) {
		row(name, r.categories[name])
	}
	row("all", r.overall)
	if err := t.Flush(); err != nil {
		return err
	}
	if r.vectors[recall.VectorsOff] < len(r.latency) {
		fmt.Fprintf(w, "questions by what embeddings did: %v\n", r.vectors)
	}
	n := float64(max(r.overall.n, 1))
	fmt.Fprintf(w, "a block as the proxy inserts it: %.1f lines, %.0f bytes of text, %.3f of the evidence\n", float64(r.blocks.lines)/n, float64(r.blocks.bytes)/n, r.blocks.evidence/n)
	_, err := fmt.Fprintf(w, "latency p50 %v, p99 %v; indexes %d bytes\n", percentile(r.latency, 0.5), percentile(r.latency, 0.99), r.indexBytes)
	return err
}
