package persist

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/remora-proxy/remora/storage"
)

// Bounds of a summary.
const (
	summaryVersion   = 1
	summaryWords     = 64 // counted
	summaryKeywords  = 32 // that relevance is measured by
	summarySentences = 6
	summarySentence  = 240 // characters
)

// Summary is what one conversation is about: its commonest words and some of its sentences, as they were said.
type Summary struct {
	Version      int
	Conversation string
	Keywords     []Keyword // most frequent first
	Sentences    []string  // most telling first
	Messages     int       // read so far
	Updated      storage.Time
}

// Keyword is a word in small letters without accents, and how often it was said.
type Keyword struct {
	Word  string
	Count int
}

// wordCounts counts the words that say something.
func wordCounts(into map[string]int, text string) {
	for _, w := range words(text) {
		if telling(w.folded) {
			into[w.folded]++
		}
	}
}

func telling(w string) bool {
	return !lexicon.stop[w] && (len(w) > 2 || len(w) > 1 && w[0] >= utf8.RuneSelf) && strings.Trim(w, "0123456789.,-") != ""
}

// read takes in messages that it has not seen.
func (s *Summary) read(ms []windowMessage) {
	said := make(map[string]int, summaryWords)
	for i := range ms {
		wordCounts(said, ownWords(ms[i].text))
	}
	s.readCounted(ms, said)
}

// readCounted is read where the messages' words have been counted.
func (s *Summary) readCounted(ms []windowMessage, said map[string]int) {
	counts := make(map[string]int, summaryWords)
	for _, k := range s.Keywords {
		counts[k.Word] = k.Count
	}
	for w, n := range said {
		counts[w] += n
	}
	found := slices.Clone(s.Sentences)
	for i := range ms {
		text := ownWords(ms[i].text)
		for n, line := range sentences(text) {
			if n == maxSpans || !ms[i].user && n > 0 { // of an answer its first sentence
				break
			}
			length := utf8.RuneCountInString(line)
			if length >= 20 && length <= summarySentence && !looksLikeCode(line) && !instructs(line) && (ms[i].user || !orders(line)) && !slices.Contains(found, line) {
				found = append(found, line)
			}
		}
		s.Updated = max(s.Updated, storage.TimeOf(ms[i].at))
	}
	s.Messages += len(ms)
	s.Keywords = s.Keywords[:0]
	for w, n := range counts {
		s.Keywords = append(s.Keywords, Keyword{w, n})
	}
	slices.SortFunc(s.Keywords, func(a, b Keyword) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Word, b.Word))
	})
	s.Keywords = slices.Clone(s.Keywords[:min(len(s.Keywords), summaryWords)])
	s.Sentences = telltales(found, counts)
}

// telltales picks the sentences whose words are most of what is talked about, for their length.
func telltales(found []string, counts map[string]int) []string {
	type scored struct {
		text  string
		score float64
	}
	all := make([]scored, 0, len(found))
	for _, text := range found {
		own := map[string]int{}
		wordCounts(own, text)
		sum := 0.0
		for w := range own {
			sum += math.Log1p(float64(counts[w]))
		}
		all = append(all, scored{text, sum / math.Sqrt(4+float64(len(own)))})
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	out := make([]string, 0, summarySentences)
	for _, s := range all[:min(len(all), summarySentences)] {
		out = append(out, s.text)
	}
	return out
}

// keywords are those that relevance is measured by.
func (s *Summary) keywords() []string {
	out := make([]string, 0, summaryKeywords)
	for _, k := range s.Keywords[:min(len(s.Keywords), summaryKeywords)] {
		out = append(out, k.Word)
	}
	return out
}

// size is what the summary takes in memory, about.
func (s *Summary) size() int64 {
	n := 128 + len(s.Conversation)
	for _, k := range s.Keywords {
		n += 32 + len(k.Word)
	}
	for _, text := range s.Sentences {
		n += 24 + len(text)
	}
	return int64(n)
}

func (s *Summary) encode() ([]byte, error) {
	s.Version = summaryVersion
	return json.Marshal(s)
}

func decodeSummary(value []byte) (*Summary, error) {
	var s Summary
	if err := json.Unmarshal(value, &s); err != nil || s.Version != summaryVersion {
		return nil, errors.New("summary is not readable")
	}
	return &s, nil
}
