package extract

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// Limits of a summary.
const (
	summaryVersion  = 2
	maxSummaryWords = 64  // that are counted
	maxKeywords     = 32  // that relevance is measured by
	maxSentences    = 6   // that are kept
	minSentence     = 20  // characters
	maxSentence     = 240 // characters
)

// Summary is what one conversation is about: its most frequent words and some
// of its sentences, as they were said.
type Summary struct {
	Conversation string
	Keywords     []Keyword // most frequent first
	Sentences    []string  // most characteristic first
	Messages     int       // read so far
	Updated      time.Time
}

// Keyword is a word in lower case without accents, and how often it was said.
type Keyword struct {
	Word  string
	Count int
}

// Add takes in messages that the summary has not seen.
func (s *Summary) Add(messages []Message) {
	r := newReading()
	for i := range messages {
		r.take(&messages[i])
	}
	r.summarise(s)
}

// summarise adds the messages that were taken to s. It writes to none of the
// lists that s had.
func (r *reading) summarise(s *Summary) {
	for _, k := range s.Keywords {
		r.counts[k.Word] += k.Count
	}
	found := slices.Clone(s.Sentences)
	for i := range r.texts {
		m, own := &r.texts[i], &r.own[i]
		for n, line := range text.Sentences(own.text) {
			if n == maxSpans || !m.User && n > 0 { // of an answer the first sentence only
				break
			}
			length := utf8.RuneCountInString(line)
			if length >= minSentence && length <= maxSentence && !looksLikeCode(line) && !(own.mayInstruct() && instructs(line)) &&
				!(!m.User && own.mayOrder() && orders(line)) && !slices.Contains(found, line) {
				found = append(found, line)
			}
		}
		if m.Time.After(s.Updated) {
			s.Updated = m.Time
		}
	}
	s.Messages += len(r.texts)
	s.Sentences = r.characteristic(found)
	s.Keywords = mostFrequent(r.counts)
}

// mostFrequent returns the words that were said most often, in alphabetical
// order where they are equal.
func mostFrequent(counts map[string]int) []Keyword {
	all := make([]Keyword, 0, len(counts))
	for word, n := range counts {
		all = append(all, Keyword{word, n})
	}
	slices.SortFunc(all, func(a, b Keyword) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Word, b.Word))
	})
	all = slices.Clone(all[:min(len(all), maxSummaryWords)])
	for i := range all {
		all[i].Word = strings.Clone(all[i].Word) // the message need not stay in memory for it
	}
	return all
}

// characteristic picks the sentences whose words are said most in the
// conversation, for their length.
func (r *reading) characteristic(found []string) []string {
	type scored struct {
		text  string
		score float64
	}
	all := make([]scored, 0, len(found))
	seen := map[string]bool{}
	for _, sentence := range found {
		sum := 0.0
		clear(seen)
		for w := range eachWord(sentence) {
			if w.isContent() && !seen[w.folded] {
				seen[w.folded] = true
				sum += math.Log1p(float64(r.counts[w.folded]))
			}
		}
		all = append(all, scored{sentence, sum / math.Sqrt(4+float64(len(seen)))})
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	out := make([]string, 0, min(len(all), maxSentences))
	for _, s := range all[:cap(out)] {
		out = append(out, strings.Clone(s.text)) // likewise
	}
	return out
}

// keywords are those that relevance is measured by.
func (s *Summary) keywords() []Keyword { return s.Keywords[:min(len(s.Keywords), maxKeywords)] }

// Size estimates the bytes that the summary takes in memory.
func (s *Summary) Size() int64 {
	n := 128 + len(s.Conversation)
	for _, k := range s.Keywords {
		n += 32 + len(k.Word)
	}
	for _, text := range s.Sentences {
		n += 24 + len(text)
	}
	return int64(n)
}

// storedSummary is the encoded form. Summaries are half of what an audit
// writes, and most words are said once, so words with one count share a string.
type storedSummary struct {
	Version      int
	Conversation string
	Words        []string // "3 cat dog": those that were said three times
	Sentences    []string
	Messages     int
	Updated      int64 // Unix milliseconds
}

// Encode returns the summary's stored form.
func (s *Summary) Encode() []byte {
	out := storedSummary{Version: summaryVersion, Conversation: s.Conversation, Sentences: s.Sentences, Messages: s.Messages, Updated: s.Updated.UnixMilli()}
	byCount := map[int][]string{}
	for _, k := range s.Keywords {
		byCount[k.Count] = append(byCount[k.Count], k.Word)
	}
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(byCount))) {
		out.Words = append(out.Words, strconv.Itoa(n)+" "+strings.Join(byCount[n], " "))
	}
	encoded, _ := json.Marshal(&out) // strings and numbers always encode
	return encoded
}

// DecodeSummary reads what [Summary.Encode] wrote.
func DecodeSummary(value []byte) (*Summary, error) {
	var from storedSummary
	if err := json.Unmarshal(value, &from); err != nil || from.Version != summaryVersion {
		return nil, errors.New("summary is not readable")
	}
	s := &Summary{Conversation: from.Conversation, Sentences: from.Sentences, Messages: from.Messages, Updated: time.UnixMilli(from.Updated).UTC()}
	for _, row := range from.Words {
		count, list, _ := strings.Cut(row, " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			return nil, errors.New("summary is not readable")
		}
		for w := range strings.SplitSeq(list, " ") {
			s.Keywords = append(s.Keywords, Keyword{w, n})
		}
	}
	return s, nil
}
