package imports

import (
	"encoding/json"
	"strings"
)

// content is what a message says: a string, a part, or an array of both. Only
// text is kept, of other parts there is a count.
type content struct {
	text                             string
	tools, thoughts, synthetic, rest int
}

// part is one part of a message, of Claude, Gemini or opencode.
type part struct {
	Type             string  `json:"type"`
	Text             *string `json:"text"`
	Thought          present `json:"thought"` // Gemini: true, or the thought
	FunctionCall     present `json:"functionCall"`
	FunctionResponse present `json:"functionResponse"`
	Synthetic        bool    `json:"synthetic"` // opencode: written by the client
	Ignored          bool    `json:"ignored"`   // opencode: not sent
}

// present reports whether a member is there: not null, false or empty text.
type present bool

// UnmarshalJSON never fails.
func (p *present) UnmarshalJSON(b []byte) error {
	*p = present(string(b) != "null" && string(b) != "false" && string(b) != `""`)
	return nil
}

// UnmarshalJSON fails only for what is not JSON. It reads an array part by
// part, so it needs no memory for parts that are not text.
func (c *content) UnmarshalJSON(b []byte) error {
	*c = content{}
	var text strings.Builder
	defer func() { c.text = text.String() }()
	if len(b) == 0 || b[0] != '[' {
		return c.part(&text, b)
	}
	return elementsOf(b, func(raw json.RawMessage) error { return c.part(&text, raw) })
}

// part appends a part, or counts it.
func (c *content) part(text *strings.Builder, raw json.RawMessage) error {
	add := func(s string) {
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(s)
	}
	switch {
	case len(raw) > 0 && raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		add(s)
		return nil
	case len(raw) == 0 || raw[0] != '{':
		return nil
	}
	var p part
	if err := decode(raw, &p); err != nil {
		return err
	}
	switch {
	case p.Synthetic, p.Ignored:
		c.synthetic++
	case bool(p.FunctionCall), bool(p.FunctionResponse), strings.Contains(p.Type, "tool"):
		c.tools++
	case bool(p.Thought), strings.Contains(p.Type, "thinking"), p.Type == "reasoning":
		c.thoughts++
	case p.Text != nil && (p.Type == "" || p.Type == "text"):
		if *p.Text != "" {
			add(*p.Text)
		}
	default:
		c.rest++
	}
	return nil
}

// blank reports whether there is no text.
func (c *content) blank() bool { return strings.TrimSpace(c.text) == "" }

// reason is why a message without text is left out.
func (c *content) reason() string {
	switch {
	case c.synthetic > 0:
		return reasonSynthetic
	case c.tools > 0:
		return reasonTool
	case c.thoughts > 0:
		return reasonThinking
	case c.rest > 0:
		return reasonUnknownType
	}
	return reasonEmpty
}
