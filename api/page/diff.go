package page

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/remora-proxy/remora/api"
)

// change is a change of a memory as a difference.
type change struct {
	api.Change
	Text   []edit // nil = the text stayed
	Fields []field
}

// edit is a part of a text before and after a change.
type edit struct {
	Op   string // ins, del or same
	Text string
}

// field is what else a change has changed.
type field struct{ Name, Before, After string }

// differences turns a history, the newest change first, into what each change
// changed.
func differences(h api.History) []change {
	out := make([]change, 0, len(h.Changes))
	after := &h.Memory
	for _, one := range h.Changes {
		d := change{Change: one}
		if before := one.Before; before != nil {
			if before.Text != after.Text {
				d.Text = editsOf(before.Text, after.Text)
			}
			for _, f := range [...]field{
				{"tags", strings.Join(before.Tags, ", "), strings.Join(after.Tags, ", ")},
				{"state", before.State, after.State},
				{"priority", decimal(before.Priority), decimal(after.Priority)},
			} {
				if f.Before != f.After {
					d.Fields = append(d.Fields, f)
				}
			}
			after = before
		}
		out = append(out, d)
	}
	return out
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

var editOps = map[diffmatchpatch.Operation]string{diffmatchpatch.DiffInsert: "ins", diffmatchpatch.DiffDelete: "del", diffmatchpatch.DiffEqual: "same"}

func editsOf(before, after string) (out []edit) {
	d := diffmatchpatch.New()
	for _, part := range d.DiffCleanupSemantic(d.DiffMain(before, after, false)) {
		out = append(out, edit{editOps[part.Type], part.Text})
	}
	return out
}

// maxWords bounds the words that are compared. In longer texts characters are.
const maxWords = 6000

// wordEdits returns the difference of two texts in whole words.
func wordEdits(before, after string) (out []edit) {
	const first = 0xE000 // of a range without characters, for more than maxWords
	var words []string
	codes := map[string]rune{}
	encode := func(text string) (coded []rune) {
		for _, word := range wordsOf(text) {
			code, ok := codes[word]
			if !ok {
				code = first + rune(len(words))
				codes[word] = code
				words = append(words, word)
			}
			coded = append(coded, code)
		}
		return coded
	}
	a, b := encode(before), encode(after)
	if len(words) > maxWords {
		return editsOf(before, after)
	}
	d := diffmatchpatch.New()
	for _, part := range d.DiffCleanupSemantic(d.DiffMainRunes(a, b, false)) {
		var text strings.Builder
		for _, code := range part.Text {
			text.WriteString(words[code-first])
		}
		out = append(out, edit{editOps[part.Type], text.String()})
	}
	return out
}

// wordsOf takes a text apart into words and what is between them. Together they
// are the text.
func wordsOf(text string) (out []string) {
	inWord := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '\'' || r == '’'
	}
	start, within := 0, false
	for i, r := range text {
		if i > start && !(within && inWord(r)) {
			out = append(out, text[start:i])
			start = i
		}
		within = inWord(r)
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}
