package redact

import (
	"cmp"
	"slices"
	"strings"
)

// match is a candidate: rule applies to bytes [start, end).
type match struct {
	start, end int
	rule       ruleID
}

// resolve sorts candidates and makes them disjoint. Overlapping ones are joined
// under the rule of highest precedence, so that no part of a value remains. A
// candidate inside a placeholder is dropped; one that cuts a placeholder is
// extended over it. Each match then removes at least one byte outside of
// placeholders, so repeated scans end.
func (r *Redactor) resolve(text string, matches []match) []match {
	slices.SortFunc(matches, func(a, b match) int { return cmp.Or(a.start-b.start, b.end-a.end, int(a.rule)-int(b.rule)) })
	return r.avoidPlaceholders(text, merge(matches))
}

// merge joins sorted matches that overlap.
func merge(matches []match) []match {
	merged := matches[:0]
	for _, s := range matches {
		merged = extend(merged, s)
	}
	return merged
}

// extend appends s, or extends the last match if s overlaps it.
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
	kept := matches[:0]
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
		kept = extend(kept, s)
	}
	return kept
}

// render replaces the matches in text by their placeholders.
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

// mergeRounds merges more, which are matches in render(text, matches), into
// matches, with offsets in text. Matches of a scan never cut a placeholder, so
// each end is in text that was kept or at the border of a placeholder.
func (r *Redactor) mergeRounds(matches, more []match) []match {
	all := make([]match, 0, len(matches)+len(more))
	shift, next := 0, 0 // offset in text = offset in the rendering + shift, up to matches[:next]
	place := func(offset int, isEnd bool) int {
		for next < len(matches) {
			s := matches[next]
			width := len(r.rule(s.rule).Placeholder)
			at := s.start - shift // start of the placeholder in the rendering
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

// Limits of a placeholder's name, in bytes.
const (
	minPlaceholder = 2
	maxPlaceholder = 19
)

// placeholderForm returns the length of text in the form of a placeholder at i,
// 0 if there is none.
func placeholderForm(text string, i int) int {
	if text[i] != '[' {
		return 0
	}
	end := i + 1
	for end < len(text) && end-i <= maxPlaceholder+1 && (text[end] >= 'A' && text[end] <= 'Z' || text[end] == '_') {
		end++
	}
	if name := end - i - 1; end == len(text) || text[end] != ']' || name < minPlaceholder || name > maxPlaceholder {
		return 0
	}
	return end + 1 - i
}

// placeholderAt returns the length of the placeholder of a rule at i, 0 if
// there is none.
func (r *Redactor) placeholderAt(text string, i int) int {
	if n := placeholderForm(text, i); n > 0 && r.placeholders[text[i:i+n]] {
		return n
	}
	return 0
}

// nextPlaceholder returns the first placeholder at or after from.
func (r *Redactor) nextPlaceholder(text string, from int) (start, end int, ok bool) {
	for from < len(text) {
		i := strings.IndexByte(text[from:], '[')
		if i < 0 {
			break
		}
		from += i
		if n := r.placeholderAt(text, from); n > 0 {
			return from, from + n, true
		}
		from++
	}
	return 0, 0, false
}
