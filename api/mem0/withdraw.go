package mem0

import (
	"context"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// A fact and the passage that it was made of say the same. For mem0's clients
// each statement is one memory: what one of the two says must not be found under
// the other's id once it is deleted, and deleting one statement must not delete
// the others of its passage.

// Reasons of the changes that follow another.
const (
	whyDeleted = "a fact made of it was deleted"
	whyChanged = "a fact made of it was changed"
	whyPart    = "what was no fact in it was deleted"
)

// withdraw takes what a fact said out of the passages that it was made of, but
// for sentences that other facts were made of, too.
func withdraw(c *call, ctx context.Context, m *api.Memory, why string) error {
	quote, _, quoted := extract.Quotation(m.Text)
	if !audited(m) || !quoted {
		return nil
	}
	v, err := c.space(ctx, m)
	if err != nil {
		return err
	}
	own := v.facts[m.Turn]
	for i := range own {
		if own[i].id == m.ID {
			own[i].current = false
		}
	}
	passages, err := c.service.Passages(ctx, c.p, v.target, m.Turn)
	if err != nil {
		return err
	}
	words := extract.Normalize(quote)
	for i := range passages {
		p := &passages[i]
		if p.Role != string(storage.RoleUser) {
			continue
		}
		err := cut(c, ctx, v, p, why, func(sentence string) bool { return alike(sentence, words) && !v.states(m.Turn, sentence) })
		if err != nil && !isNotFound(err) {
			return err
		}
	}
	return nil
}

// discard deletes a passage, but for the sentences that facts were made of:
// these are memories of their own.
func discard(c *call, ctx context.Context, m *api.Memory) error {
	v, err := c.space(ctx, m)
	if err != nil {
		return err
	}
	return cut(c, ctx, v, m, whyPart, func(sentence string) bool { return !v.states(m.Turn, sentence) })
}

// cut takes sentences out of a passage, and deletes it if no statement is left.
func cut(c *call, ctx context.Context, v *space, p *api.Memory, why string, out func(normalized string) bool) error {
	said, _, _ := extract.Uncut(p.Text)
	var kept []string
	dropped, left := false, false
	for _, sentence := range text.Sentences(said) {
		normal := extract.Normalize(sentence)
		if out(normal) {
			dropped = true
			continue
		}
		kept = append(kept, sentence)
		left = left || len(strings.Fields(normal)) >= minStatement || v.states(p.Turn, normal)
	}
	switch {
	case !dropped:
		return nil
	case !left:
		_, err := c.service.Delete(ctx, c.p, ownerOf(p), why, p.ID)
		return err
	}
	rest := strings.Join(kept, " ")
	_, err := c.service.Update(ctx, c.p, ownerOf(p), p.ID, 0, api.Patch{Text: &rest, Why: why})
	return err
}

// states reports whether a current fact of a turn was made of a sentence.
func (v *space) states(turn, sentence string) bool {
	for _, f := range v.facts[turn] {
		if f.current && f.words != "" && alike(sentence, f.words) {
			return true
		}
	}
	return false
}

// alike reports whether one of two normalized texts holds the other.
func alike(a, b string) bool { return extract.HoldsWords(a, b) || extract.HoldsWords(b, a) }
