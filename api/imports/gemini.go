package imports

import (
	"encoding/json"
	"io"
	"path"
	"slices"
	"strings"
)

// gemini is one session of Gemini CLI.
type gemini struct {
	*reading
	head     geminiHead
	messages []geminiMessage
	at       map[string]int // in messages, by id
	size     int64          // of messages
}

type geminiHead struct {
	SessionID   string       `json:"sessionId"`
	StartTime   moment       `json:"startTime"`
	Kind        string       `json:"kind"` // "subagent", or "main"
	Directories list[string] `json:"directories"`
}

// geminiMessage is a message of a session or, with a role and parts, of a
// checkpoint.
type geminiMessage struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Role      string  `json:"role"`
	Timestamp moment  `json:"timestamp"`
	Content   content `json:"content"`
	Parts     content `json:"parts"`
	Display   content `json:"displayContent"` // what was typed, without the files it names
	Model     string  `json:"model"`
}

// geminiSetup begins messages that Gemini CLI writes in the person's place.
var geminiSetup = []string{"<session_context>", "This is the Gemini CLI. We are setting up the context"}

func readGemini(r *reading, names []string) error {
	for _, name := range names {
		// A session that a newer version has resumed is there in both forms.
		if path.Ext(name) == ".json" && slices.Contains(names, name+"l") {
			continue
		}
		g := &gemini{reading: r, at: map[string]int{}}
		var err error
		if path.Ext(name) == ".json" || path.Ext(name) == "" {
			err = g.whole(name)
		} else {
			err = g.log(name)
		}
		if err == nil {
			err = inFile(name, g.finish(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whole reads a session, or a checkpoint, that is one value.
func (g *gemini) whole(name string) error {
	s, err := g.file(name, g.bounds.maxConversation)
	if err != nil {
		return err
	}
	defer s.close()
	if s.array {
		return s.each(g.message)
	}
	t, err := s.token()
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		g.reject(reasonUnknownType)
		return nil
	}
	err = s.members(func(key string) error {
		switch key {
		case "sessionId":
			return s.member(&g.head.SessionID)
		case "startTime":
			return s.member(&g.head.StartTime)
		case "kind":
			return s.member(&g.head.Kind)
		case "directories":
			return s.member(&g.head.Directories)
		case "messages", "history":
			return s.list(g.message)
		}
		return s.skip()
	})
	if err != nil {
		return err
	}
	return s.end()
}

// message takes a message. One with the id of another replaces it.
func (g *gemini) message(raw json.RawMessage) error {
	var m geminiMessage
	if is, err := object(raw, &m); err != nil || !is {
		return shapeless(g.reading, err)
	}
	g.size += int64(len(m.text())) + messageBytes
	if g.size > g.bounds.maxConversation {
		return g.tooLarge()
	}
	if i, again := g.at[m.ID]; again && m.ID != "" {
		g.size -= int64(len(g.messages[i].text())) + messageBytes
		g.messages[i] = m
		return nil
	}
	g.at[m.ID] = len(g.messages)
	g.messages = append(g.messages, m)
	return nil
}

// finish hands over the session.
func (g *gemini) finish(name string) error {
	t := &thread{begun: g.head.StartTime.Time}
	t.ID = first(g.head.SessionID, stem(name))
	if len(g.head.Directories) > 0 {
		t.Project = folder(g.head.Directories[0])
	}
	for i := range g.messages {
		m := &g.messages[i]
		reason := m.refused()
		if g.head.Kind == "subagent" {
			reason = reasonSidechain
		}
		if reason != "" {
			g.reject(reason)
			continue
		}
		err := g.say(t, Message{
			ID: m.ID, Role: roleOf(first(m.Type, m.Role)), Text: m.text(),
			Time: m.Timestamp.Time, Model: m.Model,
		})
		if err != nil {
			return err
		}
	}
	return g.conversation(t)
}

// text is what the message says.
func (m *geminiMessage) text() string {
	return first(m.Display.text, m.Content.text, m.Parts.text)
}

// refused returns why a message is left out, or nothing.
func (m *geminiMessage) refused() string {
	text := strings.TrimSpace(m.text())
	switch {
	case first(m.Type, m.Role) == "":
		return reasonUnknownType
	case roleOf(first(m.Type, m.Role)) == "":
		return reasonNotUser
	case slices.ContainsFunc(geminiSetup, func(s string) bool { return strings.HasPrefix(text, s) }):
		return reasonHidden
	case text == "" && m.Type != "":
		return m.Content.reason()
	case text == "":
		return m.Parts.reason()
	}
	return ""
}
