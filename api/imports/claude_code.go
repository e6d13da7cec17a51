package imports

import "strings"

// claudeCodeLine is one line of a transcript of Claude Code.
type claudeCodeLine struct {
	Type            string `json:"type"`
	Sidechain       bool   `json:"isSidechain"`
	Meta            bool   `json:"isMeta"`
	CompactSummary  bool   `json:"isCompactSummary"`
	APIErrorMessage bool   `json:"isApiErrorMessage"`
	TranscriptOnly  bool   `json:"isVisibleInTranscriptOnly"`
	SessionID       string `json:"sessionId"`
	CWD             string `json:"cwd"`
	UUID            string `json:"uuid"`
	Timestamp       moment `json:"timestamp"`
	Message         struct {
		Content content `json:"content"`
		Model   string  `json:"model"`
	} `json:"message"`
}

// readClaudeCode reads transcripts. A file has one session, or, where an old
// version went on with one, several in turn.
func readClaudeCode(r *reading, names []string) error {
	for _, name := range names {
		t := &thread{}
		t.ID = stem(name)
		begun := false // whether t is of a session that said something
		finish := func() error {
			if !begun {
				return nil
			}
			return r.conversation(t)
		}
		err := r.lines(name, r.bounds.maxConversation, func(line []byte) error {
			var l claudeCodeLine
			if is, err := object(line, &l); err != nil || !is {
				return shapeless(r, err)
			}
			if l.Type != roleUser && l.Type != roleAssistant {
				r.reject(reasonUnknownType)
				return nil
			}
			if reason := l.refused(); reason != "" {
				r.reject(reason)
				return nil
			}
			if l.SessionID != "" && l.SessionID != t.ID {
				if err := finish(); err != nil {
					return err
				}
				t = &thread{}
				t.ID = l.SessionID
			}
			begun = true
			if t.Project == "" {
				t.Project = folder(l.CWD)
			}
			m := Message{
				ID: l.UUID, Role: l.Type, Text: l.Message.Content.text,
				Time: l.Timestamp.Time, Model: l.Message.Model,
			}
			if l.Type == roleAssistant {
				return r.answer(t, m)
			}
			return r.say(t, m)
		})
		if err == nil {
			err = finish()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refused returns why a message is left out, or nothing.
func (l *claudeCodeLine) refused() string {
	switch {
	case l.Sidechain:
		return reasonSidechain
	case l.Meta, l.TranscriptOnly:
		return reasonHidden
	case l.CompactSummary: // by the model, in the person's place
		return reasonNotUser
	case l.APIErrorMessage:
		return reasonError
	case strings.TrimSpace(l.Message.Content.text) == "":
		return l.Message.Content.reason()
	}
	return ""
}

// shapeless counts a line that is no object, unless there was an error.
func shapeless(r *reading, err error) error {
	if err == nil {
		r.reject(reasonUnknownType)
	}
	return err
}
