package quality

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dataset is conversations with questions about them.
type dataset struct {
	Name  string         `json:"name"`
	Convs []conversation `json:"convs"`
}

// conversation is one user's store.
type conversation struct {
	ID        string      `json:"id"`
	Messages  []utterance `json:"turns"`
	Questions []question  `json:"qs"`
}

type utterance struct {
	ID      string `json:"id"`
	Session string `json:"sess"`
	Speaker string `json:"spk"`
	Role    string `json:"role"`
	Text    string `json:"text"`
	Caption string `json:"cap"`
	Date    string `json:"date"`
}

type question struct {
	Text     string `json:"q"`
	Category string `json:"cat"`
	Evidence []int  `json:"ev"` // indexes of messages
	Date     string `json:"date"`
}

// maxDataset bounds a data file, in bytes.
const maxDataset = 1 << 30

// readDataset reads the project's data format, or LoCoMo as it is published.
func readDataset(path string) (dataset, error) {
	info, err := os.Stat(path)
	if err != nil {
		return dataset{}, fmt.Errorf("read data: %w", err)
	}
	if info.Size() > maxDataset {
		return dataset{}, errors.New("read data: file larger than 1 GiB")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return dataset{}, fmt.Errorf("read data: %w", err)
	}
	var d dataset
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		d, err = parseLocomo(data)
	} else {
		err = json.Unmarshal(data, &d)
	}
	if err != nil {
		return dataset{}, fmt.Errorf("read data: %w", err)
	}
	if d.Name == "" {
		d.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return d, d.check()
}

func (d dataset) check() error {
	if len(d.Convs) == 0 {
		return errors.New("read data: no conversations")
	}
	for _, c := range d.Convs {
		for _, q := range c.Questions {
			for _, e := range q.Evidence {
				if e < 0 || e >= len(c.Messages) {
					return fmt.Errorf("read data: conversation %q: evidence %d of %d messages", c.ID, e, len(c.Messages))
				}
			}
		}
	}
	return nil
}

// locomoCategories are the numbers of the published file.
var locomoCategories = map[int]string{1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

// parseLocomo reads a list of samples: sessions are session_1, session_2, ...
// with session_1_date_time, and evidence names messages by their dia_id.
func parseLocomo(data []byte) (dataset, error) {
	var samples []struct {
		ID           string                     `json:"sample_id"`
		Conversation map[string]json.RawMessage `json:"conversation"`
		QA           []struct {
			Question string   `json:"question"`
			Evidence []string `json:"evidence"`
			Category int      `json:"category"`
		} `json:"qa"`
	}
	if err := json.Unmarshal(data, &samples); err != nil {
		return dataset{}, err
	}
	var d dataset
	for _, s := range samples {
		c := conversation{ID: s.ID}
		at := map[string]int{}
		for _, name := range sessionNames(s.Conversation) {
			var messages []struct {
				Speaker string `json:"speaker"`
				ID      string `json:"dia_id"`
				Text    string `json:"text"`
				Caption string `json:"blip_caption"`
			}
			var date string
			if err := json.Unmarshal(s.Conversation[name], &messages); err != nil {
				return dataset{}, fmt.Errorf("%s: %w", name, err)
			}
			if raw, ok := s.Conversation[name+"_date_time"]; ok {
				if err := json.Unmarshal(raw, &date); err != nil {
					return dataset{}, fmt.Errorf("%s_date_time: %w", name, err)
				}
			}
			for _, m := range messages {
				at[m.ID] = len(c.Messages)
				c.Messages = append(c.Messages, utterance{ID: m.ID, Session: name, Speaker: m.Speaker, Role: "user", Text: m.Text, Caption: m.Caption, Date: date})
			}
		}
		for _, q := range s.QA {
			out := question{Text: q.Question, Category: locomoCategories[q.Category]}
			for _, list := range q.Evidence { // some entries name several
				for _, id := range strings.FieldsFunc(list, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
					if i, ok := at[id]; ok && !slices.Contains(out.Evidence, i) {
						out.Evidence = append(out.Evidence, i)
					}
				}
			}
			c.Questions = append(c.Questions, out)
		}
		d.Convs = append(d.Convs, c)
	}
	return d, nil
}

// sessionNames returns session_1, session_2, ... in their order.
func sessionNames(conversation map[string]json.RawMessage) []string {
	var names []string
	for n := 1; len(names) < len(conversation); n++ {
		name := "session_" + strconv.Itoa(n)
		if _, ok := conversation[name]; ok {
			names = append(names, name)
		} else if n > 10*len(conversation)+100 {
			break
		}
	}
	return names
}

var dateForms = []string{
	time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02", "2006/01/02 (Mon) 15:04", "2006/01/02 15:04",
	"2006/01/02", "3:04 pm on 2 January, 2006", "January-2-2006", "January 2, 2006", "2 January 2006", "2 January, 2006", "Jan 2, 2006",
}

// parseDate reads a date in any form that the data sets use; the zero time if
// it is none.
func parseDate(s string) time.Time {
	s = strings.TrimSpace(s)
	for _, form := range dateForms {
		if t, err := time.Parse(form, s); err == nil {
			return t
		}
	}
	return time.Time{}
}
