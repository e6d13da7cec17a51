package imports

import (
	"fmt"
	"strings"
	"time"
)

const (
	roleUser      = "user"
	roleAssistant = "assistant"

	// messageBytes is what a message takes apart from its text.
	messageBytes = 160
)

// thread collects the messages of one conversation.
type thread struct {
	Conversation
	begun time.Time // for messages before the first that has a time
	size  int64     // of its messages
}

// say appends a message, which has text. One without a time gets that of the
// message before it.
func (r *reading) say(t *thread, m Message) error {
	t.size += int64(len(m.Text)) + messageBytes
	if t.size > r.bounds.maxConversation {
		return fmt.Errorf("a conversation is larger than %s, which is the most that is read", size(r.bounds.maxConversation))
	}
	if len(t.Messages) >= r.bounds.maxMessages {
		return fmt.Errorf("a conversation has more than %d messages, which is the most that is read", r.bounds.maxMessages)
	}
	if m.Time.IsZero() {
		if m.Time = t.begun; len(t.Messages) > 0 {
			m.Time = t.Messages[len(t.Messages)-1].Time
		}
	}
	t.Messages = append(t.Messages, m)
	return nil
}

// answer is say for a tool that reports in between while it works: of the
// answers to one message it keeps the last.
func (r *reading) answer(t *thread, m Message) error {
	if last := len(t.Messages) - 1; last >= 0 && t.Messages[last].Role == roleAssistant {
		before := t.Messages[last]
		if m.Time.IsZero() {
			m.Time = before.Time
		}
		t.size -= int64(len(before.Text)) + messageBytes
		t.Messages = t.Messages[:last]
		r.reject(reasonSuperseded)
	}
	return r.say(t, m)
}

// roleOf returns the role that a tool calls by another name, or nothing.
func roleOf(name string) string {
	switch name {
	case "user", "human":
		return roleUser
	case "assistant", "gemini", "model":
		return roleAssistant
	}
	return ""
}

// folder returns the name of the last folder of a path, of any system.
func folder(path string) string {
	path = strings.TrimRight(path, `/\`)
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		i = strings.LastIndexByte(path, '\\')
	}
	return path[i+1:]
}

// stem returns the name of a file without its folder and its type.
func stem(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	return name
}

// first returns the first of these that is not blank, or nothing.
func first(texts ...string) string {
	for _, s := range texts {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}
