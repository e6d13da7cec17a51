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

// telling says whether a word says something. Of Chinese and Japanese no character is left out but kana and those that are in
// every other sentence.
func (w *word) telling() bool {
	f := w.folded
	if len(f) == 3 && f[0] >= 0xe3 && f[0] <= 0xe9 {
		if r, _ := utf8.DecodeRuneInString(f); ideograph(r) {
			return r >= 0x3400 && !strings.ContainsRune(commonIdeographs, r)
		}
	}
	return !w.in(inStop) && (len(f) > 2 || len(f) > 1 && f[0] >= utf8.RuneSelf) && (f[0] >= 'a' || strings.Trim(f, "0123456789.,-") != "")
}

// read takes in messages that it has not seen.
func (s *Summary) read(ms []windowMessage, r *reading) {
	r.said.reset()
	for i := range ms {
		r.said.read(ownWords(ms[i].text))
	}
	s.readCounted(ms, r)
}

// readCounted is read where the messages' words have been counted, in r.said. What s had before is not written to.
func (s *Summary) readCounted(ms []windowMessage, r *reading) {
	all := &r.all
	all.reset()
	for _, k := range s.Keywords {
		all.add(k.Word, k.Count)
	}
	for _, k := range r.said.list {
		all.add(k.Word, k.Count)
	}
	found := append(r.sentences[:0], s.Sentences...)
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
	s.Sentences = r.telltales(found)
	slices.SortFunc(all.list, func(a, b Keyword) int { // from here on all can't be looked up
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Word, b.Word)
	})
	s.Keywords = slices.Clone(all.list[:min(len(all.list), summaryWords)])
	r.sentences = found
}

// telltales picks the sentences whose words are most of what is talked about, r.all, for their length.
func (r *reading) telltales(found []string) []string {
	type scored struct {
		text  string
		score float64
	}
	var space [4 * summarySentences]scored
	all := space[:0]
	for _, text := range found {
		r.own.reset()
		r.own.read(text)
		sum := 0.0
		for _, k := range r.own.list {
			sum += math.Log1p(float64(r.all.of(k.Word)))
		}
		all = append(all, scored{text, sum / math.Sqrt(4+float64(len(r.own.list)))})
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	out := make([]string, 0, min(len(all), summarySentences))
	for _, s := range all[:min(len(all), summarySentences)] {
		out = append(out, s.text)
	}
	return out
}

// keywords are those that relevance is measured by.
func (s *Summary) keywords() []string {
	out := make([]string, 0, min(len(s.Keywords), summaryKeywords))
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
