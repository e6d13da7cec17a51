package redact

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// sample is a line of testdata/attacks.txt, benign.txt and the like.
type sample struct {
	name, text string
	secrets    []string // what must not remain in text
}

// alphabets are those of the macros in samples.
var alphabets = map[string]string{
	"an":  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
	"low": "abcdefghijklmnopqrstuvwxyz0123456789",
	"up":  "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
	"hex": "0123456789abcdef",
	"b64": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/",
	"url": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_",
	"dig": "123456789",
}

// expand returns the value of one macro.
func expand(macro string, random *rand.Rand) (string, error) {
	if value, ok := strings.CutPrefix(macro, "="); ok {
		return value, nil
	}
	if value, ok := strings.CutPrefix(macro, "b64of "); ok {
		return base64.StdEncoding.EncodeToString([]byte(value)), nil
	}
	if macro == "uuid" {
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", random.Uint32(), random.Uint32()>>16, random.Uint32()>>20, random.Uint32()>>20, random.Uint64()>>16), nil
	}
	kind, size, _ := strings.Cut(macro, " ")
	n, err := strconv.Atoi(size)
	alphabet := alphabets[kind]
	if err != nil || alphabet == "" {
		return "", fmt.Errorf("unknown macro %q", macro)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[random.IntN(len(alphabet))]
	}
	if n > 1 && strings.IndexByte("-_", b[0]) >= 0 {
		b[0] = 'Q'
	}
	if n > 1 && strings.IndexByte("-_+/", b[n-1]) >= 0 { // a key may end so, but a text would cut it off
		b[n-1] = 'q'
	}
	return string(b), nil
}

// readSamples reads a file of samples. Their values are the same each time. The
// file does not contain them, or scanners would report them as leaks.
func readSamples(t testing.TB, name string) []sample {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var all []sample
	seen := map[string]bool{}
	for line := range bytes.Lines(raw) {
		line := strings.TrimSuffix(string(line), "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		title, rest, ok := strings.Cut(line, " | ")
		if !ok || seen[title] {
			t.Fatalf("%s: %q is not a sample or has a duplicate name", name, line)
		}
		seen[title] = true
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(title))
		random := rand.New(rand.NewPCG(hash.Sum64(), 1))
		s := sample{name: title}
		var text strings.Builder
		for {
			before, after, found := strings.Cut(rest, "‹")
			text.WriteString(before)
			if !found {
				break
			}
			macro, behind, closed := strings.Cut(after, "›")
			value, err := expand(macro, random)
			if err != nil || !closed {
				t.Fatalf("%s: %s: %v", name, title, err)
			}
			s.secrets = append(s.secrets, value)
			text.WriteString(value)
			rest = behind
		}
		s.text = strings.NewReplacer("⏎", "\n", "&#124;", "|").Replace(text.String())
		all = append(all, s)
	}
	return all
}

// leaks reports whether any secret of the sample is left in out.
func (s sample) leaks(out string) bool {
	for _, secret := range s.secrets {
		if strings.Contains(out, secret) {
			return true
		}
	}
	return false
}

// knownMisses are the samples whose secret stays, and why.
var knownMisses = map[string]string{
	"jdbc sqlserver": `"your" is taken for a placeholder`,
	"yaml word":      "a bare word",
	"binance":        "nothing says that it is a key",
	"told slash":     "nothing says that it is a password",
}

// TestSamples checks that secrets and personal data in texts are found, except
// for known misses.
func TestSamples(t *testing.T) {
	r := newRedactor(t)
	for _, file := range []string{"attacks.txt", "personal.txt", "fresh.txt", "third.txt"} {
		all, missed := readSamples(t, file), 0
		for _, s := range all {
			out, findings := r.Redact(s.text)
			checkFindings(t, s.text, out, findings)
			if again, more := r.Redact(out); again != out || len(more) > 0 {
				t.Errorf("%s: %s: not idempotent: %q became %q", file, s.name, out, again)
			}
			leak, known := s.leaks(out), knownMisses[s.name] != ""
			if leak {
				missed++
			}
			if leak != known {
				t.Errorf("%s: %s: left over: %v, known: %v: %.200q", file, s.name, leak, known, out)
			}
		}
		t.Logf("%s: %d of %d missed", file, missed, len(all))
	}
}

// knownFalse are the benign samples with a finding, and why.
var knownFalse = map[string]string{}

func TestBenignSamples(t *testing.T) {
	r := newRedactor(t)
	for _, file := range []string{"benign.txt", "freshbenign.txt", "thirdbenign.txt"} {
		all, flagged := readSamples(t, file), 0
		for _, s := range all {
			out, findings := r.Redact(s.text)
			if len(findings) > 0 {
				flagged++
			}
			if known := knownFalse[s.name] != ""; len(findings) > 0 != known {
				t.Errorf("%s: %s: found %v, known: %v: %.200q", file, s.name, findings, known, out)
			}
		}
		t.Logf("%s: %d of %d flagged", file, flagged, len(all))
	}
}
