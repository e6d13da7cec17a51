package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// remove deletes those of the ids that there are, and returns the others. It
// fails if there is none.
func (c *call) remove(ids []string) (out api.Removed, missing []string, err error) {
	out, err = c.verbs.Delete(c, c.target, why, ids...)
	if len(ids) == 1 || !errors.Is(err, api.ErrNotFound) {
		return out, nil, err
	}
	out = api.Removed{Deleted: []string{}}
	for _, id := range ids {
		if slices.Contains(out.Deleted, id) {
			continue // it was made of one before it
		}
		one, err := c.verbs.Delete(c, c.target, why, id)
		switch {
		case errors.Is(err, api.ErrNotFound):
			missing = append(missing, id)
		case err != nil:
			return out, missing, err
		default:
			out.Deleted, out.UndoUntil = append(out.Deleted, one.Deleted...), one.UndoUntil
		}
	}
	if len(out.Deleted) == 0 {
		return out, missing, api.ErrNotFound
	}
	return out, missing, nil
}

func (c *call) deleteMemories() (reply, error) {
	ids, err := c.args.list(true, namesIDs...)
	if err != nil {
		return reply{}, err
	}
	if len(ids) == 0 {
		return reply{}, wrong("ids", "is required")
	}
	gone, missing, err := c.remove(ids)
	if err != nil {
		return reply{}, err
	}
	data := map[string]any{"deleted": gone.Deleted, "undoUntil": gone.UndoUntil}
	said := deletedText(len(gone.Deleted), gone.UndoUntil)
	if len(missing) > 0 {
		data["missing"] = missing
		said += fmt.Sprintf(" There is no %s.", strings.Join(missing, ", "))
	}
	return reply{said, data}, nil
}

func deletedText(n int, until string) string {
	switch n {
	case 0:
		return "There was nothing to delete."
	case 1:
		return fmt.Sprintf("Deleted 1 memory. It can be brought back until %s.", until)
	}
	return fmt.Sprintf("Deleted %d memories. They can be brought back until %s.", n, until)
}

func (c *call) deleteAll() (reply, error) {
	gone, err := c.verbs.DeleteAll(c, c.target, api.Filter{}, why)
	if err != nil {
		return reply{}, err
	}
	data := map[string]any{"deleted": len(gone.Deleted)}
	if gone.UndoUntil != "" {
		data["undoUntil"] = gone.UndoUntil
	}
	return reply{deletedText(len(gone.Deleted), gone.UndoUntil), data}, nil
}

func (c *call) overview() (reply, error) {
	n, err := c.args.between(1, maxFacts, defaultFacts, append([]string{"facts"}, namesLimit...)...)
	if err != nil {
		return reply{}, err
	}
	known, err := c.verbs.Context(c, c.target, api.ContextRequest{Facts: n})
	if err != nil {
		return reply{}, err
	}
	said := known.Text
	if said == "" {
		said = "Nothing is remembered about this user yet."
	}
	return reply{said, map[string]any{"context": said, "facts": len(known.Facts)}}, nil
}
