package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// boundedByAnother finds that another setting is what a number may be at most.
var boundedByAnother = regexp.MustCompile(`(\.\.|and |at most |<= )[a-z]+[A-Za-z.]* \(`)

// TestDocumentedBounds: what the documentation says that a number may be, of itself or of its kind, it may be, and no more.
func TestDocumentedBounds(t *testing.T) {
	table := defaultConfig()
	for i, s := range table.settings() {
		kind := map[string]int64{"integer": mostInteger, "bytes": mostBytes, "number": mostNumber}[s.at.kind()]
		if kind == 0 {
			continue
		}
		refusals := func(n int64) (own []string, all problems) {
			c := defaultConfig()
			c.embeddings.URL, c.embeddings.Model = "http://127.0.0.1:1", "m" // or their bounds are not looked at
			c.distill.URL, c.distill.Model = "http://127.0.0.1:1", "m"
			rows := c.settings()
			if err := rows[i].at.parse(strconv.FormatInt(n, 10)); err != nil {
				t.Fatalf("%s: %v", s.key, err)
			}
			l := loader{origins: map[string]string{}}
			l.tooLarge(rows)
			c.settle(machine())
			c.validate(&l.found, l.origins)
			for _, p := range l.found {
				if p.key == s.key && !boundedByAnother.MatchString(p.what) {
					own = append(own, p.what)
				}
			}
			return own, l.found
		}
		told := s.to
		if told == 0 {
			told = s.most
		}
		if told == 0 {
			told = kind
		}
		if own, _ := refusals(told); len(own) > 0 {
			t.Errorf("%s: %d is told, and refused: %v", s.key, told, own)
		}
		if _, all := refusals(told + 1); len(all) == 0 {
			t.Errorf("%s: %d is more than is told, and taken", s.key, told+1)
		}
		if s.from == 0 {
			continue
		}
		if own, _ := refusals(s.from); len(own) > 0 {
			t.Errorf("%s: %d is told, and refused: %v", s.key, s.from, own)
		}
		if _, all := refusals(s.from - 1); len(all) == 0 {
			t.Errorf("%s: %d is less than is told, and taken", s.key, s.from-1)
		}
	}
}

func TestBoundsAreSentences(t *testing.T) {
	docs := map[string]string{}
	c := defaultConfig()
	for _, s := range c.settings() {
		docs[s.key] = s.doc
	}
	for key, want := range map[string]string{
		"limits.bodyBytes": " 1 KiB to 1 GiB.", "limits.headerBytes": " At most 16 MiB.", "persist.facts.maxCharacters": " 64 to 1,024.",
		"persist.audit.keepRecords": " At most 10,000.", "distill.tokensPerDay": " At most 1,000,000,000,000.", "recall.weights.user": " 0 to 100.",
		"recall.topK": "(1 to 100).", "persist.queueTurns": "dropped and counted.",
	} {
		if !strings.HasSuffix(docs[key], want) {
			t.Errorf("%s: got %q, want %q at its end", key, docs[key], want)
		}
	}
}
