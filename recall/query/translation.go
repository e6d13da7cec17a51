package query

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/remora-proxy/remora/text"
)

//go:embed translated.txt
var translatedText string

// Translation is the stem of a word in another language.
type Translation struct {
	Stem     string
	Language text.Language
}

// Translations returns the stems that mean in other languages what stem means
// in its own.
func Translations(stem string, in text.Language) []Translation {
	return translations()[Translation{stem, in}]
}

// translations maps the stems of each language to those in the others.
var translations = sync.OnceValue(func() map[Translation][]Translation {
	m := map[Translation][]Translation{}
	columns := [...]text.Language{text.English, text.German, text.French, text.Spanish, text.Italian, text.Portuguese, text.Dutch}
	for line := range strings.Lines(translatedText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var all []Translation
		for i, column := range strings.Split(line, "|") {
			for w := range strings.FieldsSeq(strings.ToLower(column)) {
				if t := (Translation{text.Stem(columns[i], w), columns[i]}); !slices.Contains(all, t) {
					all = append(all, t)
				}
			}
		}
		for _, from := range all {
			for _, to := range all {
				if to.Language != from.Language && !slices.Contains(m[from], to) {
					m[from] = append(m[from], to)
				}
			}
		}
	}
	return m
})
