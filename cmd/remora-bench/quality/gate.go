package quality

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/recall"
)

// RunGate measures the decision to recall nothing: questions asked of their own
// user's store should pass, the same questions asked of every other user's
// store, and the small talk of the conversations, should not.
func RunGate(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var data, unit, weights string
	var asJSON bool
	flags := flag.NewFlagSet("gate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&data, "data", "", "`file` with conversations and questions, or LoCoMo's own")
	flags.StringVar(&unit, "unit", "", "turn or round (default: round where an assistant speaks)")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	flags.StringVar(&weights, "weights", "", weightsUsage)
	if err := cli.ParseFlags(flags, args); err != nil {
		return err
	}
	if data == "" {
		return cli.UsageError("gate: -data is missing")
	}
	d, err := readDataset(data)
	if err != nil {
		return err
	}
	switch unit {
	case "":
		unit = usualUnit(d)
	case unitTurn, unitRound:
	default:
		return cli.UsageError(fmt.Sprintf("gate: unit %q is not turn or round", unit))
	}
	cfg := patientConfig()
	if err := readWeights(&cfg, weights); err != nil {
		return err
	}
	g, err := measureGate(ctx, cfg, d, unit)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(g.object())
	}
	return g.print(stdout)
}

func usualUnit(d dataset) string {
	for _, c := range d.Convs {
		for i := 1; i < len(c.Messages); i++ {
			if c.Messages[i].Role == "assistant" && c.Messages[i].Session == c.Messages[i-1].Session {
				return unitRound
			}
		}
	}
	return unitTurn
}

// gateReport holds the relevance of every request, -1 where nothing matched at
// all, and how many requests got memories with the gate on.
type gateReport struct {
	dataset, unit                        string
	gate                                 float64
	own, wrong, smallTalk                []float64
	ownPassed, wrongPassed, smallTalkGot int
}

func measureGate(ctx context.Context, cfg recall.Config, d dataset, unit string) (*gateReport, error) {
	g := &gateReport{dataset: d.Name, unit: unit, gate: cfg.Gate}
	m, err := openMemory(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.close() }()
	unitOf := map[string][]int{} // of the messages of a conversation
	for _, c := range d.Convs {
		turns, units := turnsOf(d, c, unit)
		if err := m.add(ctx, turns); err != nil {
			return nil, err
		}
		unitOf[c.ID] = units
	}
	for _, store := range d.Convs {
		for _, c := range d.Convs {
			for _, q := range c.Questions {
				if len(q.Evidence) == 0 {
					continue
				}
				r, passed, err := relevance(ctx, m.engine, d, store, q.Text, "", askedAt(c, q))
				if err != nil {
					return nil, err
				}
				if store.ID == c.ID {
					g.own = append(g.own, r)
					g.ownPassed += passed
				} else {
					g.wrong = append(g.wrong, r)
					g.wrongPassed += passed
				}
			}
		}
		for i, said := range store.Messages {
			if !isSmallTalk(said) {
				continue
			}
			r, passed, err := relevance(ctx, m.engine, d, store, said.Text, turnID(unitOf[store.ID][i]), askedAt(store, question{}))
			if err != nil {
				return nil, err
			}
			g.smallTalk = append(g.smallTalk, r)
			g.smallTalkGot += passed
		}
	}
	return g, nil
}

// relevance asks store without and with the gate. It returns what the gate
// judges by, and 1 if memories are returned with the gate, which has other bars
// for some messages and lets constraints pass. The turn named is left out.
func relevance(ctx context.Context, e *recall.Engine, d dataset, store conversation, text, turn string, now time.Time) (r float64, passed int, err error) {
	req := recall.Request{Scope: scopeOf(d, store), Newest: text, Now: now, NoGate: true}
	if turn != "" {
		chain, err := hex.DecodeString(turn)
		if err != nil {
			return 0, 0, fmt.Errorf("turn: %w", err)
		}
		req.VisibleChains = [][16]byte{[16]byte(chain)}
	}
	res, err := e.Recall(ctx, req)
	if err != nil {
		return 0, 0, fmt.Errorf("recall: %w", err)
	}
	if r = res.Relevance; len(res.Memories) == 0 {
		r = -1
	}
	req.NoGate = false
	if res, err = e.Recall(ctx, req); err != nil {
		return 0, 0, fmt.Errorf("recall: %w", err)
	}
	return r, min(len(res.Memories), 1), nil
}

// isSmallTalk picks messages that ask and tell nothing: few words, no question,
// no number, no name inside.
func isSmallTalk(m utterance) bool {
	words := strings.Fields(m.Text)
	if m.Role == "assistant" || len(words) == 0 || len(words) > 8 || strings.ContainsAny(m.Text, "?0123456789`") {
		return false
	}
	for i, w := range words[1:] {
		if w[0] >= 'A' && w[0] <= 'Z' && w != "I" && !strings.HasPrefix(w, "I'") && !strings.ContainsAny(words[i][len(words[i])-1:], ".!,") {
			return false
		}
	}
	return true
}

// silenced is the share of requests below a gate.
func silenced(relevances []float64, gate float64) float64 {
	n := 0
	for _, r := range relevances {
		if r < gate {
			n++
		}
	}
	return float64(n) / float64(len(relevances)) // NaN of none
}

// precision is the share of requests that passed and had an answer, own and
// wrong-store questions weighing the same.
func (g *gateReport) precision(gate float64) float64 {
	own, wrong := 1-silenced(g.own, gate), 1-silenced(g.wrong, gate)
	return own / (own + wrong)
}

// curve has the gate at steps of one percent of answerable questions kept, from
// all to four fifths.
func (g *gateReport) curve() []float64 {
	sorted := slices.Sorted(slices.Values(g.own))
	var gates []float64
	for percent := 0; percent <= 20 && len(sorted) > 0; percent++ {
		gates = append(gates, max(sorted[min(len(sorted)*percent/100, len(sorted)-1)], 0))
	}
	return gates
}

func (g *gateReport) object() map[string]any {
	var curve []map[string]any
	for _, at := range g.curve() {
		curve = append(curve, map[string]any{
			"gate": cli.Number(at), "answerable_kept": cli.Number(1 - silenced(g.own, at)), "wrong_store_silenced": cli.Number(silenced(g.wrong, at)),
			"small_talk_silenced": cli.Number(silenced(g.smallTalk, at)), "precision": cli.Number(g.precision(at)),
		})
	}
	return map[string]any{
		"dataset": g.dataset, "unit": g.unit, "gate": g.gate,
		"answerable": len(g.own), "answerable_kept": cli.Number(1 - silenced(g.own, g.gate)),
		"wrong_store": len(g.wrong), "wrong_store_silenced": cli.Number(silenced(g.wrong, g.gate)),
		"small_talk": len(g.smallTalk), "small_talk_silenced": cli.Number(silenced(g.smallTalk, g.gate)),
		"returned": map[string]any{
			"answerable_kept": cli.Number(share(g.ownPassed, len(g.own))), "wrong_store_silenced": cli.Number(1 - share(g.wrongPassed, len(g.wrong))),
			"small_talk_silenced": cli.Number(1 - share(g.smallTalkGot, len(g.smallTalk))),
		},
		"precision": cli.Number(g.precision(g.gate)), "recall": cli.Number(1 - silenced(g.own, g.gate)), "curve": curve,
	}
}

func (g *gateReport) print(w io.Writer) error {
	fmt.Fprintf(w, "%s by %s: %d answerable questions, %d of a wrong store, %d of small talk\n", g.dataset, g.unit, len(g.own), len(g.wrong), len(g.smallTalk))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "gate\tkept\twrong store silenced\tsmall talk silenced\tprecision\t\t\n")
	row := func(at float64, note string) {
		fmt.Fprintf(t, "%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%s\t\n", at, 1-silenced(g.own, at), silenced(g.wrong, at), silenced(g.smallTalk, at), g.precision(at), note)
	}
	for _, at := range g.curve() {
		row(at, "")
	}
	row(g.gate, "default")
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "with the gate on, memories are returned for: %.3f of the answerable, none for %.3f of the wrong store's, none for %.3f of small talk\n",
		share(g.ownPassed, len(g.own)), 1-share(g.wrongPassed, len(g.wrong)), 1-share(g.smallTalkGot, len(g.smallTalk)))
	return err
}

// share is k of n.
func share(k, n int) float64 { return float64(k) / float64(n) } // NaN of none
