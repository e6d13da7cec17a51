package page

import (
	"reflect"
	"testing"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/receipt"
)

func TestBarsOf(t *testing.T) {
	want := []bar{
		{Name: "said by the user", Term: "boat", Value: 2, Share: 1},
		{Name: "alike in meaning", Value: 0.5, Share: 0.25},
		{Name: "about the user", Value: 1.1, Factor: true},
		{Name: "unheard", Term: "of", Value: 1, Share: 0.5},
	}
	ofSearch := []api.Part{{Name: recall.PartUser, Term: "boat", Value: 2}, {Name: recall.PartVector, Value: 0.5}, {Name: recall.PartFirstPerson, Value: 1.1}, {Name: "unheard", Term: "of", Value: 1}}
	var ofReceipt []receipt.Part
	for _, p := range ofSearch {
		ofReceipt = append(ofReceipt, receipt.Part(p))
	}
	for name, parts := range map[string]any{"search": ofSearch, "receipt": ofReceipt} {
		if got := barsOf(parts); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestBlockLines(t *testing.T) {
	text := "<x>\n- one\n- two,\n  longer\n</x>\n"
	spans := []fence.Span{{ID: "a", Start: 4, End: 10}, {ID: "b", Start: 10, End: 26}}
	want := []blockLine{{Text: "<x>"}, {Text: "- one", ID: "a"}, {Text: "- two,", ID: "b"}, {Text: "  longer", ID: "b"}, {Text: "</x>"}}
	if got := blockLines(text, spans); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
