package imports

import (
	"regexp"
	"strings"
)

// savedMemory is a line of ChatGPT's saved memories, as the model sees them:
// "1. [2024-05-01]. Likes tea", with or without the number and the dots.
var savedMemory = regexp.MustCompile(
	`^\s*(?:\d{1,6}[.)]\s*|[-*•]\s*)?\[(\d{4}-\d{2}-\d{2})[^\]]{0,20}\]\s*[.:–-]?\s*(\S.*)$`)

// context takes the saved memories out of the context of a conversation. Every
// conversation repeats them, and each text is taken once.
func (c *chatGPT) context(text string) error {
	for line := range strings.Lines(text) {
		found := savedMemory.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if found == nil {
			continue
		}
		m := Memory{Kind: "fact", CreatedAt: parseTime(found[1]), Text: strings.TrimSpace(found[2])}
		fresh, err := c.saved.add(m.Text)
		if err == nil && fresh {
			err = c.memory(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
