package redact

import (
	"cmp"
	"slices"
	"strings"
)

// span is a candidate: bytes [start, end) that rule wants gone.
type match struct {
	start, end int
	rule       ruleID
}

// resolve orders candidates and makes them disjoint. Those that overlap become one that covers them all, so that no part
// of a value is left over, under the rule of highest precedence. A candidate inside a placeholder is dropped; one that
// cuts a placeholder is widened to cover it. Each span then removes at least one byte that is not of a placeholder, which
// is why repeated scans end.
func (r *Redactor) resolve(text string, matches []match) []match {
	slices.SortFunc(matches, func(a, b match) int { return cmp.Or(a.start-b.start, b.end-a.end, int(a.rule)-int(b.rule)) })
	return r.avoidPlaceholders(text, merge(matches))
}

// merge joins spans, in order, that overlap.
func merge(matches []match) []match {
	merged := matches[:0]
	for _, s := range matches {
		merged = extend(merged, s)
	}
	return merged
}

// extend appends s, or widens the last span where s overlaps it.
func extend(matches []match, s match) []match {
	if n := len(matches); n > 0 && s.start < matches[n-1].end {
		matches[n-1].end = max(matches[n-1].end, s.end)
		matches[n-1].rule = min(matches[n-1].rule, s.rule)
		return matches
	}
	return append(matches, s)
}

func (r *Redactor) avoidPlaceholders(text string, matches []match) []match {
	start, end, ok := r.nextPlaceholder(text, 0)
	storedOriginal := matches[:0]
	for _, s := range matches {
		for ok && end <= s.start {
			start, end, ok = r.nextPlaceholder(text, end)
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
			start, end, ok = r.nextPlaceholder(text, end)
		}
		storedOriginal = extend(storedOriginal, s)
	}
	return storedOriginal
}

// render replaces the spans of text by their placeholders.
func (r *Redactor) render(text string, matches []match) string {
	var b strings.Builder
	b.Grow(len(text) + 8*len(matches))
	at := 0
	for _, s := range matches {
		b.WriteString(text[at:s.start])
		b.WriteString(r.rule(s.rule).Placeholder)
		at = s.end
	}
	b.WriteString(text[at:])
	return b.String()
}

// fold merges more, spans of render(text, spans), into spans, in offsets of text. Since spans of a scan never cut a
// placeholder, each end lies either in text that was kept or at the border of a placeholder.
func (r *Redactor) mergeRounds(matches, more []match) []match {
	all := make([]match, 0, len(matches)+len(more))
	shift, next := 0, 0 // offset in text = offset in the rendering + shift, as far as spans[:next] reach
	place := func(offset int, isEnd bool) int {
		for next < len(matches) {
			s := matches[next]
			width := len(r.rule(s.rule).Placeholder)
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
		all = append(all, match{start: start, end: place(m.end, true), rule: m.rule})
	}
	all = append(all, matches...)
	slices.SortFunc(all, func(a, b match) int { return cmp.Or(a.start-b.start, b.end-a.end, int(a.rule)-int(b.rule)) })
	return merge(all)
}
