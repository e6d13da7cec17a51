package imports

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// claude reads the export of claude.ai. Its files are arrays of conversations,
// projects or memories, or objects of them, and what an object is shows in its
// members.
type claude struct {
	*reading
	projects map[string]string // names by uuid
}

type claudeObject struct {
	UUID      string `json:"uuid"`
	Name      string `json:"name"`
	CreatedAt moment `json:"created_at"`
	UpdatedAt moment `json:"updated_at"`

	Messages *list[claudeMessage] `json:"chat_messages"`
	Project  struct {
		UUID string `json:"uuid"`
		Name string `json:"name"`
	} `json:"project"`

	Docs *list[claudeDoc] `json:"docs"`

	Memory          *string         `json:"conversations_memory"`
	ProjectMemories *table[string]  `json:"project_memories"`
	MemoryFiles     list[claudeDoc] `json:"memory_files"`
}

type claudeMessage struct {
	UUID      string  `json:"uuid"`
	Sender    string  `json:"sender"`
	Text      string  `json:"text"`
	Content   content `json:"content"`
	CreatedAt moment  `json:"created_at"`
}

type claudeDoc struct {
	UUID      string `json:"uuid"`
	Filename  string `json:"filename"`
	Content   string `json:"content"`
	CreatedAt moment `json:"created_at"`
}

// readClaude reads projects first: memories name a project by its uuid.
func readClaude(r *reading, names []string) error {
	c := &claude{r, map[string]string{}}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(claudeOrder(a), claudeOrder(b)) })
	for _, name := range names {
		s, err := r.file(name, r.bounds.maxConversation)
		if err != nil {
			return err
		}
		err = s.each(c.object)
		s.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func claudeOrder(name string) int {
	if strings.HasPrefix(path.Base(name), "projects") || path.Base(path.Dir(name)) == "projects" {
		return 0
	}
	return 1
}

func (c *claude) object(raw json.RawMessage) error {
	var o claudeObject
	is, err := object(raw, &o)
	switch {
	case err != nil:
		return err
	case is && o.Messages != nil:
		return c.conversation(&o)
	case is && o.Docs != nil:
		return c.project(&o)
	case is && (o.Memory != nil || o.ProjectMemories != nil || o.MemoryFiles != nil):
		return c.memories(&o)
	}
	c.reject(reasonUnknownType)
	return nil
}

func (c *claude) conversation(o *claudeObject) error {
	t := &thread{begun: o.CreatedAt.Time}
	t.ID, t.Title, t.Project = o.UUID, o.Name, first(o.Project.Name, c.projects[o.Project.UUID])
	for _, m := range *o.Messages {
		role := roleOf(m.Sender)
		// The text of newer exports has placeholders for blocks of tools.
		text := m.Text
		if !m.Content.blank() {
			text = m.Content.text
		}
		switch {
		case role == "":
			c.reject(reasonNotUser)
		case strings.TrimSpace(text) == "":
			c.reject(m.Content.reason())
		default:
			if err := c.say(t, Message{ID: m.UUID, Role: role, Text: text, Time: m.CreatedAt.Time}); err != nil {
				return err
			}
		}
	}
	return c.reading.conversation(t)
}

// project brings the documents of a project.
func (c *claude) project(o *claudeObject) error {
	if c.projects[o.UUID] = o.Name; len(c.projects) > maxElements {
		return errMany
	}
	for _, d := range *o.Docs {
		created := d.CreatedAt.Time
		if created.IsZero() {
			created = o.CreatedAt.Time
		}
		err := c.memory(Memory{
			ID: d.UUID, Text: d.Content, Kind: "resource", Project: o.Name, CreatedAt: created,
			Metadata: map[string]any{"resource_uri": "claude-project:" + o.UUID + "/" + d.Filename},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// memories brings what Claude remembers of the person, and of each project.
func (c *claude) memories(o *claudeObject) error {
	if o.Memory != nil {
		if err := c.facts(*o.Memory, Memory{UpdatedAt: o.UpdatedAt.Time}); err != nil {
			return err
		}
	}
	for _, f := range o.MemoryFiles {
		if err := c.facts(f.Content, Memory{UpdatedAt: o.UpdatedAt.Time}); err != nil {
			return err
		}
	}
	if o.ProjectMemories == nil {
		return nil
	}
	for _, id := range o.ProjectMemories.keys {
		m := Memory{Project: first(c.projects[id], id), UpdatedAt: o.UpdatedAt.Time}
		if err := c.facts(o.ProjectMemories.values[id], m); err != nil {
			return err
		}
	}
	return nil
}

// facts brings each paragraph and list item of a text as a memory like m.
func (c *claude) facts(text string, m Memory) error {
	m.Kind = "fact"
	for statement := range statements(text) {
		if statement.heading {
			c.reject(reasonHeading)
			continue
		}
		m.Text = statement.text
		if err := c.memory(m); err != nil {
			return err
		}
	}
	return nil
}
