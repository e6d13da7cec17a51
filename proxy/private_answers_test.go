package proxy

import (
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

// TestAnswersWithPrivateMemories checks that what a trusted upstream repeats of
// a private memory is private, too, also in later turns of the conversation and
// after a restart.
func TestAnswersWithPrivateMemories(t *testing.T) {
	for _, a := range apis[:2] {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, a)
			l.fill()
			l.echoes = true
			question := labTopics[0].question
			named := []string{identity.HeaderConversation, "telling"}
			history := []string{"user: " + question}
			l.post("home", a.path, a.body(history...), named...)
			l.settle()
			history = append(history, "assistant: fine", "user: What color does she have?")
			l.restart()
			l.post("home", a.path, a.body(history...), named...)
			l.settle()
			repeated := 0
			for _, m := range l.memories() {
				if m.Kind != storage.KindEpisode || !strings.Contains(m.Text, "As you told me") {
					continue
				}
				repeated++
				if !slices.Contains(m.Tags, storage.PrivateTag) {
					t.Errorf("%q has the tags %q", m.Text, m.Tags)
				}
			}
			if repeated < 2 {
				t.Fatalf("%d answers repeat the private memory, want 2", repeated)
			}
			for _, ask := range []string{question, "What is the boat on the lake called?", "What color does she have?"} {
				l.post("cloud", a.path, a.body("user: "+ask))
			}
			l.check("afterwards")

			l.post("cloud", a.path, a.body("user: I prefer oat milk in my coffee"), identity.HeaderConversation, "open")
			l.settle()
			if i := slices.IndexFunc(l.memories(), func(m storage.Memory) bool { return strings.Contains(m.Text, "oat milk") }); i < 0 {
				t.Error("what was said elsewhere was not stored")
			} else if slices.Contains(l.memories()[i].Tags, storage.PrivateTag) {
				t.Error("what was said elsewhere is private")
			}
		})
	}
}
