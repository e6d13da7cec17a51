package quality

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/redact"
)

// RunRedact measures redaction as it is by default: how many secrets and
// personal data it finds, what it takes for such, and what it costs.
func RunRedact(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var secrets, pii string
	var asJSON bool
	flags := flag.NewFlagSet("redact", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&secrets, "secrets", "", "`file` of texts with and without a secret: [{src, secret, text_b64}]")
	flags.StringVar(&pii, "pii", "", "`file` of sentences with gold spans: [{text, spans: [{type, start, end}]}], offsets in characters")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	if err := cli.ParseFlags(flags, args); err != nil {
		return err
	}
	if secrets == "" && pii == "" {
		return cli.UsageError("redact: -secrets and -pii are missing")
	}
	r, err := redact.New(redact.DefaultConfig())
	if err != nil {
		return err
	}
	report := redactReport{}
	var prose []string
	if secrets != "" {
		var fixtures []secretFixture
		if err := readJSON(secrets, &fixtures); err != nil {
			return err
		}
		if report.secrets, prose, err = measureSecrets(r, fixtures); err != nil {
			return err
		}
	}
	if pii != "" {
		var sentences []piiSentence
		if err := readJSON(pii, &sentences); err != nil {
			return err
		}
		if report.pii, prose, err = measurePersonal(r, sentences); err != nil {
			return err
		}
	}
	report.usPerKiB = redactCost(ctx, r, prose)
	if err := ctx.Err(); err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(report.object())
	}
	return report.print(stdout)
}

func readJSON(path string, into any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

type secretFixture struct {
	Src    string
	Secret bool
	Text   string `json:"text_b64"`
}

type piiSentence struct {
	Text  string
	Spans []struct {
		Type       string
		Start, End int // in characters
	}
}

// piiNames are the types of gold spans that are measured, and their names in
// the report.
var piiNames = map[string]string{
	"EMAIL_ADDRESS": "email", "PHONE_NUMBER": "phone", "CREDIT_CARD": "card", "IBAN_CODE": "iban", "US_SSN": "ssn", "IP_ADDRESS": "ip",
}

// redactReport is what runRedact found.
type redactReport struct {
	secrets  map[string]*secretTally // by source; "" = all of them
	pii      *piiTally
	usPerKiB float64
}

type secretTally struct{ secrets, found, benign, flagged int }

func (t *secretTally) object() map[string]any {
	return map[string]any{"recall": ratio(t.found, t.secrets), "flagged_benign": ratio(t.flagged, t.benign)}
}

type piiTally struct {
	total, found    map[string]int
	sentences, lies int // sentences, and those with a finding outside all gold spans
}

// ratio is a ratio as JSON can hold it: null of nothing.
func ratio(n, of int) any {
	if of == 0 {
		return nil
	}
	return math.Round(float64(n)/float64(of)*1e4) / 1e4
}

// measureSecrets counts a secret as found when a rule for secrets finds
// anything in its text.
func measureSecrets(r *redact.Redactor, fixtures []secretFixture) (map[string]*secretTally, []string, error) {
	tallies := map[string]*secretTally{"": {}}
	texts := make([]string, 0, len(fixtures))
	for i, f := range fixtures {
		text, err := base64.StdEncoding.DecodeString(f.Text)
		if err != nil {
			return nil, nil, fmt.Errorf("text_b64 of entry %d is not base64", i)
		}
		texts = append(texts, string(text))
		_, findings := r.Redact(string(text))
		hit := slices.ContainsFunc(findings, func(f redact.Finding) bool { return !f.Personal })
		if tallies[f.Src] == nil {
			tallies[f.Src] = &secretTally{}
		}
		for _, t := range []*secretTally{tallies[""], tallies[f.Src]} {
			switch {
			case f.Secret && hit:
				t.found++
				fallthrough
			case f.Secret:
				t.secrets++
			case hit:
				t.flagged++
				fallthrough
			default:
				t.benign++
			}
			if f.Src == "" {
				break
			}
		}
	}
	return tallies, texts, nil
}

// measurePersonal counts a gold span as found when nothing of it is left.
func measurePersonal(r *redact.Redactor, sentences []piiSentence) (*piiTally, []string, error) {
	tally := &piiTally{total: map[string]int{}, found: map[string]int{}, sentences: len(sentences)}
	texts := make([]string, 0, len(sentences))
	for i, s := range sentences {
		texts = append(texts, s.Text)
		var offsets []int
		for at := range s.Text {
			offsets = append(offsets, at)
		}
		offsets = append(offsets, len(s.Text))
		_, findings := r.Redact(s.Text)
		genuine := make([]bool, len(findings))
		for _, gold := range s.Spans {
			kind := piiNames[gold.Type]
			if kind == "" {
				continue
			}
			if gold.Start < 0 || gold.Start > gold.End || gold.End >= len(offsets) {
				return nil, nil, errors.New("a span of sentence " + fmt.Sprint(i) + " lies outside of it")
			}
			start, end := offsets[gold.Start], offsets[gold.End]
			tally.total[kind]++
			for k, f := range findings {
				genuine[k] = genuine[k] || f.Start < end && start < f.End
			}
			if slices.ContainsFunc(findings, func(f redact.Finding) bool { return f.Start <= start && end <= f.End }) {
				tally.found[kind]++
			}
		}
		if slices.Contains(genuine, false) {
			tally.lies++
		}
	}
	return tally, texts, nil
}

// Cost is measured over documents of that many bytes, as the best of some
// rounds: the others waited for the machine.
const (
	costDocument = 4 << 10
	costRounds   = 7
)

func redactCost(ctx context.Context, r *redact.Redactor, texts []string) float64 {
	var documents []string
	var b strings.Builder
	total := 0
	for _, text := range texts {
		b.WriteString(text + "\n")
		if b.Len() >= costDocument {
			documents = append(documents, b.String())
			total += b.Len()
			b.Reset()
		}
	}
	if b.Len() > 0 {
		documents = append(documents, b.String())
		total += b.Len()
	}
	best := math.Inf(1)
	for range costRounds {
		if ctx.Err() != nil {
			break
		}
		start := time.Now()
		for _, d := range documents {
			r.Redact(d)
		}
		best = min(best, float64(time.Since(start).Nanoseconds())/1e3/(float64(total)/1024))
	}
	return best
}

func (r *redactReport) object() map[string]any {
	out := map[string]any{"us_per_kib": math.Round(r.usPerKiB*10) / 10}
	if r.secrets != nil {
		all := r.secrets[""].object()
		bySource := map[string]any{}
		for source, t := range r.secrets {
			if source != "" {
				bySource[source] = t.object()
			}
		}
		all["by_source"] = bySource
		out["secrets"] = all
	}
	if r.pii != nil {
		pii := map[string]any{"false_sentences": ratio(r.pii.lies, r.pii.sentences)}
		for _, kind := range piiNames {
			pii[kind] = ratio(r.pii.found[kind], r.pii.total[kind])
		}
		out["pii"] = pii
	}
	return out
}

func (r *redactReport) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if r.secrets != nil {
		fmt.Fprint(t, "source\tsecrets\tfound\tnon-secrets\tflagged\t\n")
		for _, source := range slices.Sorted(maps.Keys(r.secrets)) {
			c, name := r.secrets[source], source
			if name == "" {
				name = "all"
			}
			fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%s\t\n", name, c.secrets, percent(c.found, c.secrets), c.benign, percent(c.flagged, c.benign))
		}
		fmt.Fprint(t, "\n")
	}
	if r.pii != nil {
		fmt.Fprint(t, "personal data\tspans\tfound\t\n")
		for _, kind := range slices.Sorted(maps.Values(piiNames)) {
			fmt.Fprintf(t, "%s\t%d\t%s\t\n", kind, r.pii.total[kind], percent(r.pii.found[kind], r.pii.total[kind]))
		}
		fmt.Fprintf(t, "false sentences\t%d\t%s\t\n\n", r.pii.sentences, percent(r.pii.lies, r.pii.sentences))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%.1f us per KiB\n", r.usPerKiB)
	return err
}

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}
