package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/api"
)

func TestDifferences(t *testing.T) {
	first := api.Memory{Text: "I live in Lyon", Tags: []string{"home"}, State: "current", Priority: .5}
	second, third := first, first
	second.Text = "I live in Paris"
	third.Text, third.Tags, third.State, third.Priority = second.Text, []string{"home", "pinned"}, "quarantined", .75
	got := differences(api.History{Memory: third, Changes: []api.Change{{Op: "edit", Before: &second}, {Op: "undo", Before: &first}, {Op: "created"}}})
	want := []change{
		{Change: got[0].Change, Fields: []field{{"tags", "home", "home, pinned"}, {"state", "current", "quarantined"}, {"priority", "0.50", "0.75"}}},
		{Change: got[1].Change, Text: []edit{{"same", "I live in "}, {"del", "Lyon"}, {"ins", "Paris"}}},
		{Change: got[2].Change},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWordEdits(t *testing.T) {
	for _, test := range []struct {
		before, after string
		want          []edit
	}{
		{"", "", nil},
		{"I live in Lyon.", "I live in Lyon.", []edit{{"same", "I live in Lyon."}}},
		{"My colour is green.", "My colour is blue.", []edit{{"same", "My colour is "}, {"del", "green"}, {"ins", "blue"}, {"same", "."}}},
		{"I can't swim", "I can swim", []edit{{"same", "I "}, {"del", "can't"}, {"ins", "can"}, {"same", " swim"}}},
		{"日本", "日本語", []edit{{"del", "日本"}, {"ins", "日本語"}}},
	} {
		if diff := cmp.Diff(test.want, wordEdits(test.before, test.after)); diff != "" {
			t.Errorf("%q and %q: %s", test.before, test.after, diff)
		}
	}
	long := func(prefix string) string {
		var b strings.Builder
		for i := range maxWords {
			fmt.Fprintf(&b, "%s%d ", prefix, i)
		}
		return b.String()
	}
	var before, after strings.Builder
	for _, e := range wordEdits(long("a"), long("b")) {
		if e.Op != "ins" {
			before.WriteString(e.Text)
		}
		if e.Op != "del" {
			after.WriteString(e.Text)
		}
	}
	if before.String() != long("a") || after.String() != long("b") {
		t.Error("the difference of long texts is not that of the texts")
	}
}

func FuzzWordEdits(f *testing.F) {
	f.Add("I live in Lyon", "I lived in Zürich\x80")
	f.Fuzz(func(t *testing.T, before, after string) {
		if got := strings.Join(wordsOf(before), ""); got != before {
			t.Fatalf("the words of %q are those of %q", before, got)
		}
		var a, b strings.Builder
		for _, e := range wordEdits(before, after) {
			if e.Op != "ins" {
				a.WriteString(e.Text)
			}
			if e.Op != "del" {
				b.WriteString(e.Text)
			}
		}
		if a.String() != before || b.String() != after {
			t.Fatalf("%q and %q became %q and %q", before, after, a.String(), b.String())
		}
	})
}
