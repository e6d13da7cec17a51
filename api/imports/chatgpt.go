package imports

import (
	"encoding/json"
	"strings"
)

// chatGPT reads ChatGPT's export of data.
type chatGPT struct {
	*reading
	saved *memo // texts of saved memories, which are in many conversations
}

type chatGPTConversation struct {
	ID             string             `json:"id"`
	ConversationID string             `json:"conversation_id"`
	Title          string             `json:"title"`
	CreateTime     moment             `json:"create_time"`
	CurrentNode    string             `json:"current_node"`
	DoNotRemember  bool               `json:"is_do_not_remember"`
	Mapping        table[chatGPTNode] `json:"mapping"`
}

type chatGPTNode struct {
	Parent  string          `json:"parent"`
	Message *chatGPTMessage `json:"message"`
}

type chatGPTMessage struct {
	ID     string `json:"id"`
	Author struct {
		Role string `json:"role"`
	} `json:"author"`
	CreateTime moment `json:"create_time"`
	Content    struct {
		Type    string      `json:"content_type"`
		Parts   stringsOnly `json:"parts"`
		Context string      `json:"model_set_context"`
	} `json:"content"`
	Recipient string `json:"recipient"`
	Weight    zero   `json:"weight"`
	Metadata  struct {
		Hidden bool   `json:"is_visually_hidden_from_conversation"`
		Model  string `json:"model_slug"`
	} `json:"metadata"`
}

// stringsOnly joins the strings of an array. Images and audio are objects.
type stringsOnly string

// UnmarshalJSON fails only for what is not JSON.
func (p *stringsOnly) UnmarshalJSON(b []byte) error {
	*p = ""
	if len(b) == 0 || b[0] != '[' {
		return nil
	}
	var text strings.Builder
	err := elementsOf(b, func(raw json.RawMessage) error {
		var s string
		if raw[0] != '"' {
			return nil
		}
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		if s != "" && text.Len() > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(s)
		return nil
	})
	*p = stringsOnly(text.String())
	return err
}

// zero reports whether a member is the number 0.
type zero bool

// UnmarshalJSON never fails.
func (z *zero) UnmarshalJSON(b []byte) error {
	var n *float64
	*z = zero(json.Unmarshal(b, &n) == nil && n != nil && *n == 0)
	return nil
}

func readChatGPT(r *reading, names []string) error {
	c := &chatGPT{r, newMemo(r.bounds.maxKnown)}
	for _, name := range names {
		s, err := r.file(name, r.bounds.maxConversation)
		if err != nil {
			return err
		}
		err = s.each(c.conversation)
		s.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *chatGPT) conversation(raw json.RawMessage) error {
	var in chatGPTConversation
	is, err := object(raw, &in)
	switch {
	case err != nil:
		return err
	case !is || in.Mapping.values == nil:
		c.reject(reasonUnknownType)
		return nil
	case in.DoNotRemember:
		c.reject(reasonDoNot)
		return nil
	}
	t := &thread{begun: in.CreateTime.Time}
	t.ID, t.Title = first(in.ConversationID, in.ID), in.Title
	for _, m := range in.path() {
		if m.Content.Context != "" {
			err = c.context(m.Content.Context)
		} else if reason := m.refused(); reason != "" {
			c.reject(reason)
		} else {
			err = c.say(t, Message{
				ID: m.ID, Role: m.Author.Role, Text: string(m.Content.Parts),
				Time: m.CreateTime.Time, Model: m.Metadata.Model,
			})
		}
		if err != nil {
			return err
		}
	}
	return c.reading.conversation(t)
}

// refused returns why a message is left out, or nothing.
func (m *chatGPTMessage) refused() string {
	switch {
	case m.Metadata.Hidden, strings.HasSuffix(m.Content.Type, "_editable_context"):
		return reasonHidden
	case bool(m.Weight):
		return reasonWeight
	case m.Author.Role == "tool":
		return reasonTool
	case m.Author.Role != roleUser && m.Author.Role != roleAssistant:
		return reasonNotUser
	case m.Recipient != "" && m.Recipient != "all":
		return reasonRecipient
	case m.Content.Type != "text" && m.Content.Type != "multimodal_text":
		return reasonUnknownType
	case strings.TrimSpace(string(m.Content.Parts)) == "":
		return reasonEmpty
	}
	return ""
}
