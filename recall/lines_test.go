package recall

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// A result of lines has everything that a line shows.
func TestLines(t *testing.T) {
	var ms []storage.Memory
	for i := range 60 {
		user := said(i, fmt.Sprintf("My aunt number %d sails her boat near the harbour of town %d.", i, i%7))
		user.Conversation, user.Tags, user.Entities = fmt.Sprint("talk ", i/4), []string{"tag"}, []string{"aunt", "boat"}
		if i%5 == 0 {
			user.Tags = append(user.Tags, storage.OutdatedTag)
		}
		if i%3 == 0 {
			user.Tags = append(user.Tags, storage.PrivateTag)
		}
		user.Provenance.Chain = fmt.Sprintf("%032x", i)
		user.Provenance.Speaker = []string{"", "Mia", "Tom"}[i%3]
		ms = append(ms, user)
		if i%2 == 0 { // repeats what was said, under an id of its own
			fact := user
			fact.ID, fact.Kind, fact.Trust, fact.Version = fmt.Sprint("fact ", i), storage.KindFact, 0.5, 3
			fact.UpdatedAt, fact.ExpiresAt = fact.EventTime+9, fact.EventTime+1<<50
			if i%4 == 0 { // or stands alone
				fact.Provenance.Turn, fact.Provenance.Chain = "", ""
			}
			fact.Text = fmt.Sprintf("The user's aunt %d, who lives in town %d, sails a red boat out of its harbour on Sundays", i, i%7)
			ms = append(ms, fact)
		}
	}
	e, _ := newEngine(t, patient(), ms)
	facts := 0
	for i := range 60 {
		ask := Request{
			Scope: alice, Newest: fmt.Sprintf("Which harbour does my aunt %d sail her boat near, town %d?", i, i%7), NoGate: true,
			TopK: 1 + i%20, BudgetTokens: 100 + 20*i,
		}
		want, err := e.Recall(t.Context(), ask)
		if err != nil || len(want.Memories) == 0 {
			t.Fatalf("%d memories, error %v", len(want.Memories), err)
		}
		for k := range want.Memories {
			m := &want.Memories[k].Memory
			if m.Kind == storage.KindFact {
				facts++
			}
			var tags []string
			for _, tag := range []string{storage.OutdatedTag, storage.PrivateTag} {
				if slices.Contains(m.Tags, tag) {
					tags = append(tags, tag)
				}
			}
			*m = storage.Memory{
				Tags: tags, ID: m.ID, Kind: m.Kind, Text: m.Text, EventTime: m.EventTime,
				Provenance: storage.Provenance{Role: m.Provenance.Role, Speaker: m.Provenance.Speaker},
			}
		}
		ask.Lines = true
		got, err := e.Recall(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		want.Took, got.Took = 0, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-whole +lines):\n%s", ask.Newest, diff)
		}
	}
	if facts == 0 {
		t.Error("no facts were found")
	}
}
