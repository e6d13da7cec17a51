package imports

import (
	"encoding/json"
	"fmt"
)

// geminiLine is a line of the newer, growing form of a session: its head,
// without an id, a message, a change of the head, or a step back.
type geminiLine struct {
	ID       string          `json:"id"`
	RewindTo string          `json:"$rewindTo"`
	Set      json.RawMessage `json:"$set"`
}

// log reads a session that is a log of its changes.
func (g *gemini) log(name string) error {
	return g.lines(name, g.bounds.maxConversation, func(line []byte) error {
		var l geminiLine
		if is, err := object(line, &l); err != nil || !is {
			return shapeless(g.reading, err)
		}
		switch {
		case l.RewindTo != "":
			g.rewind(l.RewindTo)
			return nil
		case l.ID != "":
			return g.message(line)
		case l.Set != nil:
			// Its messages are what the model is sent from then on, with
			// summaries in the person's place. They are not what was said.
			return decode(l.Set, &g.head)
		}
		if err := decode(line, &g.head); err != nil {
			return err
		}
		var head struct {
			Messages json.RawMessage `json:"messages"`
		}
		if err := decode(line, &head); err != nil || len(head.Messages) == 0 || head.Messages[0] != '[' {
			return err
		}
		return elementsOf(head.Messages, g.message)
	})
}

// rewind removes the message and all after it, as the person did.
func (g *gemini) rewind(id string) {
	i, there := g.at[id]
	if !there {
		return
	}
	for _, m := range g.messages[i:] {
		g.size -= int64(len(m.text())) + messageBytes
		delete(g.at, m.ID)
	}
	g.messages = g.messages[:i]
}

func (g *gemini) tooLarge() error {
	return fmt.Errorf("a conversation is larger than %s, which is the most that is read", size(g.bounds.maxConversation))
}
