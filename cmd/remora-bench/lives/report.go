package lives

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// tally is how many questions pass.
type tally struct{ passed, asked int }

func (t *tally) add(ok bool) {
	if t.asked++; ok {
		t.passed++
	}
}

func (t *tally) share() string { return cli.Number(float64(t.passed) / float64(t.asked)).Text(3) }

// report prints the score: by kind, by language, and in one line.
func report(w io.Writer, answers []answer) {
	var all tally
	byKind, byLang, byVerdict := map[string]*tally{}, map[string]*tally{}, map[string]int{}
	var blocks []int
	lines, help := 0, 0
	add := func(to map[string]*tally, key string, ok bool) {
		if to[key] == nil {
			to[key] = &tally{}
		}
		to[key].add(ok)
	}
	for i := range answers {
		a := &answers[i]
		ok := a.Verdict == pass
		all.add(ok)
		add(byKind, a.Kind, ok)
		add(byLang, a.Lang, ok)
		byVerdict[a.Verdict]++
		if len(a.Block) > 0 {
			blocks = append(blocks, a.Tokens)
		}
		if len(a.Want) > 0 {
			lines += len(a.Block)
			help += a.Help
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var short []string
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		k := byKind[kind]
		fmt.Fprintf(t, "%s %s\t%d/%d\t%s\n", kind, kinds[kind], k.passed, k.asked, k.share())
		short = append(short, fmt.Sprintf("%s %d/%d", kind, k.passed, k.asked))
	}
	for _, lang := range slices.Sorted(maps.Keys(byLang)) {
		l := byLang[lang]
		fmt.Fprintf(t, "%s\t%d/%d\t%s\n", lang, l.passed, l.asked, l.share())
	}
	_ = t.Flush() // of what is printed
	slices.Sort(blocks)
	median := 0
	if len(blocks) > 0 {
		median = blocks[len(blocks)/2]
	}
	fmt.Fprintf(w, "lives: %d/%d = %s pass; %s; miss %d stale %d wrong %d false injection %d; lines that help %d/%d = %s; tokens per block (median of %d) %d\n",
		all.passed, all.asked, all.share(), strings.Join(short, " "), byVerdict[miss], byVerdict[stale], byVerdict[wrong], byVerdict[uncalled],
		help, lines, cli.Number(float64(help)/float64(max(lines, 1))).Text(3), len(blocks), median)
}
