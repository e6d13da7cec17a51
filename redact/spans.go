package redact

import (
	"cmp"
	"slices"
	"strings"
)

// span is a candidate: bytes [start, end) that rule wants gone.
type span struct {
	start, end int
	rule       ruleID
}

// resolve orders candidates and makes them disjoint. Those that overlap become one that covers them all, so that no part
// of a value is left over, under the rule of highest precedence. A candidate inside a placeholder is dropped; one that
// cuts a placeholder is widened to cover it. Each span then removes at least one byte that is not of a placeholder, which
// is why repeated scans end.
func resolve(text string, spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.start-b.start, b.end-a.end, int(a.rule)-int(b.rule)) })
	merged := spans[:0]
	for _, s := range spans {
		if n := len(merged); n > 0 && s.start < merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, s.end)
			merged[n-1].rule = min(merged[n-1].rule, s.rule)
			continue
		}
		merged = append(merged, s)
	}
	return clearOfPlaceholders(text, merged)
}

func clearOfPlaceholders(text string, spans []span) []span {
	start, end, ok := nextPlaceholder(text, 0)
	kept := spans[:0]
	for _, s := range spans {
		for ok && end <= s.start {
			start, end, ok = nextPlaceholder(text, end)
		}
		inside := ok && start <= s.start && s.end <= end
		if inside {
			continue
		}
		if ok && start < s.start {
			s.start = start
		}
		for ok && start < s.end {
			s.end = max(s.end, end)
			start, end, ok = nextPlaceholder(text, end)
		}
		if n := len(kept); n > 0 && s.start < kept[n-1].end {
			kept[n-1].end = max(kept[n-1].end, s.end)
			kept[n-1].rule = min(kept[n-1].rule, s.rule)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// render replaces the spans of text by their placeholders.
func render(text string, spans []span) string {
	var b strings.Builder
	b.Grow(len(text) + 8*len(spans))
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s.start])
		b.WriteString(rules[s.rule].placeholder)
		at = s.end
	}
	b.WriteString(text[at:])
	return b.String()
}

// fold merges more, spans of render(text, spans), into spans, in offsets of text. Since spans of a scan never cut a
// placeholder, each end lies either in text that was kept or at the border of a placeholder.
func fold(spans, more []span) []span {
	all := make([]span, 0, len(spans)+len(more))
	shift, next := 0, 0 // offset in text = offset in the rendering + shift, as far as spans[:next] reach
	place := func(offset int, isEnd bool) int {
		for next < len(spans) {
			s := spans[next]
			width := len(rules[s.rule].placeholder)
			at := s.start - shift // where the placeholder begins in the rendering
			if offset < at || offset == at || isEnd && offset < at+width {
				break
			}
			shift += s.end - s.start - width
			next++
		}
		return offset + shift
	}
	for _, m := range more {
		start := place(m.start, false)
		all = append(all, span{start: start, end: place(m.end, true), rule: m.rule})
	}
	all = append(all, spans...)
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(a.start-b.start, b.end-a.end, int(a.rule)-int(b.rule)) })
	merged := all[:0]
	for _, s := range all {
		if n := len(merged); n > 0 && s.start < merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, s.end)
			merged[n-1].rule = min(merged[n-1].rule, s.rule)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}
