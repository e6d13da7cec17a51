package mem0

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/documents"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// addRequest hands in messages. Hints for a model that extracts memories are
// not among its fields: they are ignored.
type addRequest struct {
	ids
	Messages       json.RawMessage `json:"messages"`
	Metadata       json.RawMessage `json:"metadata"`
	Categories     []string        `json:"categories"`
	Infer          *bool           `json:"infer"`
	Timestamp      json.RawMessage `json:"timestamp"`
	ExpirationDate json.RawMessage `json:"expiration_date"`
	Immutable      bool            `json:"immutable"`
	OutputFormat   string          `json:"output_format"`
}

// addWait is how long an answer that tells what was extracted waits for that.
const addWait = 15 * time.Second

// adding takes in messages: what the user said, and what was answered. They
// become memories as those of a conversation through the proxy do; with infer =
// false each message of the user is one at once.
func adding(as shape) verb {
	return func(c *call) error {
		var q addRequest
		if err := c.decode(&q); err != nil {
			return err
		}
		messages, err := q.read()
		if err != nil {
			return err
		}
		l := labels{categories: q.Categories}
		if l.metadata, err = metadataOf(q.Metadata); err != nil {
			return err
		}
		if _, err := tags(c, l); err != nil { // before anything is kept
			return err
		}
		t, err := c.home(q.ids)
		if err != nil {
			return err
		}
		if q.Infer != nil && !*q.Infer {
			return c.addVerbatim(as, &q, t, messages, l)
		}
		e, err := c.events.begin(c.p, t, l)
		if err != nil {
			return err
		}
		turns, err := c.service.ReportConversation(c.r.Context(), c.p, t, q.RunID, messages)
		if c.events.handedIn(e, turns); err != nil {
			return err
		}
		if as == shapeResults {
			return c.answerWhenDone(e)
		}
		answer := map[string]any{"message": "Memory processing has been queued for background execution", "status": statusPending, "event_id": e.id}
		return c.answer(as, &q, answer)
	}
}

// answer answers in the shape of a version.
func (c *call) answer(as shape, q *addRequest, answer map[string]any) error {
	switch {
	case as == shapeEvent:
		return c.write(http.StatusOK, answer)
	case q.OutputFormat == "v1.1":
		return c.write(http.StatusOK, map[string]any{"results": []any{answer}})
	}
	return c.write(http.StatusOK, []any{answer})
}

// answerWhenDone answers with what became of an event, or with the event if
// that takes too long.
func (c *call) answerWhenDone(e *event) error {
	timer := time.NewTimer(addWait)
	defer timer.Stop()
	select {
	case <-e.done:
	case <-timer.C:
	case <-c.r.Context().Done():
	}
	shown, err := adminCall{c}.showEvent(e)
	if err != nil {
		return err
	}
	results := []any{}
	for _, r := range shown.Results {
		results = append(results, map[string]any{"id": r.ID, "memory": r.Data.Memory, "event": r.Event})
	}
	return c.write(http.StatusOK, map[string]any{"results": results, "status": shown.Status, "event_id": e.id})
}

// read checks a request and returns its messages of user and assistant.
func (q *addRequest) read() ([]api.Message, error) {
	if q.Immutable {
		return nil, invalid("immutable", "is not supported: every memory can be changed by its owner")
	}
	if err := noExpiry(q.ExpirationDate); err != nil {
		return nil, err
	}
	at := ""
	var begun time.Time
	if len(q.Timestamp) > 0 && string(q.Timestamp) != "null" {
		var ok bool
		if begun, ok = seconds(q.Timestamp); !ok {
			return nil, invalid("timestamp", "must be seconds since 1970")
		}
	}
	messages, err := readMessages(q.Messages)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		if !begun.IsZero() {
			at = begun.Add(time.Duration(i) * time.Millisecond).Format(time.RFC3339Nano)
		}
		messages[i].Time = at
	}
	return messages, nil
}

func noExpiry(raw json.RawMessage) error {
	if len(raw) > 0 && string(raw) != "null" {
		return invalid("expiration_date", "is not supported: delete the memory when its time is over")
	}
	return nil
}

// readMessages reads a list of messages, one message, or a text of the user.
// Those of other roles are left out.
func readMessages(raw json.RawMessage) ([]api.Message, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && len(raw) > 0 && string(raw) != "null" {
		return []api.Message{{Role: "user", Content: text}}, nil
	}
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		all = []json.RawMessage{raw}
	}
	var out []api.Message
	for i := range all {
		var m struct {
			Role    *string         `json:"role"`
			Name    string          `json:"name"`
			Content json.RawMessage `json:"content"`
		}
		field := fmt.Sprintf("messages[%d]", i)
		if len(all[i]) == 0 || string(all[i]) == "null" || json.Unmarshal(all[i], &m) != nil {
			return nil, invalid(field, "must be an object with role and content, which are strings")
		}
		if m.Role == nil {
			return nil, invalid(field+".role", "is required")
		}
		content, ok := contentOf(m.Content)
		if !ok {
			return nil, invalid(field+".content", "must be a string or a list of parts")
		}
		if role := *m.Role; (role == "user" || role == "assistant") && strings.TrimSpace(content) != "" {
			out = append(out, api.Message{Role: role, Speaker: m.Name, Content: content})
		}
	}
	if len(out) == 0 {
		return nil, invalid("messages", "must have a message of the user or the assistant, with text")
	}
	return out, nil
}

// contentOf returns the text of a message: a string, or the parts of type text.
func contentOf(raw json.RawMessage) (text string, ok bool) {
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	type part struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var parts []part
	if json.Unmarshal(raw, &parts) != nil {
		var one part
		if json.Unmarshal(raw, &one) != nil {
			return "", false
		}
		parts = []part{one}
	}
	var texts []string
	for _, p := range parts {
		if p.Type == "text" && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n"), true
}

// addVerbatim keeps each message of the user as a fact, or those of the
// assistant if the user said nothing. A long one becomes several.
func (c *call) addVerbatim(as shape, q *addRequest, t api.Target, messages []api.Message, l labels) error {
	if slices.ContainsFunc(messages, func(m api.Message) bool { return m.Role == string(storage.RoleUser) }) {
		messages = slices.DeleteFunc(messages, func(m api.Message) bool { return m.Role != string(storage.RoleUser) })
	}
	tags, err := tags(c, l)
	if err != nil {
		return err
	}
	var drafts []api.Draft
	for i := range messages {
		m := &messages[i]
		if len(m.Content) > api.MaxMessage {
			return invalid(fmt.Sprintf("messages[%d].content", i), fmt.Sprintf("must have at most %d bytes", api.MaxMessage))
		}
		if c.service.HidesSecret(m.Content) { // before any of the others is kept
			return persist.ErrSecret
		}
		for _, text := range documents.Passages(documents.Document{Text: m.Content, MediaType: "text/plain"}, api.MaxText) {
			drafts = append(drafts, api.Draft{Text: text, Tags: tags, Conversation: q.RunID, EventTime: m.Time})
		}
	}
	e, err := c.events.begin(c.p, t, labels{})
	if err != nil {
		return err
	}
	for i := range drafts {
		added, err := c.service.Add(c.r.Context(), c.p, t, drafts[i], "mem0")
		if err == nil && added.Memory.ID == "" { // said before it was deleted
			continue
		}
		if err == nil && added.Event == "known" {
			e.known = append(e.known, added.Memory.ID)
			_, err = label(c, c.r.Context(), &added.Memory, l, whyLabelled)
		}
		if err != nil {
			c.events.end(e, statusFailed, api.Detail(err))
			return err
		}
		e.ids = append(e.ids, added.Memory.ID)
	}
	c.events.end(e, statusSucceeded, "")
	if as == shapeResults {
		return c.answerWhenDone(e)
	}
	shown, err := adminCall{c}.showEvent(e)
	if err != nil {
		return err
	}
	return c.answer(as, q, map[string]any{
		"message": "Memories added", "status": statusSucceeded, "event_id": e.id, "results": shown.Results,
	})
}
