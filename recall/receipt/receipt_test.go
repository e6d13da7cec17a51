package receipt

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

var alice = storage.Scope{Tenant: "t", App: "a", Project: "p", User: "alice"}

func userScope(name string) storage.Scope {
	s := alice
	s.User = name
	return s
}

// blockOf returns a block with a line for each id, whose text names it.
func blockOf(ids ...string) fence.Block {
	var lines []fence.Line
	for _, id := range ids {
		lines = append(lines, fence.Line{ID: id, Who: "user", Text: "words of " + id, Time: 1_700_000_000_000})
	}
	return fence.Render("00112233aabbccdd", lines, fence.Options{})
}

// inserted returns an insertion of a block.
func inserted(replayed bool, ids ...string) Insertion {
	b := blockOf(ids...)
	return Insertion{Placement: "beforeUser", Message: 2, Offset: 40, Replayed: replayed, Text: b.Text, Spans: b.Spans}
}

func encoded(t *testing.T, r Receipt) []byte {
	t.Helper()
	value, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func idSet(ids ...string) map[string]struct{} {
	out := map[string]struct{}{}
	for _, id := range ids {
		out[id] = struct{}{}
	}
	return out
}

// TestForget takes memories out of receipts and looks for their words in the
// bytes that are left.
func TestForget(t *testing.T) {
	full := func() Receipt {
		return Receipt{
			Version: version, ID: "x1", At: 7, Status: "injected", Query: "what about it?",
			Inserted: []Insertion{inserted(true, "m1", "m2", "m3"), inserted(false, "m4")},
			Candidates: []Candidate{
				{ID: "m4", Inserted: true, Score: 3, Parts: []Part{{Name: "user", Term: "words", Value: 1}}}, {ID: "m5", Reason: "gate", Score: 1}, {ID: "m6", Reason: "policy"},
			},
			Usage: Usage{Input: 10, Added: 5}, Times: Times{Total: 9},
		}
	}
	all := []string{"m1", "m2", "m3", "m4", "m5", "m6"}
	for _, tt := range []struct {
		name string
		gone []string
		want []string // the memories that still stand in it
	}{
		{"the first of a block", []string{"m1"}, []string{"m2", "m3", "m4", "m5", "m6"}},
		{"one in the middle", []string{"m2"}, []string{"m1", "m3", "m4", "m5", "m6"}},
		{"a whole block", []string{"m1", "m2", "m3"}, []string{"m4", "m5", "m6"}},
		{"a block of one, and its candidate", []string{"m4"}, []string{"m1", "m2", "m3", "m5", "m6"}},
		{"a candidate that was turned down", []string{"m6"}, []string{"m1", "m2", "m3", "m4", "m5"}},
		{"with others that it does not have", []string{"m7", "m5", "n"}, []string{"m1", "m2", "m3", "m4", "m6"}},
		{"all", all, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := full()
			value, changed := Forget(encoded(t, before), idSet(tt.gone...))
			if !changed {
				t.Fatal("nothing has changed")
			}
			for _, id := range tt.gone {
				if strings.Contains(string(value), "words of "+id) || strings.Contains(string(value), `"`+id+`"`) {
					t.Errorf("%s still stands in %s", id, value)
				}
			}
			got, err := Decode(&storage.Record{Scope: alice, Value: value})
			if err != nil {
				t.Fatal(err)
			}
			stands := idSet()
			for i := range got.Inserted {
				for id, line := range got.Inserted[i].Lines() {
					if stands[id] = struct{}{}; !strings.HasSuffix(line, "words of "+id) {
						t.Errorf("the line of %s is %q", id, line)
					}
				}
				if in := got.Inserted[i]; len(in.Spans) > 0 && !fence.Contains(in.Text) || len(in.Spans) == 0 && in.Text != "" {
					t.Errorf("what is left is no block: %q", in.Text)
				}
			}
			for _, c := range got.Candidates {
				stands[c.ID] = struct{}{}
			}
			if diff := cmp.Diff(idSet(tt.want...), stands); diff != "" {
				t.Errorf("what stands (-want +got):\n%s", diff)
			}
			// All else stays.
			got.Inserted, got.Candidates, got.Scope = nil, nil, storage.Scope{}
			before.Inserted, before.Candidates = nil, nil
			if diff := cmp.Diff(before, got); diff != "" {
				t.Errorf("the rest (-want +got):\n%s", diff)
			}
		})
	}
	other := full()
	other.Version = version + 1
	for name, value := range map[string][]byte{
		"without them": encoded(t, Receipt{Version: version, Inserted: []Insertion{inserted(false, "m8")}, Candidates: []Candidate{{ID: "m9"}}}),
		"the uses":     []byte(`{"m1":{"n":2,"t":3}}`),
		"no JSON":      []byte(`{"m1`),
		"of a later":   encoded(t, other),
	} {
		if got, changed := Forget(value, idSet(all...)); changed || string(got) != string(value) {
			t.Errorf("%s: got changed %t, %s, want it as it was", name, changed, got)
		}
	}
}

// TestForgetQuestion takes what was said in some exchanges out of receipts, also
// where it is the term of a score, and nothing of the others.
func TestForgetQuestion(t *testing.T) {
	said := Receipt{
		Version: version, ID: "x1", Status: "injected", Conversation: "c1", Turn: "t1", Query: "what of the canary?", Inserted: []Insertion{inserted(false, "m1")},
		Candidates: []Candidate{{ID: "m1", Score: 2, Inserted: true, Parts: []Part{{Name: "user", Term: "canari", Value: 2}}}, {ID: "m2", Reason: "gate"}},
		Usage:      Usage{Input: 3},
	}
	is := func(conversation string) func(*Receipt) bool {
		return func(r *Receipt) bool { return r.Conversation == conversation }
	}
	value, changed := ForgetQuestion(encoded(t, said), is("c1"))
	if !changed || strings.Contains(string(value), "canar") {
		t.Errorf("got changed %t, %s", changed, value)
	}
	got, err := Decode(&storage.Record{Value: value})
	if err != nil {
		t.Fatal(err)
	}
	want := said
	want.Query, want.Candidates = "", []Candidate{{ID: "m1", Score: 2, Inserted: true}, {ID: "m2", Reason: "gate"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	other := said
	other.Version++
	for name, value := range map[string][]byte{"another's": encoded(t, Receipt{Version: version, Query: "q", Conversation: "c2"}), "one without it": value, "a later": encoded(t, other), "no JSON": []byte("[")} {
		if got, changed := ForgetQuestion(value, is("c1")); changed || string(got) != string(value) {
			t.Errorf("%s: got changed %t, %s", name, changed, got)
		}
	}
}

func TestDecode(t *testing.T) {
	want := Receipt{Version: version, ID: "x1", At: 7, Scope: alice, Status: "empty", Candidates: []Candidate{{ID: "m1"}}}
	rec, err := want.record(99)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Bucket != storage.BucketExchange || rec.Scope != alice || rec.Key != "x1" || rec.ExpiresAt != 99 {
		t.Errorf("got record %+v", rec.Ref())
	}
	if strings.Contains(string(rec.Value), "alice") {
		t.Errorf("the user is named in the value: %s", rec.Value)
	}
	got, err := Decode(&rec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rec.Value = []byte(`{"version":2}`)
	if _, err := Decode(&rec); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("another version: got %v, want ErrDamaged", err)
	}
	rec.Value = []byte(`[`)
	if _, err := Decode(&rec); err == nil {
		t.Error("no JSON: no error")
	}
}

// What was replayed was counted when it was inserted first.
func TestMemories(t *testing.T) {
	r := Receipt{Inserted: []Insertion{inserted(true, "m1"), inserted(false, "m2", "m3"), inserted(true, "m4"), inserted(false, "m5")}}
	if got, want := r.Memories(), []string{"m2", "m3", "m5"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (&Receipt{}).Memories(); len(got) > 0 {
		t.Errorf("of none: got %q", got)
	}
}

func TestLines(t *testing.T) {
	in := inserted(false, "m1", "m2")
	got := in.Lines()
	for _, id := range []string{"m1", "m2"} {
		if !strings.HasPrefix(got[id], "- ") || !strings.HasSuffix(got[id], "words of "+id) || strings.Contains(got[id], "\n") {
			t.Errorf("%s: got %q", id, got[id])
		}
	}
	bad := Insertion{Text: "short", Spans: []fence.Span{{ID: "a", Start: -1, End: 2}, {ID: "b", Start: 3, End: 2}, {ID: "c", Start: 0, End: 6}, {ID: "d", Start: 0, End: 5}}}
	if diff := cmp.Diff(map[string]string{"d": "short"}, bad.Lines()); diff != "" {
		t.Errorf("spans outside of the text (-want +got):\n%s", diff)
	}
}
