package persist

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/remora-proxy/remora/storage"
)

// Bounds of a summary.
const (
	summaryVersion   = 2
	summaryWords     = 64 // counted
	summaryKeywords  = 32 // that relevance is measured by
	summarySentences = 6
	summarySentence  = 240 // characters
)

// Summary is what one conversation is about: its commonest words and some of its sentences, as they were said.
type Summary struct {
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

// storedSummary is a summary as bytes. They are half of what an audit writes, for most words are said once.
type storedSummary struct {
	Version      int
	Conversation string
	Words        []string // "3 cat dog": those that were said three times
	Sentences    []string
	Messages     int
	Updated      storage.Time
}

func (s *Summary) encode() []byte {
	out := storedSummary{Version: summaryVersion, Conversation: s.Conversation, Sentences: s.Sentences, Messages: s.Messages, Updated: s.Updated}
	var b []byte
	for i, k := range s.Keywords {
		if i == 0 || k.Count != s.Keywords[i-1].Count {
			b = strconv.AppendInt(b[:0], int64(k.Count), 10)
		}
		b = append(append(b, ' '), k.Word...)
		if i+1 == len(s.Keywords) || k.Count != s.Keywords[i+1].Count {
			out.Words = append(out.Words, string(b))
		}
	}
	encoded, _ := json.Marshal(&out) // nothing in it can't be encoded
	return encoded
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

// read takes in messages that it has not seen: r.fresh, with their own words, which were counted in r.said. What s had before is
// not written to.
func (s *Summary) read(r *reading) {
	for _, k := range s.Keywords {
		r.said.add(k.Word, k.Count)
	}
	found := append(r.sentences[:0], s.Sentences...)
	for i := range r.fresh {
		m, own := &r.fresh[i], &r.own[i]
		for n, line := range sentences(own.text) {
			if n == maxSpans || !m.user && n > 0 { // of an answer its first sentence
				break
			}
			length := utf8.RuneCountInString(line)
			if length >= 20 && length <= summarySentence && !looksLikeCode(line) && !(own.mayInstruct() && instructs(line)) &&
				!(!m.user && own.mayOrder() && orders(line)) && !slices.Contains(found, line) {
				found = append(found, line)
			}
		}
		s.Updated = max(s.Updated, storage.TimeOf(m.at))
	}
	s.Messages += len(r.fresh)
	s.Sentences = r.telltales(found)
	s.Keywords = r.commonest(summaryWords)
	r.sentences = found
}

// rank is a word of r.said.list by what it is sorted by: how often it was said, and its first letters.
type rank struct {
	key   uint64
	place int
}

// commonest are the words that were said most, of as many those that come first in the alphabet.
func (r *reading) commonest(most int) []Keyword {
	const letters, often = 5, 1<<24 - 1
	list, ranked := r.said.list, r.ranked[:0]
	for i, k := range list {
		key := uint64(often-min(k.Count, often)) << (8 * letters)
		for at := range min(len(k.Word), letters) {
			key |= uint64(k.Word[at]) << (8 * (letters - 1 - at))
		}
		ranked = append(ranked, rank{key, i})
	}
	slices.SortFunc(ranked, func(a, b rank) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		x, y := &list[a.place], &list[b.place]
		if x.Count != y.Count {
			return y.Count - x.Count
		}
		return strings.Compare(x.Word, y.Word)
	})
	r.ranked = ranked
	out := make([]Keyword, 0, min(len(ranked), most))
	for _, k := range ranked[:cap(out)] {
		out = append(out, list[k.place])
	}
	return out
}

// telltales picks the sentences whose words are most of what is talked about, r.said, for their length.
func (r *reading) telltales(found []string) []string {
	type scored struct {
		text  string
		score float64
	}
	var space [4 * summarySentences]scored
	all := space[:0]
	r.seen = append(r.seen[:0], make([]int, len(r.said.list))...)
	for n, text := range found {
		sum, distinct := 0.0, 0
		var other []string // words that are too rare by now
		for w := range eachWord(text) {
			if !w.telling() {
				continue
			}
			if i, ok := r.said.at[w.folded]; ok && r.seen[i] <= n {
				r.seen[i] = n + 1
				sum += math.Log1p(float64(r.said.list[i].Count))
				distinct++
			} else if !ok && !slices.Contains(other, w.folded) {
				other = append(other, w.folded)
				distinct++
			}
		}
		all = append(all, scored{text, sum / math.Sqrt(4+float64(distinct))})
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

func decodeSummary(value []byte) (*Summary, error) {
	var from storedSummary
	if err := json.Unmarshal(value, &from); err != nil || from.Version != summaryVersion {
		return nil, errors.New("summary is not readable")
	}
	s := &Summary{Conversation: from.Conversation, Sentences: from.Sentences, Messages: from.Messages, Updated: from.Updated}
	for _, said := range from.Words {
		often, list, _ := strings.Cut(said, " ")
		n, err := strconv.Atoi(often)
		if err != nil {
			return nil, errors.New("summary is not readable")
		}
		for w := range strings.SplitSeq(list, " ") {
			s.Keywords = append(s.Keywords, Keyword{w, n})
		}
	}
	return s, nil
}
