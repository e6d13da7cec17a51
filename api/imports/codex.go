package imports

import (
	"encoding/json"
	"strings"
)

// codexLine is one line of a rollout of Codex.
type codexLine struct {
	Timestamp moment `json:"timestamp"`
	Type      string `json:"type"`
	Payload   struct {
		Type    string `json:"type"`
		Message string `json:"message"`

		// Of the type session_meta.
		ID           string          `json:"id"`
		CWD          string          `json:"cwd"`
		Source       json.RawMessage `json:"source"` // an object for a subagent
		ThreadSource string          `json:"thread_source"`

		// Of the type turn_context.
		Model string `json:"model"`
	} `json:"payload"`
}

// readCodex reads rollouts, one session in each. It reads the events that show
// what each side said. The items of the API repeat that, and have much that
// Codex wrote in the person's place.
func readCodex(r *reading, names []string) error {
	for _, name := range names {
		t := &thread{}
		t.ID = stem(name)
		known, sub, model := false, false, ""
		err := r.lines(name, r.bounds.maxConversation, func(line []byte) error {
			var l codexLine
			if is, err := object(line, &l); err != nil || !is {
				return shapeless(r, err)
			}
			p := &l.Payload
			switch {
			case l.Type == "session_meta" && !known: // a fork also has its parent's
				known, sub = true, l.subagent()
				t.ID, t.Project, t.begun = first(p.ID, t.ID), folder(p.CWD), l.Timestamp.Time
			case l.Type == "turn_context":
				model = first(p.Model, model)
			case l.Type == "event_msg" && (p.Type == "user_message" || p.Type == "agent_message"):
				switch {
				case sub:
					r.reject(reasonSidechain)
				case strings.TrimSpace(p.Message) == "":
					r.reject(reasonEmpty)
				case p.Type == "user_message":
					return r.say(t, Message{Role: roleUser, Text: p.Message, Time: l.Timestamp.Time})
				default:
					return r.answer(t, Message{Role: roleAssistant, Text: p.Message, Time: l.Timestamp.Time, Model: model})
				}
			}
			return nil
		})
		if err == nil && !sub {
			err = r.conversation(t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// subagent reports whether no person takes part in the session.
func (l *codexLine) subagent() bool {
	source := l.Payload.Source
	return len(source) > 0 && source[0] == '{' ||
		l.Payload.ThreadSource == "subagent" || l.Payload.ThreadSource == "guardian_review"
}
