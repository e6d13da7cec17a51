package lives

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// life is a person with what was said over some months, and questions that are
// asked of an assistant later.
type life struct {
	ID            string         `json:"id"` // the user
	Lang          string         `json:"lang"`
	Conversations []conversation `json:"conversations"`
	AskAt         string         `json:"ask_at"`
	Questions     []question     `json:"questions"`
}

type conversation struct {
	At     string `json:"at"`
	System string `json:"system,omitempty"`
	Memory string `json:"memory,omitempty"` // X-Remora-Memory
	Turns  []turn `json:"turns"`
}

type turn struct {
	User      string          `json:"user"`
	Assistant json.RawMessage `json:"assistant,omitempty"` // its text, or the message of the answer
}

// question is asked in a conversation of its own.
type question struct {
	Kind string `json:"kind"`
	At   string `json:"at,omitempty"` // "" = life.AskAt
	Q    string `json:"q"`
	// Want holds groups of alternatives: of each group, a line of the block
	// must hold one.
	Want [][]string `json:"want,omitempty"`
	// Avoid is what no line may hold.
	Avoid   []avoided `json:"avoid,omitempty"`
	Nothing bool      `json:"nothing,omitempty"` // the block must be empty
}

// avoided is a text, which may be in a line that holds unless as well, or
// that is marked as outdated.
type avoided struct {
	Text   string `json:"text"`
	Unless string `json:"unless,omitempty"`
}

// kinds are the kinds of questions, by their letter.
var kinds = map[string]string{
	"a": "same words", "b": "paraphrase", "c": "updates", "d": "temporal", "e": "several steps", "f": "aggregate", "g": "preference",
	"h": "needs no memory", "i": "other people's facts", "j": "not to be remembered", "k": "corrections", "l": "hypothetical, joke, fiction",
	"m": "pasted text",
}

// read reads the lives of some files, and checks their dates.
func read(paths []string) (all []life, err error) {
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var file struct {
			Personas []life `json:"personas"`
		}
		if err := json.Unmarshal(b, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for i := range file.Personas {
			if err := file.Personas[i].check(); err != nil {
				return nil, fmt.Errorf("%s: life %q: %w", path, file.Personas[i].ID, err)
			}
		}
		all = append(all, file.Personas...)
	}
	ids := map[string]bool{}
	for i := range all {
		if ids[all[i].ID] {
			return nil, fmt.Errorf("two lives are called %q", all[i].ID)
		}
		ids[all[i].ID] = true
	}
	return all, nil
}

func (l *life) check() error {
	if l.ID == "" {
		return fmt.Errorf("id is missing")
	}
	for _, c := range l.Conversations {
		if _, err := parseTime(c.At); err != nil {
			return err
		}
		for _, t := range c.Turns {
			if _, err := t.answer(); err != nil {
				return err
			}
		}
	}
	for _, q := range l.Questions {
		if _, err := parseTime(cmp.Or(q.At, l.AskAt)); err != nil {
			return err
		}
	}
	return nil
}

// parseTime reads a minute, in UTC. A day alone means nine o'clock; seconds and
// a zone are ignored.
func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		t, err := time.Parse(layout, s[:min(len(s), len(layout))])
		if err == nil && layout == time.DateOnly {
			t = t.Add(9 * time.Hour)
		}
		if err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no date such as 2026-03-01T09:00", s)
}

// answer returns the message that answers the turn.
func (t *turn) answer() (message map[string]any, err error) {
	text := "OK."
	if len(t.Assistant) > 0 && t.Assistant[0] != '"' {
		err = json.Unmarshal(t.Assistant, &message)
		return message, err
	}
	if len(t.Assistant) > 0 {
		err = json.Unmarshal(t.Assistant, &text)
	}
	return map[string]any{"role": "assistant", "content": text}, err
}

// scene is a conversation of a life.
type scene struct {
	conversation
	user string
	at   time.Time
}

// scenes returns all conversations in the order of their dates.
func scenes(all []life) (out []scene) {
	for _, l := range all {
		for _, c := range l.Conversations {
			at, _ := parseTime(c.At) // checked
			out = append(out, scene{c, l.ID, at})
		}
	}
	slices.SortStableFunc(out, func(a, b scene) int { return a.at.Compare(b.at) })
	return out
}
