package extract

import (
	"reflect"
	"testing"
	"time"
)

// TestSummaryBytes checks that a summary is decoded as it was encoded.
func TestSummaryBytes(t *testing.T) {
	for _, s := range []Summary{
		{},
		{Conversation: "c", Keywords: []Keyword{{"alone", 1}}, Sentences: []string{"Alone it is."}, Messages: 1, Updated: time.UnixMilli(5).UTC()},
		{Conversation: "c", Keywords: []Keyword{{"cat", 12}, {"dog", 3}, {"über", 3}, {"猫", 1}, {"x-1.5", 1}}, Messages: 7},
	} {
		got, err := DecodeSummary(s.Encode())
		if err != nil || !reflect.DeepEqual(*got, s) {
			t.Errorf("%+v: got %+v, %v", s, got, err)
		}
	}
	for _, damaged := range []string{"", "{}", `{"Version":1}`, `{"Version":2,"Words":["many cats"]}`} {
		if got, err := DecodeSummary([]byte(damaged)); err == nil {
			t.Errorf("%q: got %+v, want an error", damaged, got)
		}
	}
}
