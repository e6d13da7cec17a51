package imports

import (
	"encoding/json"
	"io"
)

// openCode reads what opencode export writes.
type openCode struct{ *reading }

// openCodeInfo describes a session, or a message of one.
type openCodeInfo struct {
	ID        string `json:"id"`
	ParentID  string `json:"parentID"` // of a session: of a subagent
	Title     string `json:"title"`
	Directory string `json:"directory"`
	Role      string `json:"role"`
	ModelID   string `json:"modelID"`
	Time      struct {
		Created moment `json:"created"`
	} `json:"time"`
}

type openCodeMessage struct {
	Info  openCodeInfo `json:"info"`
	Parts content      `json:"parts"`
}

// readOpenCode reads sessions, one or more in a file.
func readOpenCode(r *reading, names []string) error {
	for _, name := range names {
		if err := (&openCode{r}).sessions(name); err != nil {
			return err
		}
	}
	return nil
}

func (o *openCode) sessions(name string) error {
	s, err := o.file(name, o.bounds.maxConversation)
	if err != nil {
		return err
	}
	defer s.close()
	for {
		t, err := s.token()
		if err == io.EOF {
			return nil
		}
		if err == nil && t == json.Delim('{') {
			err = o.session(s)
		} else if err == nil {
			o.reject(reasonUnknownType)
			err = s.rest(t)
		}
		if err != nil {
			return err
		}
	}
}

func (o *openCode) session(s *stream) error {
	var info openCodeInfo
	t, has := &thread{}, false
	err := s.members(func(key string) error {
		switch key {
		case "info":
			return s.member(&info)
		case "messages":
			has = true
			return s.list(func(raw json.RawMessage) error { return o.message(t, raw) })
		}
		return s.skip()
	})
	switch {
	case err != nil:
		return err
	case !has:
		o.reject(reasonUnknownType)
		return nil
	case info.ParentID != "":
		o.reject(reasonSidechain)
		return nil
	}
	t.ID, t.Title, t.Project = info.ID, info.Title, folder(info.Directory)
	for i := range t.Messages { // before the first that has a time
		if t.Messages[i].Time.IsZero() {
			t.Messages[i].Time = info.Time.Created.Time
		}
	}
	return s.placed(o.conversation(t))
}

func (o *openCode) message(t *thread, raw json.RawMessage) error {
	var m openCodeMessage
	if is, err := object(raw, &m); err != nil || !is {
		return shapeless(o.reading, err)
	}
	role := roleOf(m.Info.Role)
	switch {
	case role == "":
		o.reject(reasonNotUser)
		return nil
	case m.Parts.blank():
		o.reject(m.Parts.reason())
		return nil
	}
	return o.say(t, Message{
		ID: m.Info.ID, Role: role, Text: m.Parts.text,
		Time: m.Info.Time.Created.Time, Model: m.Info.ModelID,
	})
}
