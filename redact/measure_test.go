package redact

import (
	"encoding/base64"
	"encoding/json"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// dataDir has fixtures that are not part of the project. Tests that need them
// are skipped without them.
const dataDir = "../../shared/data/redaction"

func readData(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dataDir, name))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the scripted run requires the data: %v", err)
		}
		t.Skipf("no measurement: %v", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func newRedactor(t testing.TB) *Redactor {
	t.Helper()
	r, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSecretsMeasured counts a secret as found if any secret rule fires on its
// fixture. Rules were improved with one half of the fixtures, selected by a
// hash of the text. It shows the figures of both halves.
func TestSecretsMeasured(t *testing.T) {
	var fixtures []struct {
		Src, Rule string
		Secret    bool
		Text      string `json:"text_b64"`
	}
	readData(t, "secrets.json", &fixtures)
	r := newRedactor(t)
	type tally struct{ secrets, found, benign, flagged int }
	by := map[string]*tally{}
	for _, f := range fixtures {
		text, err := base64.StdEncoding.DecodeString(f.Text)
		if err != nil {
			t.Fatal(err)
		}
		_, findings := r.Redact(string(text))
		hit := slices.ContainsFunc(findings, func(f Finding) bool { return !f.Personal })
		half := "half: tuning"
		if crc32.ChecksumIEEE(text)%2 == 1 {
			half = "half: held out"
		}
		for _, group := range []string{"all", f.Src, half} {
			if by[group] == nil {
				by[group] = &tally{}
			}
			switch c := by[group]; {
			case f.Secret && hit:
				c.found++
				fallthrough
			case f.Secret:
				c.secrets++
			case hit:
				c.flagged++
				fallthrough
			default:
				c.benign++
			}
		}
		if f.Secret != hit && testing.Verbose() {
			t.Logf("%s: secret=%v %s/%s: %.200q", half, f.Secret, f.Src, f.Rule, text)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(by)) {
		c := by[group]
		found, flagged := float64(c.found)/float64(c.secrets), float64(c.flagged)/float64(c.benign)
		t.Logf("%-15s secrets found %.1f%% of %d, non-secrets flagged %.1f%% of %d", group, 100*found, c.secrets, 100*flagged, c.benign)
		want := 0.9
		if group == "all" {
			want = 0.97
		}
		if found < want {
			t.Errorf("%s: found %.3f of its secrets, want >= %.2f", group, found, want)
		}
	}
	// Those that are flagged still are keys of the right form that another
	// rule's test must not claim, or have a digit wrong.
	if c := by["all"]; float64(c.flagged) > 0.1*float64(c.benign) {
		t.Errorf("non-secrets flagged: got %d of %d, want <= 10%%", c.flagged, c.benign)
	}
}

// TestPersonalDataMeasured counts personal data as found if nothing of the gold
// span is left. A finding outside all gold spans is false.
func TestPersonalDataMeasured(t *testing.T) {
	var sentences []struct {
		Text  string
		Spans []struct {
			Type       string
			Start, End int // in runes
		}
	}
	readData(t, "pii.json", &sentences)
	r := newRedactor(t)
	floor := map[string]float64{"EMAIL_ADDRESS": 1, "CREDIT_CARD": 1, "IBAN_CODE": 1, "US_SSN": 1, "IP_ADDRESS": 1, "PHONE_NUMBER": 0.95}
	found, total, falseSentences := map[string]int{}, map[string]int{}, 0
	for _, s := range sentences {
		_, findings := r.Redact(s.Text)
		genuine := make([]bool, len(findings))
		offsets := runeOffsets(s.Text)
		for _, gold := range s.Spans {
			if _, ok := floor[gold.Type]; !ok {
				continue
			}
			start, end := offsets[gold.Start], offsets[gold.End]
			total[gold.Type]++
			covered := false
			for i, f := range findings {
				if f.Start < end && start < f.End {
					genuine[i] = true
				}
				covered = covered || f.Start <= start && end <= f.End
			}
			if covered {
				found[gold.Type]++
			} else {
				t.Logf("missed %s %q in %.300q", gold.Type, s.Text[start:end], s.Text)
			}
		}
		if i := slices.Index(genuine, false); i >= 0 {
			falseSentences++
			t.Logf("false %s %q in %.300q", findings[i].Rule, s.Text[findings[i].Start:findings[i].End], s.Text)
		}
	}
	for kind, want := range floor {
		got := float64(found[kind]) / float64(total[kind])
		t.Logf("%-14s found %.1f%% of %d", kind, 100*got, total[kind])
		if got < want {
			t.Errorf("%s: found %.3f, want >= %.2f", kind, got, want)
		}
	}
	share := float64(falseSentences) / float64(len(sentences))
	t.Logf("sentences with a false finding %.2f%% of %d", 100*share, len(sentences))
	if share > 0.005 {
		t.Errorf("sentences with a false finding: got %.4f, want <= 0.005", share)
	}
}

func runeOffsets(text string) []int {
	var offsets []int
	for i := range text {
		offsets = append(offsets, i)
	}
	return append(offsets, len(text))
}
