package persist

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// TestSummariesCountAgainstTheLimit has conversations with little text in the
// window and large summaries. They are dropped before all that is held takes
// more than audit.maxBytes.
func TestSummariesCountAgainstTheLimit(t *testing.T) {
	const most = 1 << 20
	withPipeline(t, func(c *Config) { c.Audit.MaxBytes, c.TurnsPerSecond = most, 0 }, func(t *testing.T, p running, _ *faulty, _ *indexed) {
		for i := range 400 {
			for part := range 3 { // so that the summary sees more than the window holds
				var words []string
				for w := range 30 {
					words = append(words, fmt.Sprintf("%c%s%dx%d", 'a'+w%26, strings.Repeat("y", 36), part, w))
				}
				turn := userTurn(fmt.Sprintf("t%d.%d", i, part), strings.Join(words[:6], " ")+". "+strings.Join(words[6:12], " ")+". "+strings.Join(words, ". ")+".")
				turn.Conversation = fmt.Sprint("c", i)
				turn.Messages = turn.Messages[:1]
				mustEnqueue(t, p.Pipeline, turn)
			}
			if i%20 == 0 {
				mustFlush(t, p.Pipeline)
			}
		}
		if err := p.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		held := int64(0)
		for _, k := range p.auditor.conversations {
			held += conversationOverhead + int64(len(k.conversation))
			for i := range k.window {
				held += int64(len(k.window[i].Text))
			}
			if s := k.summary; s != nil {
				for _, w := range s.Keywords {
					held += 24 + int64(len(w.Word))
				}
				for _, text := range s.Sentences {
					held += 16 + int64(len(text))
				}
			}
		}
		if held > most || held < most/4 {
			t.Errorf("%d bytes of %d conversations held, want at most %d", held, len(p.auditor.conversations), most)
		}
	})
}
