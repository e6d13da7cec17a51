package recall

import (
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// TestQuotedAnswersNothingAboutTheUser checks that turns in which "I" is
// somebody else answer no question about the user, before and after the index
// was written and read; that they answer others, and the user in a role play.
func TestQuotedAnswersNothingAboutTheUser(t *testing.T) {
	tagged := func(turn int, tag, user, assistant string) []storage.Memory {
		ms := exchange("c"+tag, turn, user, assistant)
		for i := range ms {
			ms[i].Tags = []string{tag}
		}
		return ms
	}
	memories := together(
		exchange("c1", 1, "The garage on Elm Street repairs my bicycle.", "Good to know."),
		tagged(2, storage.QuotedTag, "Translate to Polish: I live in Bergen, I am allergic to walnuts and my dentist is called Rolf.", "Mieszkam w Bergen."),
		tagged(3, storage.RolePlayTag, "My real name is Thalor and I live in the caves of Mirn.", "*Mirel nods.* Follow me."),
	)
	check := func(t *testing.T, e *Engine) {
		for _, tt := range []struct {
			ask      string
			rolePlay bool
			want     string
		}{
			{"Where do I live?", false, ""},
			{"What is my name?", false, ""},
			{"Who is my dentist?", false, ""},
			{"Suggest a dinner for me", false, ""},
			{"Who lives in the caves of Mirn?", false, "Thalor"},
			{"What is my real name, and which caves do I live in?", true, "Thalor"},
			{"Which text did I translate to Polish for Bergen?", false, "Bergen"},
			{"Which garage repairs my bicycle?", false, "Elm"},
		} {
			res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: tt.ask, RolePlay: tt.rolePlay, Now: time.Date(2025, 6, 18, 15, 0, 0, 0, time.UTC)})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for i := range res.Memories {
				got += res.Memories[i].Memory.Text + "\n"
			}
			if tt.want != "" && !strings.Contains(got, tt.want) || tt.want == "" && (strings.Contains(got, "Bergen") || strings.Contains(got, "Thalor")) {
				t.Errorf("%q: got %q, want %q", tt.ask, got, tt.want)
			}
		}
	}
	t.Run("loaded", func(t *testing.T) {
		e, _ := newEngine(t, patient(), memories)
		check(t, e)
	})
	t.Run("from a snapshot", func(t *testing.T) {
		src := newDigesting(t, together(memories, town(1200)))
		e := loadedEngine(t, src)
		e.snapshots.saveAll(t.Context(), always)
		again := loadedEngine(t, src)
		if got := again.Stats(); got.Restored != 1 {
			t.Fatalf("got %+v, want a load from the snapshot", got)
		}
		check(t, again)
	})
}
