package mem0

import (
	"context"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// space is what one user told one app or agent, as mem0 would see it: facts,
// passages of documents, and passages of conversations that say more than the
// facts made of them. Answers of a model are not among it, unless nobody had
// asked.
type space struct {
	target api.Target
	facts  map[string][]fact // by turn, in any state
	known  map[string]bool   // normalized statements of all of them
}

// fact is what a space holds of one.
type fact struct {
	id      string
	words   string // normalized
	current bool
}

// minStatement is how many words a sentence has that is shown although other
// sentences of its passage are facts. What is left of a sentence around a fact
// must have more: "please remember that" is no statement.
const (
	minStatement = 3
	minRest      = 5
)

// open reads the facts of a target.
func (c *call) open(ctx context.Context, t api.Target) (*space, error) {
	v := &space{target: t, facts: map[string][]fact{}, known: map[string]bool{}}
	all := api.Filter{Kinds: []string{string(storage.KindFact)}, States: api.States()}
	err := c.pages(ctx, t, all, func(m *api.Memory) error {
		quote, _, _ := extract.Quotation(m.Text)
		f := fact{m.ID, extract.Normalize(quote), m.State == api.StateCurrent}
		if m.Turn != "" {
			v.facts[m.Turn] = append(v.facts[m.Turn], f)
		}
		if f.words != "" {
			v.known[f.words] = true
		}
		return nil
	})
	return v, err
}

// pages calls found for all memories of a target that a filter selects, the
// newest first.
func (c *call) pages(ctx context.Context, t api.Target, f api.Filter, found func(*api.Memory) error) error {
	for cursor := ""; ; {
		page, err := c.service.List(ctx, c.p, t, f, cursor, api.MaxPage)
		if err != nil {
			return err
		}
		for i := range page.Memories {
			if err := found(&page.Memories[i]); err != nil {
				return err
			}
		}
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
}

// shows reports whether a memory counts as one for mem0's clients.
func (v *space) shows(m *api.Memory) bool {
	switch {
	case m.State != api.StateCurrent:
		return false
	case m.Kind != string(storage.KindEpisode):
		return true
	case m.Role != string(storage.RoleUser):
		return m.ID == storage.TurnMemoryID(m.Turn, 0) // what nobody had asked for
	}
	said, _, _ := extract.Uncut(m.Text)
	covered, left := false, false
	for _, sentence := range text.Sentences(said) {
		switch rest, whole := v.rest(m.Turn, sentence); {
		case rest == 0:
			covered = true
		case whole:
			left = left || rest >= minStatement
		default:
			covered = true
			left = left || rest >= minRest
		}
	}
	return left || !covered
}

// rest returns how many words of a sentence are in no fact, and whether none of
// it is.
func (v *space) rest(turn, sentence string) (words int, whole bool) {
	normal := extract.Normalize(sentence)
	if v.known[normal] {
		return 0, false
	}
	left := " " + normal + " "
	for _, f := range v.facts[turn] {
		if f.words == "" {
			continue
		}
		if extract.HoldsWords(f.words, normal) {
			return 0, false
		}
		left = strings.ReplaceAll(left, " "+f.words+" ", " ")
	}
	return len(strings.Fields(left)), len(left) == len(normal)+2
}

// space returns the space of a memory, which a request opens once.
func (c *call) space(ctx context.Context, m *api.Memory) (*space, error) {
	t := ownerOf(m)
	if v := c.opened[t]; v != nil {
		return v, nil
	}
	v, err := c.open(ctx, t)
	if err == nil {
		if c.opened == nil {
			c.opened = map[api.Target]*space{}
		}
		c.opened[t] = v
	}
	return v, err
}

// ofTurn returns what a turn has become: its facts, or else the passages that
// are shown.
func (c *call) ofTurn(ctx context.Context, v *space, turn string) (out []api.Memory, err error) {
	for _, f := range v.facts[turn] {
		if !f.current {
			continue
		}
		m, err := c.service.Get(ctx, c.p, v.target, f.id, false)
		switch {
		case isNotFound(err): // deleted meanwhile
			continue
		case err != nil:
			return nil, err
		}
		out = append(out, m)
	}
	passages, err := c.service.Passages(ctx, c.p, v.target, turn)
	for i := range passages {
		if v.shows(&passages[i]) {
			out = append(out, passages[i])
		}
	}
	return out, err
}
